package collect

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// write puts the selected data of a plan into the target's staging folder, and
// returns the collections for Staging.Install. Kinds that the workdir holds
// already are refused, unless the options replace them.
func write(ctx context.Context, target *target, plan *Plan, opts Options) ([]workdir.Collection, error) {
	writer := &writer{ctx: ctx, wd: target.wd, staging: target.staging, plan: plan, opts: opts, moved: map[string]string{}}
	if kind := opts.Select.Database; kind != "" {
		collection, err := writer.database(kind)
		collection.Lost = append(collection.Lost, plan.LostDatabases[kind]...)
		collection.LostDatabases = lostDatabases(plan.Recording, collection.Lost)
		return []workdir.Collection{collection}, err
	}
	out, err := writer.replayable()
	if err != nil {
		return nil, err
	}
	replayable := len(out)
	if out, err = writer.withHost(out); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, plan.missingError(opts.Select)
	}
	if len(plan.Logs) > 0 && opts.Select.OVN && plan.Database(workdir.NB) == nil {
		out[0].Remarks = append(out[0].Remarks, "logs of clients of libovsdb were not taken: they are kept with an OVN NB database, and there is none")
	}
	out[0].Lost = append(out[0].Lost, plan.Lost...)
	if !writer.remarked && opts.Select.OVS {
		out[0].Remarks = append(slices.Clone(plan.Remarks), out[0].Remarks...)
	}
	// The kind of a broken database is not known. It is noted once, with OVS if
	// that has no database.
	if opts.Select.OVS && plan.Database(workdir.OVS) == nil && out[0].Kind == workdir.OVS {
		out[0].Lost = append(out[0].Lost, plan.Broken...)
	} else if opts.Select.OVN {
		last := &out[max(0, replayable-1)]
		last.Lost = append(last.Lost, plan.Broken...)
	}
	for i := range out {
		out[i].LostDatabases = lostDatabases(plan.Recording, out[i].Lost)
	}
	return out, nil
}

// replayable writes the data that a replica can use.
func (w *writer) replayable() (out []workdir.Collection, err error) {
	if w.opts.Select.OVS && w.plan.HasOVS() {
		ovs, err := w.ovs()
		if err != nil {
			return nil, err
		}
		out = append(out, ovs)
	}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		if !w.opts.Select.OVN || w.plan.Database(kind) == nil {
			continue
		}
		ovn, err := w.database(kind)
		if err == nil && kind == workdir.NB {
			err = w.besides(&ovn)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, ovn)
	}
	return out, nil
}

// databasePath matches the path of a database at the beginning of a loss.
var databasePath = lazyregexp.New(`^\S*(conf|ovnnb|ovnsb)(?:_db)?\.db\b`)

// lostDatabases returns the losses that concern a database, by its kind. The kind of
// a file that holds no database is known by its name only.
func lostDatabases(node *recording.Recording, lost []string) map[workdir.Kind][]string {
	named := map[string]workdir.Kind{"conf": workdir.OVS, "ovnnb": workdir.NB, "ovnsb": workdir.SB}
	found := map[workdir.Kind][]string{}
	for _, line := range lost {
		if match := databasePath.FindStringSubmatch(line); match != nil {
			found[named[match[1]]] = append(found[named[match[1]]], line)
			continue
		}
		for kind, texts := range node.LostDatabases {
			if slices.Contains(texts, line) {
				found[kind] = append(found[kind], line)
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
	moved    map[string]string
	remarked bool // the remarks of the plan are in a collection
}

func (w *writer) begin(kind workdir.Kind) workdir.Collection {
	collection := workdir.Collection{Kind: kind, Source: w.plan.Source, Host: w.plan.Host, Collected: time.Now().UTC().Truncate(time.Second),
		OVNVersion: w.plan.Versions.OVN, Image: w.plan.Image}
	if kind == workdir.OVS {
		collection.OVSVersion = w.plan.Versions.OVS
	}
	if taken := w.plan.Taken; kind == workdir.Host || kind == workdir.OVS && !w.plan.Mixed {
		collection.Recorded, collection.RecordedAbout = taken.At, taken.DayOnly || taken.Local
	}
	if db := w.plan.Database(kind); kind != workdir.OVS && db != nil && db.Source != nil {
		collection.Source = *db.Source
	}
	return collection
}

// database replaces the database of a kind and nothing else.
func (w *writer) database(kind workdir.Kind) (workdir.Collection, error) {
	if err := w.opts.refuse(w.wd, kind); err != nil {
		return workdir.Collection{}, err
	}
	collection := w.begin(kind)
	manifest, err := w.wd.Manifest()
	if err != nil {
		return collection, err
	}
	synthesised := kind == workdir.OVS && manifest.Synthesis() != nil // its flows belong to another database
	if err := w.staging.Replace(kind, !synthesised); err != nil {
		return collection, err
	}
	if err := w.addDatabase(kind, &collection); err != nil || synthesised {
		return collection, err
	}
	if err := w.members(kind, &collection); err != nil {
		return collection, err
	}
	w.keepDumps(manifest, &collection)
	return collection, nil
}

// keepDumps copies the manifest's entries of the OVS dumps and the recorded state to a
// collection that replaces only the OVS database.
func (w *writer) keepDumps(manifest *workdir.Manifest, collection *workdir.Collection) {
	old := manifest.Collection(collection.Kind)
	if collection.Kind != workdir.OVS || old == nil {
		return
	}
	old.DropLost(collection.Kind)
	collection.OVSVersion, collection.OVNVersion = cmp.Or(collection.OVSVersion, old.OVSVersion), old.OVNVersion
	collection.Bridges, collection.Host, collection.Lost, collection.LostDatabases = old.Bridges, old.Host, old.Lost, old.LostDatabases
	collection.Recorded, collection.RecordedAbout = old.Recorded, old.RecordedAbout
	for _, file := range old.Files {
		if filepath.Dir(file.Path) != filepath.Join("db", string(workdir.OVS)) {
			collection.Files = append(collection.Files, file)
		}
	}
}

func (w *writer) addDatabase(kind workdir.Kind, out *workdir.Collection) error {
	db := w.plan.Database(kind)
	if db.Shared {
		w.moved[db.Spooled] = db.Spooled // another node needs the file as well
	}
	path := w.staging.Database(kind)
	if db.Printed != "" {
		path = w.staging.PrintedDatabase(kind)
	}
	if db.Tail.Size > 0 {
		if db.Shared {
			w.moved[db.Tail.Spooled] = db.Tail.Spooled
		}
		if err := w.move(db.Tail, w.staging.DatabaseTail(kind), workdir.File{Origin: origin(db.Origin, db.Source)}, out); err != nil {
			return err
		}
	}
	return w.move(db.File, path, workdir.File{Origin: origin(db.Origin, db.Source), Recorded: db.Ran, Remarks: db.Remarks}, out)
}

// members moves the files of the other members of a clustered database, and what servers printed.
func (w *writer) members(kind workdir.Kind, out *workdir.Collection) error {
	names := map[string]bool{}
	byServer := map[string]string{}
	if db := w.plan.Database(kind); db != nil {
		byServer[db.Info.Server] = db.Info.Server
	}
	for _, member := range w.plan.Members {
		if member.Of != kind {
			continue
		}
		name := cmp.Or(member.Host, member.Server)
		if names[name] {
			name += "-" + member.Server
		}
		for n := 2; names[name]; n++ {
			name = fmt.Sprintf("%s-%d", member.Server, n)
		}
		names[name], byServer[member.Server] = true, name
		entry := workdir.File{Origin: origin(member.Origin, member.Source), Recorded: member.Ran, Remarks: member.Remarks}
		if err := w.move(member.File, w.staging.Member(kind, name), entry, out); err != nil {
			return err
		}
	}
	printed := map[string]bool{}
	for _, status := range w.plan.Statuses {
		name := cmp.Or(byServer[status.Server], status.Server)
		if workdir.KindOfSchema(status.Database) != kind || printed[name] {
			continue
		}
		printed[name] = true
		if err := w.move(status.File, w.staging.MemberStatus(kind, name), workdir.File{Origin: status.Origin}, out); err != nil {
			return err
		}
	}
	return nil
}

// besides moves what is kept beside the OVN NB database: logs of its clients, and the services whose
// names it lacks.
func (w *writer) besides(out *workdir.Collection) error {
	if services := w.plan.Services; services.Spooled != "" {
		if err := w.move(services.File, w.staging.Services(), workdir.File{Origin: services.Origin}, out); err != nil {
			return err
		}
	}
	return w.logs(out)
}

// logs moves the logs of clients of libovsdb. Of two with the same name, the node's own is
// the first.
func (w *writer) logs(out *workdir.Collection) error {
	seen := map[string]bool{}
	for _, log := range w.plan.Logs {
		if seen[log.Name] {
			out.Remarks = append(out.Remarks, fmt.Sprintf("%s: not taken, another log of this name was", log.Origin))
			continue
		}
		seen[log.Name] = true
		file := workdir.File{Origin: log.Origin}
		if log.Truncated {
			file.Remarks = []string{"cut by sos: only its end was collected"}
		}
		if err := w.move(log.File, w.staging.ClientLog(log.Name), file, out); err != nil {
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
	out.Remarks, w.remarked = append(out.Remarks, w.plan.Remarks...), true
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
	for _, bridge := range w.plan.Bridges {
		if err := w.bridge(bridge, &out); err != nil {
			return out, err
		}
	}
	for _, output := range w.plan.Recorded {
		if err := w.recorded(output, &out); err != nil {
			return out, err
		}
	}
	return out, w.script(&out)
}

// bridge moves the dumps of one bridge: the best of each kind to restore_flows, the
// others to recorded, for what the best cannot express.
func (w *writer) bridge(bridge Bridge, out *workdir.Collection) error {
	if len(bridge.Dumps) == 0 {
		out.Remarks = append(out.Remarks, fmt.Sprintf("bridge %q: %s holds no dump of it (a fake bridge has none)", bridge.Name, w.plan.Source.Kind))
		return nil
	}
	out.Bridges = append(out.Bridges, bridge.Name)
	for _, command := range recording.Dumps() {
		for _, dump := range bridge.Dumps[command.Dump] {
			file := workdir.File{Origin: dump.Origin, Bridge: bridge.Name, OpenFlow: dump.OpenFlow.String(), Recorded: dump.Ran, Partial: dump.Partial}
			if dump.Truncated && !w.completed(bridge, command.Dump) {
				file.Partial = &workdir.Partial{Reasons: []string{"sos kept only its end (--log-size)"}}
			}
			path := w.staging.OtherDump(bridge.Name, command.Dump, file.OpenFlow)
			if dump.Used {
				path, file.Remarks, file.Lost = w.staging.DumpFile(bridge.Name, command.Dump), dump.remarks(command.Dump), dump.Lost
			}
			if err := w.move(dump.File, path, file, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// completed reports whether other outputs have what a dump of a bridge may lack: start takes missing flows from dumps of other
// OpenFlow versions and from bridge/dump-flows.
func (w *writer) completed(bridge Bridge, dump workdir.Dump) bool {
	return len(bridge.Dumps[dump]) > 1 || dump == workdir.Flows && slices.ContainsFunc(w.plan.Recorded, func(output recording.Output) bool {
		return output.Command == workdir.RecordedBridgeFlows && output.Bridge == bridge.Name && !output.Truncated
	})
}

func (w *writer) recorded(output recording.Output, out *workdir.Collection) error {
	path := w.staging.Recorded(string(output.Command))
	if output.Bridge != "" {
		path = w.staging.BridgeRecorded(output.Bridge, string(output.Command))
	}
	if output.Namespace != "" {
		path = w.staging.NamespaceRecorded(output.Namespace, output.Command.File())
	}
	return w.output(output, path, out)
}

// output moves an output to its path.
func (w *writer) output(output recording.Output, path string, out *workdir.Collection) error {
	file := workdir.File{Origin: output.Origin, Bridge: output.Bridge, Namespace: output.Namespace, OpenFlow: output.OpenFlow.String(), Recorded: output.Ran}
	if output.Partial != nil && len(output.Partial.Tables) > 0 {
		file.Partial = output.Partial
	}
	if output.Truncated {
		file.Remarks = []string{"cut by sos: only its end was collected"}
	}
	return w.move(output.File, path, file, out)
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
