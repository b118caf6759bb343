// Package replica makes a replica of a workdir and keeps it: real ovsdb-servers
// and a real ovs-vswitchd that answer as the node did from which the workdir
// was collected. It knows no sources; where daemons run is a runtime's business.
package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/activate"
	"ovs-offline/replica/report"
	"ovs-offline/replica/restore"
	"ovs-offline/replica/runtime"
)

// State is what runs. It is replica.json.
type State struct {
	Runtime string         `json:"runtime"`
	Started time.Time      `json:"started"`
	Kinds   []workdir.Kind `json:"kinds"`
}

// Options of Start.
type Options struct {
	// Everywhere are the runtimes in which an earlier replica of the workdir may
	// run, which is ended first; nil for the one to start with.
	Everywhere []runtime.Runtime
	// Exec is the beginning of a command line that runs a tool beside the
	// replica, for the tools' wrappers of a runtime whose tools are not here.
	Exec []string
	// Starting is told of each daemon before it is started, Progress of each
	// step of the restore; nil for none.
	Starting func(role string)
	Progress func(what string)
	// Without names steps that are left out, so that a test can show what each is for.
	Without []string
}

// ErrNothing is wrapped when a workdir holds nothing to replay.
var ErrNothing = errors.New("nothing to start")

// Start makes a replica of the workdir, in place of an earlier one, and returns
// how faithful it is. On any error no daemon of it is left running and no file.
func Start(ctx context.Context, wd *workdir.Dir, rt runtime.Runtime, opts Options) (*report.Report, error) {
	s := &starter{wd: wd, rt: rt, opts: opts, report: report.New()}
	if err := s.look(); err != nil {
		return nil, err
	}
	if len(opts.Everywhere) == 0 {
		opts.Everywhere = []runtime.Runtime{rt}
	}
	if err := Stop(ctx, wd, opts.Everywhere...); err != nil {
		return nil, err
	}
	err := s.start(ctx)
	if err == nil {
		return s.report, nil
	}
	// The context may be what ended the start: cleaning up must not end with it.
	return nil, errors.Join(err, Stop(context.WithoutCancel(ctx), wd, rt))
}

type starter struct {
	wd       *workdir.Dir
	rt       runtime.Runtime
	opts     Options
	manifest *workdir.Manifest
	kinds    []workdir.Kind // those to serve
	bare     bool           // the OVS database has no rows yet
	report   *report.Report
	expected func(line string) bool // tells what ovs-vswitchd logs because of what a replica is
	local    []string               // tools that the runtime lacks, to be run on this host
	mu       sync.Mutex             // guards report and starting while servers start side by side
}

// look finds what there is to serve.
func (s *starter) look() error {
	var err error
	if s.manifest, err = s.wd.Manifest(); err != nil {
		return err
	}
	for _, k := range workdir.Kinds() {
		if _, err := os.Stat(s.wd.Database(k)); err == nil || k == workdir.OVS && s.hasDumps() {
			s.kinds = append(s.kinds, k)
		}
	}
	if len(s.kinds) == 0 {
		return fmt.Errorf("%w in %s: collect something first, for example: ovs-offline collect-sos-ovs SOSREPORT", ErrNothing, s.wd.Path())
	}
	return nil
}

func (s *starter) hasDumps() bool {
	found, _ := filepath.Glob(filepath.Join(escapeGlob(s.wd.RestoreFlows()), "*.dump"))
	return len(found) > 0
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func (s *starter) start(ctx context.Context) error {
	// Whoever finds what a killed start left has to know where to look.
	if err := workdir.WriteJSON(s.wd.ReplicaFile(), State{Runtime: s.rt.Name(), Started: time.Now().UTC().Truncate(time.Second)}); err != nil {
		return err
	}
	var asked sync.WaitGroup
	asked.Go(func() { s.askTools(ctx) })
	asked.Go(func() { s.rt.Isolated(ctx) }) // the daemons' starts need it; the databases come first
	err := s.startServers(ctx)
	asked.Wait()
	if err != nil {
		return err
	}
	if s.serves(workdir.OVS) {
		// The two have nothing in common but the file they are made from.
		var wg sync.WaitGroup
		wg.Go(func() { s.serveRecorded(ctx) })
		err := s.startSwitch(ctx)
		wg.Wait()
		if err != nil {
			return err
		}
	}
	return s.finish()
}

func (s *starter) serves(k workdir.Kind) bool { return slices.Contains(s.kinds, k) }

// startServers prepares each database and starts its server, side by side.
func (s *starter) startServers(ctx context.Context) error {
	errs := make([]error, len(s.kinds))
	var wg sync.WaitGroup
	for i, k := range s.kinds {
		wg.Go(func() {
			defer s.tellLoading(k)()
			if errs[i] = s.prepare(ctx, k); errs[i] == nil {
				errs[i] = s.run(ctx, server(s.wd, k))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *starter) run(ctx context.Context, d runtime.Daemon) error {
	s.mu.Lock()
	if s.opts.Starting != nil {
		s.opts.Starting(d.Role)
	}
	s.mu.Unlock()
	return s.rt.Start(ctx, d)
}

// prepare makes the working copy of a database: standalone, whole, of the
// schema that the installed daemons know.
func (s *starter) prepare(ctx context.Context, k workdir.Kind) error {
	for _, dir := range []string{filepath.Dir(s.wd.WorkingCopy(k)), s.wd.VarRun(k), filepath.Dir(s.wd.Log(""))} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if _, err := os.Stat(s.wd.Database(k)); errors.Is(err, os.ErrNotExist) && k == workdir.OVS {
		return s.makeDatabase(ctx)
	}
	info, remarks, err := file.Standalone(ctx, s.wd.Database(k), s.wd.WorkingCopy(k))
	if err != nil {
		return err
	}
	if info.Name != databaseName(k) {
		return fmt.Errorf("%s holds %s, not %s: collect it again with the right collect-db command", s.wd.Database(k), info.Name, databaseName(k))
	}
	for _, r := range remarks {
		s.remark(k.Title() + " database: " + r)
	}
	return s.upgrade(ctx, k)
}

// upgrade converts a working copy to the schema of the daemons that will serve
// it. Where that can't be had, it is served as it is.
func (s *starter) upgrade(ctx context.Context, k workdir.Kind) error {
	var failed error
	for _, path := range schemas(k) {
		schema, err := file.AskSchemaHead(ctx, s.tool, path)
		remark := ""
		if err == nil {
			remark, err = file.Upgrade(ctx, s.tool, s.wd.WorkingCopy(k), path, schema)
		}
		if remark != "" {
			s.remark(remark)
		}
		if err == nil {
			return ctx.Err()
		}
		if !errors.Is(err, file.ErrNoSchema) {
			failed = err
			break // that was the schema of the installed daemons
		}
		failed = cmp.Or(failed, err)
	}
	if ctx.Err() == nil {
		s.remark(k.Title() + " database: its schema is as it was recorded: " + failed.Error())
	}
	return ctx.Err()
}

func (s *starter) remark(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Remarks = append(s.report.Remarks, text)
}

// startSwitch edits the working copy, starts ovs-vswitchd on it and restores
// what no database holds.
func (s *starter) startSwitch(ctx context.Context) error {
	db, err := ovsdb.Connect(ctx, s.wd.Socket(workdir.OVS), ovsdb.OVS)
	if err != nil {
		return err
	}
	defer db.Close()
	if s.bare {
		if err := s.addBridges(ctx, db); err != nil {
			return err
		}
	}
	isolated, _ := s.rt.Isolated(ctx) // why not is among the runtime's remarks
	node := &restore.Node{Workdir: s.wd, Manifest: s.manifest, Runtime: s.rt, DB: db, Isolated: isolated, Report: s.report}
	if s.opts.Progress != nil {
		node.Progress = s.progress
	}
	s.expected = node.Expected
	if err := node.Load(ctx); err != nil {
		return err
	}
	if err := restore.Run(ctx, node, s.without(restore.Edits())); err != nil {
		return err
	}
	if err := s.run(ctx, vswitchd(s.wd)); err != nil {
		return err
	}
	if err := node.Settle(ctx); err != nil {
		return err
	}
	return restore.Run(ctx, node, s.without(restore.Steps()))
}

// progress tells of a step; a server may be starting meanwhile, and be told of.
func (s *starter) progress(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Progress(what)
}

func (s *starter) without(steps []restore.Step) []restore.Step {
	var kept []restore.Step
	for _, step := range steps {
		left := false
		for _, name := range s.opts.Without {
			left = left || name == step.Name
		}
		if !left {
			kept = append(kept, step)
		}
	}
	return kept
}

// finish writes what the replica is and how good, and the tools' wrappers.
func (s *starter) finish() error {
	for _, r := range s.rt.Remarks() {
		line, logged := strings.CutPrefix(r, roleVswitchd+" logged while it started: ")
		if !logged || s.expected == nil || !s.expected(line) {
			s.report.Remarks = append(s.report.Remarks, r)
		}
	}
	for _, c := range s.manifest.Collections {
		s.report.Lost = append(s.report.Lost, c.Lost...)
		s.report.Remarks = append(s.report.Remarks, c.Remarks...)
		for _, f := range c.Files {
			for _, r := range f.Remarks {
				s.report.Remarks = append(s.report.Remarks, f.Path+": "+r)
			}
		}
	}
	if err := workdir.WriteJSON(s.wd.ReportFile(), s.report); err != nil {
		return err
	}
	bin := scripts(s.wd, s.kinds)
	bin.Exec, bin.Local = s.opts.Exec, s.local
	if err := activate.Write(bin); err != nil {
		return err
	}
	return workdir.WriteJSON(s.wd.ReplicaFile(), State{Runtime: s.rt.Name(), Started: time.Now().UTC().Truncate(time.Second), Kinds: s.kinds})
}

// Stop ends all daemons of the workdir's replica in each of the runtimes,
// ovs-vswitchd first, and removes what Start made. Collected data stays. It
// needs no replica.json: the daemons are known by the workdir.
func Stop(ctx context.Context, wd *workdir.Dir, rts ...runtime.Runtime) error {
	for _, rt := range rts {
		if err := stopIn(ctx, wd, rt); err != nil {
			return err
		}
	}
	if !wd.Exists() {
		return nil
	}
	if err := activate.Remove(wd.Bin()); err != nil {
		return err
	}
	removeRuntimeFiles(wd)
	return nil
}

// stopIn ends ovs-vswitchd, then the servers side by side.
func stopIn(ctx context.Context, wd *workdir.Dir, rt runtime.Runtime) error {
	all := daemons(wd)
	if err := rt.Stop(ctx, all[0]); err != nil {
		return err
	}
	servers := all[1:]
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, d := range servers {
		wg.Go(func() { errs[i] = rt.Stop(ctx, d) })
	}
	wg.Wait()
	return cmp.Or(errors.Join(errs...), rt.End(ctx))
}
