package replica

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/activate"
	"ovs-offline/replica/report"
	"ovs-offline/replica/restore"
	"ovs-offline/replica/restore/tables"
	"ovs-offline/replica/runtime"
)

// starter holds the state of one start.
type starter struct {
	wd        *workdir.Dir
	rt        runtime.Runtime
	opts      Options
	manifest  *workdir.Manifest
	kinds     []workdir.Kind // of the databases to serve
	restored  time.Time      // when all was restored
	empty     bool           // the OVS database was made without rows
	report    *report.Report
	facts     *tables.Facts          // about the collected flows
	expected  func(line string) bool // reports whether ovs-vswitchd logs this line in every replica
	changed   map[string][]string    // columns of the OVS database that the steps changed, by table
	memory    int64                  // the limit of ovs-vswitchd's memory in bytes, 0 for none
	hostTools []string               // tools that the runtime lacks; their wrappers run the tools of this host
	compared  chan struct{}          // closed once the report has the versions
	callbacks sync.Mutex             // serialises the calls of opts.Starting and opts.Progress
}

// findData determines the databases to serve.
func (s *starter) findData() error {
	var err error
	if s.manifest, err = s.wd.Manifest(); err != nil {
		return err
	}
	s.kinds, err = dataOf(s.wd)
	return err
}

// dataOf returns what servedKinds does, or an error that wraps ErrNothing if that is nothing.
func dataOf(wd *workdir.Dir) ([]workdir.Kind, error) {
	kinds := servedKinds(wd)
	if len(kinds) == 0 {
		return nil, fmt.Errorf("%w in %s: collect something first, for example: ovs-offline collect-sos-ovs SOSREPORT", ErrNothing, wd.Path())
	}
	return kinds, nil
}

// servedKinds returns the kinds of the databases that a replica of the workdir serves.
// The OVS database is made if there are only dumps.
func servedKinds(wd *workdir.Dir) []workdir.Kind {
	var kinds []workdir.Kind
	for _, k := range workdir.Kinds() {
		if _, err := os.Stat(wd.Database(k)); err == nil || k == workdir.OVS && hasDumps(wd) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func hasDumps(wd *workdir.Dir) bool {
	found, _ := fs.Glob(os.DirFS(wd.RestoreFlows()), "*.dump")
	return len(found) > 0
}

func (s *starter) serves(k workdir.Kind) bool { return slices.Contains(s.kinds, k) }

// start starts the server of the OVS database and ovs-vswitchd, which the restore
// needs, and starts everything else beside ovs-vswitchd.
func (s *starter) start(ctx context.Context) error {
	// The file lets a later command find what a killed start leaves.
	if err := workdir.WriteJSON(s.wd.ReplicaFile(), newState(s.rt, nil)); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if s.serves(workdir.OVS) {
		s.facts = tables.ReadFacts(ctx, s.wd) // while the daemons start
		group.Go(func() error {
			if _, err := s.startServer(ctx, workdir.OVS); err != nil {
				return err
			}
			return s.startSwitch(ctx, func() { s.startOthers(ctx, group) })
		})
	} else {
		s.startOthers(ctx, group)
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.finish()
}

// startOthers starts what ovs-vswitchd does not need, in the background.
func (s *starter) startOthers(ctx context.Context, group *errgroup.Group) {
	for _, k := range s.kinds {
		if k != workdir.OVS {
			group.Go(func() error {
				home, err := s.startServer(ctx, k)
				if err != nil {
					return err
				}
				return s.checkLogicalFlows(ctx, k, home)
			})
		}
	}
	if s.serves(workdir.OVS) {
		group.Go(func() error { s.serveRecorded(ctx); return nil })
		if s.serves(workdir.SB) {
			group.Go(func() error { s.compareOrigin(ctx); return nil })
		}
	}
	group.Go(func() error { s.compareVersions(ctx); close(s.compared); s.findDetrace(ctx); return nil })
}

// place is where the server of a database runs: in the replica's workdir, or in the home
// of a shared server.
type place struct {
	wd     *workdir.Dir
	rt     runtime.Runtime
	remark func(text string) // adds a line to the report
}

// startServer prepares a database and starts its server, or uses the shared one of the
// home that it returns.
func (s *starter) startServer(ctx context.Context, k workdir.Kind) (home *workdir.Dir, err error) {
	defer s.showDuration(k, "loading")()
	if home, err = s.useShared(ctx, k); home != nil || err != nil {
		return home, err
	}
	return nil, s.startIn(ctx, k, place{s.wd, s.rt, s.report.Remark})
}

func (s *starter) startIn(ctx context.Context, k workdir.Kind, p place) error {
	if err := s.prepare(ctx, k, p); err != nil {
		return err
	}
	d := server(p.wd, k)
	s.call(s.opts.Starting, d.Role)
	return p.rt.Start(ctx, d)
}

// showDuration reports every second what is done with a database, until stop is
// called. Neither ovsdb-server nor ovn-trace reports its progress.
func (s *starter) showDuration(k workdir.Kind, what string) (stop func()) {
	info, err := os.Stat(s.wd.Database(k))
	if err != nil {
		return func() {}
	}
	began, ended := time.Now(), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				s.progress(fmt.Sprintf("the %s database: %s %d MiB for %v", k.Title(), what, info.Size()>>20, time.Since(began).Round(time.Second)))
			}
		}
	})
	return func() { close(ended); wg.Wait() }
}

func (s *starter) progress(text string) { s.call(s.opts.Progress, text) }

// call calls a function of the options if it is set.
func (s *starter) call(function func(string), text string) {
	if function != nil {
		s.callbacks.Lock()
		defer s.callbacks.Unlock()
		function(text)
	}
}

func (s *starter) run(ctx context.Context, d runtime.Daemon) error {
	s.call(s.opts.Starting, d.Role)
	return s.rt.Start(ctx, d)
}

// prepare makes the working copy of a database: standalone, complete, and with the
// schema of the installed daemons.
func (s *starter) prepare(ctx context.Context, k workdir.Kind, p place) error {
	if err := makeFolders(filepath.Dir(p.wd.WorkingCopy(k)), p.wd.VarRun(k), filepath.Dir(p.wd.Log(""))); err != nil {
		return err
	}
	if _, err := os.Stat(s.wd.Database(k)); errors.Is(err, os.ErrNotExist) && k == workdir.OVS {
		return s.makeDatabase(ctx)
	}
	remarks, err := Copy(ctx, p.rt, k, s.wd.Database(k), p.wd.WorkingCopy(k), p.wd.Run())
	for _, r := range remarks {
		p.remark(r)
	}
	return err
}

func makeFolders(paths ...string) error {
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// tool runs a tool that needs no daemon.
func (s *starter) tool(ctx context.Context, argv ...string) ([]byte, error) {
	return s.rt.Tool(ctx, s.wd.Run(), nil, argv...)
}

// startSwitch edits the OVS database, starts ovs-vswitchd on it and restores the
// state that no database holds. It calls beside once ovs-vswitchd runs.
func (s *starter) startSwitch(ctx context.Context, beside func()) error {
	db, err := ovsdb.Connect(ctx, s.wd.Socket(workdir.OVS), ovsdb.OVS)
	if err != nil {
		return err
	}
	defer db.Close()
	if s.empty {
		if err := s.addBridges(ctx, db); err != nil {
			return err
		}
	}
	isolated, _ := s.rt.Isolated(ctx) // the reason is among the runtime's remarks
	node := &restore.Node{Workdir: s.wd, Manifest: s.manifest, Runtime: s.rt, DB: db, Isolated: isolated, Loopback: s.rt.HasLoopback(ctx),
		Report: s.report, Facts: s.facts, Progress: s.progress}
	s.expected = node.Expected
	if err := node.Load(ctx); err != nil {
		return err
	}
	if err := restore.Run(ctx, node, s.selected(restore.Edits())); err != nil {
		return err
	}
	if err := s.run(ctx, vswitchd(s.wd)); err != nil {
		return err
	}
	beside()
	if err := s.limitMemory(ctx, roomToRestore(s.wd)); err != nil {
		return err
	}
	if err := node.Settle(ctx); err != nil {
		return err
	}
	if err := restore.Run(ctx, node, s.selected(restore.Steps())); err != nil {
		return err
	}
	if err := s.limitMemory(ctx, roomForUse); err != nil {
		return err
	}
	s.changed = db.Changed()
	return s.countLoaded(ctx)
}

// selected returns the steps that opts.Without does not name.
func (s *starter) selected(steps []restore.Step) []restore.Step {
	return slices.DeleteFunc(steps, func(step restore.Step) bool { return slices.Contains(s.opts.Without, step.Name) })
}

// finish completes and writes the report, the wrappers and replica.json.
func (s *starter) finish() error {
	for _, r := range s.rt.Remarks() {
		line, logged := strings.CutPrefix(r, roleVswitchd+" logged while it started: ")
		if !logged || s.expected == nil || !s.expected(line) {
			s.report.Remark(r)
		}
	}
	s.report.Synthesised = s.manifest.Synthesis()
	for _, c := range s.manifest.Collections {
		s.report.Lost = append(s.report.Lost, c.Lost...)
		for _, r := range c.Remarks {
			s.report.Remark(r)
		}
		for _, f := range c.Files {
			for _, r := range f.Remarks {
				s.report.Remark(f.Path + ": " + r)
			}
		}
	}
	if err := workdir.WriteJSON(s.wd.ReportFile(), s.report); err != nil {
		return err
	}
	bin := Scripts(s.wd, s.kinds)
	bin.Exec, bin.Local, bin.TraceWarning = s.opts.Exec, s.hostTools, TraceWarning(s.wd, s.report)
	bin.Ended = endedAdvice(s.memory)
	if err := activate.Write(bin); err != nil {
		return err
	}
	state := newState(s.rt, s.kinds)
	state.Recorded, state.Running, state.Changed = s.report.Recorded, s.report.Running, s.changed
	state.Memory, state.Restored = s.memory, s.restored
	return workdir.WriteJSON(s.wd.ReplicaFile(), state)
}
