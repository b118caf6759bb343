package collect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// Half is what to take of a node.
type Half struct{ OVS, OVN bool }

// Write puts the halves asked for of a node into a staging, and returns what it
// did, for Staging.Install. Kinds that the workdir holds already are refused
// unless opts say otherwise.
func Write(ctx context.Context, wd *workdir.Dir, staging *workdir.Staging, plan *Plan, half Half, opts Options) ([]workdir.Collection, error) {
	w := &writer{ctx: ctx, wd: wd, staging: staging, plan: plan, opts: opts, moved: map[string]string{}, shared: map[string]bool{}}
	var out []workdir.Collection
	if half.OVS && plan.HasOVS() {
		ovs, err := w.ovs()
		if err != nil {
			return nil, err
		}
		out = append(out, ovs)
	}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		if !half.OVN || plan.Database(kind) == nil {
			continue
		}
		ovn, err := w.ovn(kind)
		if err != nil {
			return nil, err
		}
		out = append(out, ovn)
	}
	if len(out) == 0 {
		return nil, plan.nothing(half)
	}
	out[0].Lost = append(out[0].Lost, plan.Node.Lost...)
	// What is in a database's place may be of either half: it is told once,
	// where it is missing first of all.
	if half.OVS && plan.Database(workdir.OVS) == nil && out[0].Kind == workdir.OVS {
		out[0].Lost = append(out[0].Lost, plan.Broken...)
	} else if half.OVN {
		last := &out[len(out)-1]
		last.Lost = append(last.Lost, plan.Broken...)
	}
	for i := range out {
		out[i].LostDatabases = lostDatabases(plan.Node, out[i].Lost)
	}
	return out, nil
}

// places are the files in which databases stand. What is lost begins with its path.
var places = regexp.MustCompile(`^\S*(conf|ovnnb|ovnsb)(?:_db)?\.db\b`)

// lostDatabases are the losses that are about a database: what it would have
// held can't be told from a file that is none, but from its name.
func lostDatabases(n *recording.Node, lost []string) map[workdir.Kind][]string {
	named := map[string]workdir.Kind{"conf": workdir.OVS, "ovnnb": workdir.NB, "ovnsb": workdir.SB}
	found := map[workdir.Kind][]string{}
	for _, l := range lost {
		if m := places.FindStringSubmatch(l); m != nil {
			found[named[m[1]]] = append(found[named[m[1]]], l)
			continue
		}
		for k, texts := range n.LostDatabases {
			if slices.Contains(texts, l) {
				found[k] = append(found[k], l)
			}
		}
	}
	return found
}

// writer moves what a plan takes into a staging.
type writer struct {
	ctx     context.Context
	wd      *workdir.Dir
	staging *workdir.Staging
	plan    *Plan
	opts    Options
	// moved tells where a spooled file went: links give one file several names.
	moved map[string]string
	// shared are spooled files that another node needs as well: they are copied.
	shared map[string]bool
}

func (w *writer) begin(kind workdir.Kind) workdir.Collection {
	n := w.plan.Node
	c := workdir.Collection{Kind: kind, Source: n.Source, Host: n.Host, Collected: time.Now().UTC().Truncate(time.Second)}
	if db := w.plan.Database(kind); kind != workdir.OVS && db.Source != nil {
		c.Source = *db.Source
	}
	return c
}

func (w *writer) ovn(kind workdir.Kind) (workdir.Collection, error) {
	if err := Refuse(w.wd, w.opts.Force, true, kind); err != nil {
		return workdir.Collection{}, err
	}
	out := w.begin(kind)
	out.OVNVersion = w.plan.Node.OVNVersion
	if err := w.staging.Replace(kind, true); err != nil {
		return out, err
	}
	return out, w.database(kind, &out)
}

func (w *writer) database(kind workdir.Kind, out *workdir.Collection) error {
	db := w.plan.Database(kind)
	if db.Shared {
		w.shared[db.File] = true
	}
	file, err := w.move(db.File, w.staging.Database(kind), origin(db.Origin, db.Source))
	if err != nil {
		return err
	}
	file.Remarks = db.Remarks
	out.Files = append(out.Files, file)
	return nil
}

// origin names a thing that came from another source than its node.
func origin(path string, source *workdir.Source) string {
	if source == nil || path == source.Name {
		return path
	}
	return source.Name + ": " + path
}

func (w *writer) ovs() (workdir.Collection, error) {
	if err := Refuse(w.wd, w.opts.Force, false, workdir.OVS); err != nil {
		return workdir.Collection{}, err
	}
	n := w.plan.Node
	out := w.begin(workdir.OVS)
	out.OVSVersion = n.OVSVersion
	out.Remarks = append(out.Remarks, n.Remarks...)
	if err := w.staging.Replace(workdir.OVS, false); err != nil {
		return out, err
	}
	if w.plan.Database(workdir.OVS) != nil {
		if err := w.database(workdir.OVS, &out); err != nil {
			return out, err
		}
	} else {
		out.Remarks = append(out.Remarks, w.plan.withoutDatabase())
	}
	for _, b := range w.plan.Bridges {
		if err := w.bridge(b, &out); err != nil {
			return out, err
		}
	}
	if len(out.Files) == 0 && !w.plan.rebuildable() {
		return out, fmt.Errorf("%w: %s lists bridges (%s) but has neither a flow dump nor conf.db of theirs", ErrNothing, n.Source.Kind, recording.Some(n.Bridges))
	}
	for _, o := range w.plan.Recorded {
		if err := w.recorded(o, &out); err != nil {
			return out, err
		}
	}
	return out, w.script(&out)
}

// bridge takes the dumps of one bridge: the best of each into restore_flows,
// the others into recorded for what the best can't say.
func (w *writer) bridge(b Bridge, out *workdir.Collection) error {
	if len(b.Dumps) == 0 {
		out.Remarks = append(out.Remarks, fmt.Sprintf("bridge %q: %s holds no dump of it (a fake bridge has none)", b.Name, w.plan.Node.Source.Kind))
		return nil
	}
	out.Bridges = append(out.Bridges, b.Name)
	for _, dump := range Dumps() {
		for _, d := range b.Dumps[dump] {
			path := w.staging.OtherDump(b.Name, dump, d.OpenFlow)
			if d.Used {
				path = w.staging.DumpFile(b.Name, dump)
			}
			file, err := w.move(d.File, path, d.Origin)
			if err != nil {
				return err
			}
			file.Bridge, file.OpenFlow = b.Name, d.OpenFlow
			if d.Used {
				file.Remarks = d.remarks(dump)
			}
			out.Files = append(out.Files, file)
		}
	}
	return nil
}

func (w *writer) recorded(o recording.Output, out *workdir.Collection) error {
	path := w.staging.Recorded(string(o.Meaning))
	if o.Bridge != "" {
		path = w.staging.BridgeRecorded(o.Bridge, string(o.Meaning))
	}
	file, err := w.move(o.File, path, o.Origin)
	if err != nil {
		return err
	}
	file.Bridge, file.OpenFlow = o.Bridge, o.OpenFlow
	if o.Truncated {
		file.Remarks = append(file.Remarks, "cut by sos: only its end is there")
	}
	out.Files = append(out.Files, file)
	return nil
}

// script keeps what ovs-save wrote, for the TLV maps in it.
func (w *writer) script(out *workdir.Collection) error {
	scripts := w.plan.Node.Outputs(recording.SaveScript, "")
	if len(scripts) == 0 {
		return nil
	}
	file, err := w.move(scripts[0].File, filepath.Join(w.staging.RestoreFlows(), workdir.SaveScript), scripts[0].Origin)
	if err != nil {
		return err
	}
	out.Files = append(out.Files, file)
	return nil
}

func (w *writer) move(spooled, path, origin string) (workdir.File, error) {
	if err := w.ctx.Err(); err != nil {
		return workdir.File{}, err
	}
	file, err := w.place(spooled, path)
	if err != nil {
		return file, fmt.Errorf("%s: %w", origin, err)
	}
	file.Origin = origin
	return file, nil
}

func (w *writer) place(spooled, path string) (workdir.File, error) {
	from, again := w.moved[spooled]
	if !again && !w.shared[spooled] {
		w.moved[spooled] = path
		return w.staging.Move(w.ctx, spooled, path)
	}
	if !again {
		from = spooled
	}
	in, err := os.Open(from)
	if err != nil {
		return workdir.File{}, err
	}
	defer in.Close()
	return w.staging.Copy(w.ctx, in, path)
}
