package collect

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// write puts the selected data of a plan into the target's staging folder, and
// returns the collections for Staging.Install. Kinds that the workdir holds
// already are refused, unless the options replace them.
func write(ctx context.Context, t *target, plan *Plan, opts Options) ([]workdir.Collection, error) {
	w := &writer{ctx: ctx, wd: t.wd, staging: t.staging, plan: plan, opts: opts, moved: map[string]string{}}
	if kind := opts.Select.Database; kind != "" {
		c, err := w.database(kind)
		c.Lost = append(c.Lost, plan.LostDatabases[kind]...)
		c.LostDatabases = lostDatabases(plan.Node, c.Lost)
		return []workdir.Collection{c}, err
	}
	var out []workdir.Collection
	if opts.Select.OVS && plan.HasOVS() {
		ovs, err := w.ovs()
		if err != nil {
			return nil, err
		}
		out = append(out, ovs)
	}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		if !opts.Select.OVN || plan.Database(kind) == nil {
			continue
		}
		ovn, err := w.database(kind)
		if err == nil && kind == workdir.NB {
			err = w.logs(&ovn)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, ovn)
	}
	if len(out) == 0 {
		return nil, plan.nothing(opts.Select)
	}
	if len(plan.Logs) > 0 && opts.Select.OVN && plan.Database(workdir.NB) == nil {
		out[0].Remarks = append(out[0].Remarks, "logs of clients of libovsdb were not taken: they are kept with an OVN NB database, and there is none")
	}
	out[0].Lost = append(out[0].Lost, plan.Lost...)
	// The kind of a broken database is not known. It is noted once, with OVS if
	// that has no database.
	if opts.Select.OVS && plan.Database(workdir.OVS) == nil && out[0].Kind == workdir.OVS {
		out[0].Lost = append(out[0].Lost, plan.Broken...)
	} else if opts.Select.OVN {
		last := &out[len(out)-1]
		last.Lost = append(last.Lost, plan.Broken...)
	}
	for i := range out {
		out[i].LostDatabases = lostDatabases(plan.Node, out[i].Lost)
	}
	return out, nil
}

// databasePath matches the path of a database at the beginning of a loss.
var databasePath = regexp.MustCompile(`^\S*(conf|ovnnb|ovnsb)(?:_db)?\.db\b`)

// lostDatabases returns the losses that concern a database, by its kind. The kind of
// a file that holds no database is known by its name only.
func lostDatabases(n *recording.Node, lost []string) map[workdir.Kind][]string {
	named := map[string]workdir.Kind{"conf": workdir.OVS, "ovnnb": workdir.NB, "ovnsb": workdir.SB}
	found := map[workdir.Kind][]string{}
	for _, l := range lost {
		if m := databasePath.FindStringSubmatch(l); m != nil {
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

// writer moves the files of a plan to a staging folder.
type writer struct {
	ctx     context.Context
	wd      *workdir.Dir
	staging *workdir.Staging
	plan    *Plan
	opts    Options
	// moved maps a spooled file to the path to copy it from, where it cannot be moved
	// any more: links give one file several names.
	moved map[string]string
}

func (w *writer) begin(kind workdir.Kind) workdir.Collection {
	c := workdir.Collection{Kind: kind, Source: w.plan.Source, Host: w.plan.Host, Collected: time.Now().UTC().Truncate(time.Second),
		OVNVersion: w.plan.Versions.OVN, Image: w.plan.Image}
	if kind == workdir.OVS {
		c.OVSVersion = w.plan.Versions.OVS
	}
	if db := w.plan.Database(kind); kind != workdir.OVS && db.Source != nil {
		c.Source = *db.Source
	}
	return c
}

// database replaces the database of a kind and nothing else.
func (w *writer) database(kind workdir.Kind) (workdir.Collection, error) {
	if err := w.opts.refuse(w.wd, kind); err != nil {
		return workdir.Collection{}, err
	}
	c := w.begin(kind)
	m, err := w.wd.Manifest()
	if err != nil {
		return c, err
	}
	synthesised := kind == workdir.OVS && m.Synthesis() != nil // its flows belong to another database
	if err := w.staging.Replace(kind, !synthesised); err != nil {
		return c, err
	}
	if err := w.addDatabase(kind, &c); err != nil || synthesised {
		return c, err
	}
	w.keepDumps(m, &c)
	return c, nil
}

// keepDumps copies the manifest's entries of the OVS dumps and the recorded state to a
// collection that replaces only the OVS database.
func (w *writer) keepDumps(m *workdir.Manifest, c *workdir.Collection) {
	old := m.Collection(c.Kind)
	if c.Kind != workdir.OVS || old == nil {
		return
	}
	old.DropLost(c.Kind)
	c.OVSVersion, c.OVNVersion = cmp.Or(c.OVSVersion, old.OVSVersion), old.OVNVersion
	c.Bridges, c.Host, c.Lost, c.LostDatabases = old.Bridges, old.Host, old.Lost, old.LostDatabases
	for _, f := range old.Files {
		if filepath.Dir(f.Path) != filepath.Join("db", string(workdir.OVS)) {
			c.Files = append(c.Files, f)
		}
	}
}

func (w *writer) addDatabase(kind workdir.Kind, out *workdir.Collection) error {
	db := w.plan.Database(kind)
	if db.Shared {
		w.moved[db.Spooled] = db.Spooled // another node needs the file as well
	}
	return w.move(db.File, w.staging.Database(kind), workdir.File{Origin: origin(db.Origin, db.Source), Remarks: db.Remarks}, out)
}

// logs moves the logs of clients of libovsdb. Of two with the same name, the node's own is
// the first.
func (w *writer) logs(out *workdir.Collection) error {
	seen := map[string]bool{}
	for _, l := range w.plan.Logs {
		if seen[l.Name] {
			out.Remarks = append(out.Remarks, fmt.Sprintf("%s: not taken, another log of this name was", l.Origin))
			continue
		}
		seen[l.Name] = true
		file := workdir.File{Origin: l.Origin}
		if l.Truncated {
			file.Remarks = []string{"cut by sos: only its end was collected"}
		}
		if err := w.move(l.File, w.staging.ClientLog(l.Name), file, out); err != nil {
			return err
		}
	}
	return nil
}

// origin adds the source to the path of a file that came from another source than its node.
func origin(path string, source *workdir.Source) string {
	if source == nil || path == source.Name {
		return path
	}
	return source.Name + ": " + path
}

func (w *writer) ovs() (workdir.Collection, error) {
	if err := w.opts.refuse(w.wd, workdir.OVS); err != nil {
		return workdir.Collection{}, err
	}
	out := w.begin(workdir.OVS)
	out.Remarks = append(out.Remarks, w.plan.Remarks...)
	if err := w.staging.Replace(workdir.OVS, false); err != nil {
		return out, err
	}
	if w.plan.Database(workdir.OVS) != nil {
		if err := w.addDatabase(workdir.OVS, &out); err != nil {
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
	if len(out.Files) == 0 && !w.plan.rebuilt {
		return out, fmt.Errorf("%w: %s lists bridges (%s) but has neither their flow dumps nor conf.db", ErrNothing, w.plan.Source.Kind, recording.FirstNames(w.plan.Node.Bridges))
	}
	for _, o := range w.plan.Recorded {
		if err := w.recorded(o, &out); err != nil {
			return out, err
		}
	}
	return out, w.script(&out)
}

// bridge moves the dumps of one bridge: the best of each kind to restore_flows, the
// others to recorded, for what the best cannot express.
func (w *writer) bridge(b Bridge, out *workdir.Collection) error {
	if len(b.Dumps) == 0 {
		out.Remarks = append(out.Remarks, fmt.Sprintf("bridge %q: %s holds no dump of it (a fake bridge has none)", b.Name, w.plan.Source.Kind))
		return nil
	}
	out.Bridges = append(out.Bridges, b.Name)
	for _, c := range recording.Dumps() {
		for _, d := range b.Dumps[c.Dump] {
			file := workdir.File{Origin: d.Origin, Bridge: b.Name, OpenFlow: d.OpenFlow.String()}
			path := w.staging.OtherDump(b.Name, c.Dump, file.OpenFlow)
			if d.Used {
				path, file.Remarks = w.staging.DumpFile(b.Name, c.Dump), d.remarks(c.Dump)
			}
			if err := w.move(d.File, path, file, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) recorded(o recording.Output, out *workdir.Collection) error {
	path := w.staging.Recorded(string(o.Command))
	if o.Bridge != "" {
		path = w.staging.BridgeRecorded(o.Bridge, string(o.Command))
	}
	file := workdir.File{Origin: o.Origin, Bridge: o.Bridge, OpenFlow: o.OpenFlow.String()}
	if o.Truncated {
		file.Remarks = []string{"cut by sos: only its end was collected"}
	}
	return w.move(o.File, path, file, out)
}

// script moves the script of ovs-save, which holds TLV maps.
func (w *writer) script(out *workdir.Collection) error {
	scripts := w.plan.Outputs(recording.SaveScript, "")
	if len(scripts) == 0 {
		return nil
	}
	path := filepath.Join(w.staging.RestoreFlows(), workdir.SaveScript)
	return w.move(scripts[0].File, path, workdir.File{Origin: scripts[0].Origin}, out)
}

// move moves a spooled file to its path in the staging folder, and adds it to out as
// file describes it. A file that was moved before, under another name, is copied.
func (w *writer) move(spooled archive.File, path string, file workdir.File, out *workdir.Collection) error {
	written, err := w.place(spooled, path)
	if err := cmp.Or(w.ctx.Err(), err); err != nil {
		return fmt.Errorf("%s: %w", file.Origin, err)
	}
	file.Path, file.Size, file.SHA256 = written.Path, written.Size, written.SHA256
	out.Files = append(out.Files, file)
	return nil
}

func (w *writer) place(spooled archive.File, path string) (workdir.File, error) {
	from, again := w.moved[spooled.Spooled]
	if !again {
		w.moved[spooled.Spooled] = path
		return w.staging.Move(spooled, path)
	}
	in, err := os.Open(from)
	if err != nil {
		return workdir.File{}, err
	}
	defer in.Close()
	return w.staging.Copy(w.ctx, in, path)
}
