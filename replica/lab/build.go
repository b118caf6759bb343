package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/command"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// SourceKind is the kind of the source of a collection that was made of commands.
const SourceKind = "commands of a text"

// Options are the options of Build.
type Options struct {
	Name    string         // of the text
	Runtime string         // one of choose.Names
	Wanted  runtime.Wanted // the image or the versions that the user names
	Version string         // of ovs-offline
	// Progress is called with what is being done.
	Progress func(text string)
}

// toolTimeout is how long a tool may take for one command.
const toolTimeout = 30 * time.Second

// ErrNothing is wrapped if a text has no command that a lab carries out.
var ErrNothing = errors.New("no command of ovs-vsctl, ovs-ofctl or ovn-nbctl that could be carried out")

// Build carries out the commands of a text on an empty replica, and makes the result the collection of a workdir, which is locked
// and empty. It returns what became of the commands, also with ErrNothing. Of commands of OVN alone, the collection is a
// northbound database: package synth makes the switches. After an error, the workdir is as it was.
func Build(ctx context.Context, wd *workdir.Dir, commands recording.Script, options Options) (*workdir.Built, error) {
	if err := checkEmpty(wd); err != nil {
		return nil, err
	}
	script := read(commands)
	if len(script.steps) == 0 {
		return script.built, fmt.Errorf("%s has %w", options.Name, ErrNothing)
	}
	dir, err := scratch.Lock(wd)
	if err != nil {
		return nil, err
	}
	defer scratch.Release(dir)
	defer os.RemoveAll(scratch.Replicas(dir))
	if _, err := os.Stat(scratch.Replicas(dir)); err == nil { // of a command that was killed
		if err := scratch.Clean(ctx, dir, choose.Finder(options.Version)); err != nil {
			return nil, err
		}
	}
	// This is where scratch.Clean finds the replica of a killed command.
	inner, err := workdir.Lock(filepath.Join(scratch.Replicas(dir), "lab"))
	if err != nil {
		return nil, err
	}
	defer inner.Unlock()
	l := &lab{wd: wd, dir: dir, inner: inner, options: options, script: script, results: filepath.Join(scratch.Replicas(dir), "results")}
	if err := os.MkdirAll(l.results, 0o700); err != nil {
		return nil, err
	}
	if err := l.build(ctx); err != nil {
		return script.built, err
	}
	return script.built, nil
}

// checkEmpty refuses a workdir that holds data.
func checkEmpty(wd *workdir.Dir) error {
	occupied, err := wd.Occupied(false, append(workdir.Kinds(), workdir.Host)...)
	if err != nil {
		return err
	}
	if manifest, err := wd.Manifest(); err != nil || len(manifest.Collections) > 0 && len(occupied) == 0 {
		occupied = append(occupied, "a synthesised switch")
	}
	if len(occupied) > 0 {
		return fault.Usagef("--build needs an empty working directory, and %s holds %s; choose another with -w, or empty it: ovs-offline -w %s stop --purge", wd.Path(), occupied[0], wd.Path())
	}
	return nil
}

// lab is a lab that is being built.
type lab struct {
	wd, dir, inner *workdir.Dir
	options        Options
	script         *script
	results        string // folder of what is made
	rt             runtime.Runtime
	running        versions.Pair
	bridges        []bridge
}

// bridge is what a bridge has in its tables, and what tools print about it.
type bridge struct {
	scratch.Dump
	recorded map[string]string // by the name of the recorded file
}

// has reports whether a command of one of these tools is carried out.
func (l *lab) has(tools ...string) bool {
	return slices.ContainsFunc(l.script.steps, func(s step) bool { return slices.Contains(tools, s.tool) })
}

// hasSwitch reports whether the lab has a switch of its own: the switch that package synth makes up knows no other chassis.
func (l *lab) hasSwitch() bool { return l.has("ovs-vsctl", "ovs-ofctl", "ovn-sbctl") }

func (l *lab) hasOVN() bool { return l.has("ovn-nbctl", "ovn-sbctl") }

// kinds returns the databases that the commands need.
func (l *lab) kinds() (kinds []workdir.Kind) {
	if l.hasSwitch() {
		kinds = append(kinds, workdir.OVS)
	}
	if l.hasOVN() {
		kinds = append(kinds, workdir.NB, workdir.SB)
	}
	return kinds
}

func (l *lab) build(ctx context.Context) error {
	if err := l.chooseRuntime(ctx); err != nil {
		return err
	}
	if err := l.installEmpty(ctx); err != nil {
		return err
	}
	if err := l.runReplica(ctx); err != nil {
		return err
	}
	if l.script.built.CarriedOut == 0 {
		return fmt.Errorf("%s has %w", l.options.Name, ErrNothing)
	}
	if l.hasSwitch() && l.hasOVN() {
		l.options.Progress("computing the OVN SB database and the flows with ovn-northd and ovn-controller")
		if err := l.compute(ctx); err != nil {
			return fmt.Errorf("the flows of OVN can't be computed: %w", err)
		}
	}
	return l.install(ctx)
}

// chooseRuntime chooses the programs that carry out the commands.
func (l *lab) chooseRuntime(ctx context.Context) error {
	choice, err := choose.For(l.inner, l.options.Version).Choose(ctx, l.options.Runtime, l.options.Wanted)
	if err != nil {
		return err
	}
	l.rt = choice.Runtime
	if isolated, why := l.rt.Isolated(ctx); !isolated {
		return fmt.Errorf("commands of a text run only where the daemons have no network, and %s: choose another --runtime", why)
	}
	text, err := l.rt.Tool(ctx, "/", nil, "ovs-vswitchd", "--version")
	if err != nil {
		return err
	}
	l.running.OVS = versions.PrintedOVS(text)
	if !l.hasOVN() {
		return nil
	}
	if text, err = l.rt.Tool(ctx, "/", nil, "ovn-nbctl", "--version"); err == nil {
		l.running.OVN = versions.PrintedOVN(text)
	}
	return err
}

// root is the table of a database that has exactly one row.
func root(kind workdir.Kind) string {
	return map[workdir.Kind]string{workdir.OVS: "Open_vSwitch", workdir.NB: "NB_Global", workdir.SB: "SB_Global"}[kind]
}

// installEmpty makes the empty databases the collections of the replica on which the commands run.
func (l *lab) installEmpty(ctx context.Context) error {
	staging, err := l.inner.Stage()
	if err != nil {
		return err
	}
	defer staging.Discard()
	var collections []workdir.Collection
	for _, kind := range l.kinds() {
		schema, err := replica.Schema(ctx, l.rt, kind)
		if err != nil {
			return err
		}
		path := filepath.Join(l.results, string(kind)+".empty")
		rows := map[string][]ovsdb.Record{root(kind): {{UUID: "00000000-0000-4000-8000-000000000001"}}}
		if _, err := file.FromTables(ctx, schema, rows, path); err != nil {
			return err
		}
		collection := workdir.Collection{Kind: kind, OVSVersion: l.running.OVS, OVNVersion: l.running.OVN, Source: workdir.Source{Kind: SourceKind, Name: l.options.Name}}
		if err := staging.Replace(kind, false); err != nil {
			return err
		}
		if err := addFile(ctx, staging, &collection, path, staging.Database(kind)); err != nil {
			return err
		}
		collections = append(collections, collection)
	}
	return staging.Install(collections...)
}

// runReplica runs the commands on a replica, and writes the databases that they made into the folder of results.
func (l *lab) runReplica(ctx context.Context) (err error) {
	if _, err := replica.Start(ctx, l.inner, l.rt, replica.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, replica.Stop(context.WithoutCancel(ctx), l.inner, l.rt)) }()
	l.options.Progress("carrying out " + phrase.Count(len(l.script.steps), "command"))
	var withheld [][]string
	for _, step := range l.script.steps {
		if err := l.run(ctx, step); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			l.script.built.Failed = append(l.script.built.Failed, notDone(step.line, step.text, reason(err)))
			continue
		}
		l.script.built.CarriedOut++
		withheld = append(withheld, step.withheld...)
	}
	if l.hasSwitch() && l.hasOVN() {
		if err := l.completeChassis(ctx); err != nil {
			return err
		}
	}
	if l.hasSwitch() {
		if err := l.freeze(ctx, withheld); err != nil {
			return err
		}
	}
	for _, kind := range l.kinds() {
		if _, _, err := file.Standalone(ctx, l.inner.WorkingCopy(kind), l.result(kind)); err != nil {
			return err
		}
	}
	return nil
}

// result is the path of a database that the commands made.
func (l *lab) result(kind workdir.Kind) string { return filepath.Join(l.results, string(kind)+".db") }

// run runs one command.
func (l *lab) run(ctx context.Context, s step) error {
	const limit = "--timeout=20"
	switch s.tool {
	case "ovs-vsctl":
		if len(s.args) == 0 {
			return nil // all of it is withheld
		}
		return l.tool(ctx, nil, append([]string{s.tool, "--db=unix:" + l.inner.Socket(workdir.OVS), limit}, s.args...)...)
	case "ovn-nbctl":
		return l.tool(ctx, nil, append([]string{s.tool, "--db=unix:" + l.inner.Socket(workdir.NB), limit}, s.args...)...)
	case "ovn-sbctl":
		return l.tool(ctx, nil, append([]string{s.tool, "--db=unix:" + l.inner.Socket(workdir.SB), limit}, s.args...)...)
	}
	socket := filepath.Join(l.inner.VarRun(workdir.OVS), s.bridge+".mgmt")
	if _, err := os.Stat(socket); err != nil {
		return fmt.Errorf("there is no bridge %s", s.bridge)
	}
	args := slices.Clone(s.args)
	args[slices.Index(args, "")] = "unix:" + socket
	return l.tool(ctx, s.input, append([]string{s.tool, limit}, args...)...)
}

// tool runs a program beside the daemons of the replica.
func (l *lab) tool(ctx context.Context, input []string, argv ...string) error {
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	stdin := strings.NewReader("")
	if input != nil {
		stdin = strings.NewReader(strings.Join(input, "\n") + "\n")
	}
	_, err := l.rt.Tool(ctx, l.inner.VarRun(workdir.OVS), stdin, argv...)
	return err
}

// vsctl runs ovs-vsctl on the replica's database.
func (l *lab) vsctl(ctx context.Context, args ...string) error {
	return l.tool(ctx, nil, append([]string{"ovs-vsctl", "--db=unix:" + l.inner.Socket(workdir.OVS), "--timeout=20"}, args...)...)
}

// reason returns what a tool says about its failure.
func reason(err error) string {
	if failed, ok := errors.AsType[*command.Error](err); ok {
		if first, _, _ := strings.Cut(strings.TrimSpace(failed.Stderr), "\n"); first != "" {
			return first
		}
	}
	return err.Error()
}

// freeze dumps the bridges, ends ovs-vswitchd, and writes to the database what was withheld from it.
func (l *lab) freeze(ctx context.Context, withheld [][]string) error {
	db, err := ovsdb.Connect(ctx, l.inner.Socket(workdir.OVS), ovsdb.OVS)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := l.noteErrors(ctx, db); err != nil {
		return err
	}
	bridges, err := db.Select(ctx, "Bridge", "name", "protocols")
	if err != nil {
		return err
	}
	for _, row := range bridges {
		if err := l.dump(ctx, row.String("name"), row.Strings("protocols")); err != nil {
			return err
		}
	}
	if err := replica.StopSwitch(ctx, l.inner, l.rt); err != nil {
		return err
	}
	// A replica has one thread of each kind.
	for _, args := range append([][]string{{"remove", "Open_vSwitch", ".", "other_config", "n-handler-threads", "n-revalidator-threads"}}, withheld...) {
		if err := l.vsctl(ctx, append([]string{"--no-wait", "--"}, args...)...); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			l.script.assume("%s is not in the database: %s", strings.Join(args, " "), reason(err))
		}
	}
	return nil
}

// noteErrors notes the interfaces that ovs-vswitchd could not open.
func (l *lab) noteErrors(ctx context.Context, db *ovsdb.Client) error {
	rows, err := db.Select(ctx, "Interface", "name", "error")
	for _, row := range rows {
		if text := row.String("error"); text != "" {
			l.script.assume("ovs-vswitchd did not open interface %s: %s", row.String("name"), text)
		}
	}
	return err
}

// dump keeps what a bridge has in its tables.
func (l *lab) dump(ctx context.Context, name string, protocols []string) error {
	socket := filepath.Join(l.inner.VarRun(workdir.OVS), name+".mgmt")
	if _, err := os.Stat(socket); err != nil || strings.Contains(name, "/") { // a path could lead to another switch
		l.script.assume("ovs-vswitchd did not create bridge %s", name)
		return nil
	}
	version := l.version(name, protocols)
	dump, err := scratch.DumpBridge(ctx, l.rt, l.inner.VarRun(workdir.OVS), name, version, protocols)
	if err != nil {
		return fmt.Errorf("bridge %s: %w", name, err)
	}
	oldest := version
	if openflow.OpenFlow10.In(protocols) {
		oldest = openflow.OpenFlow10 // no other version prints no-flood
	}
	made := bridge{dump, map[string]string{}}
	for file, argv := range map[string][]string{
		workdir.RecordedShow: {"ovs-ofctl", "-O", oldest.String(), "--", "show", "unix:" + socket},
		workdir.RecordedFDB:  {"ovs-appctl", "-t", "ovs-vswitchd", "fdb/show", name},
	} {
		text, err := l.rt.Tool(ctx, l.inner.VarRun(workdir.OVS), nil, argv...)
		if err != nil {
			return fmt.Errorf("bridge %s: %w", name, err)
		}
		made.recorded[file] = string(text)
	}
	l.bridges = append(l.bridges, made)
	return nil
}

// version returns the OpenFlow version in which the flows of a bridge are dumped: the newest in which commands of the text speak to
// it, so that a flow reads as it was typed.
func (l *lab) version(bridge string, protocols []string) (newest openflow.Version) {
	for _, s := range l.script.steps {
		if s.bridge == bridge {
			newest = max(newest, s.version)
		}
	}
	if newest = max(newest, openflow.OpenFlow10); newest.In(protocols) {
		return newest
	}
	for _, spoken := range openflow.Versions() { // the newest first
		if spoken.In(protocols) {
			return spoken
		}
	}
	return openflow.OpenFlow15
}
