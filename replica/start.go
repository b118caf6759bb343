package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/activate"
	"ovs-offline/replica/linux/keeper"
	"ovs-offline/replica/report"
	"ovs-offline/replica/restore"
	"ovs-offline/replica/restore/tables"
	"ovs-offline/replica/runtime"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// starter holds the state of one start.
type starter struct {
	wd        *workdir.Dir
	rt        runtime.Runtime
	opts      Options
	manifest  *workdir.Manifest
	kinds     []workdir.Kind // of the databases to serve
	restored  time.Time      // when all was restored
	made      bool           // the OVS database was made from what commands printed
	report    *report.Report
	facts     *tables.Facts          // about the collected flows
	expected  func(line string) bool // reports whether ovs-vswitchd logs this line in every replica
	changed   map[string][]string    // columns of the OVS database that the steps changed, by table
	memory    int64                  // the limit of ovs-vswitchd's memory in bytes, 0 for none
	hostTools []string               // tools that the runtime lacks; their wrappers run the tools of this host
	compared  chan struct{}          // closed once the report has the versions
	progress  *progress
	keeper    *keeper.Started // of the network namespaces, until the start is complete; nil without
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

// dataOf returns the kinds that snapshot.ServedKinds returns, or an error that wraps ErrNothing if there are none.
func dataOf(wd *workdir.Dir) ([]workdir.Kind, error) {
	kinds := snapshot.ServedKinds(wd)
	if snapshot.HoldsOnlyHost(wd) {
		return nil, fmt.Errorf("%w in %s: it holds only logs and outputs of the machine, and neither databases nor flows", ErrNothing, wd.Path())
	}
	if manifest, err := wd.Manifest(); err == nil && len(kinds) == 0 && manifest.Collection(workdir.OVS) != nil {
		return nil, fmt.Errorf("%w in %s: it has outputs of Open vSwitch, and neither a database nor flows nor what a database is made from: add the outputs of "+
			"ovs-vsctl show and of ovs-ofctl dump-flows BRIDGE to the source, and collect it again", ErrNothing, wd.Path())
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("%w in %s: collect something first, for example: ovs-offline collect-sos-ovs SOSREPORT", ErrNothing, wd.Path())
	}
	return kinds, nil
}

func (s *starter) serves(kind workdir.Kind) bool { return slices.Contains(s.kinds, kind) }

// start starts the server of the OVS database and ovs-vswitchd, which the restore
// needs, the other servers beside them, and everything else beside ovs-vswitchd.
func (s *starter) start(ctx context.Context) error {
	// The file lets a later command find what a killed start leaves.
	if err := workdir.WriteUnsynced(s.wd.ReplicaFile(), newState(s.rt, nil)); err != nil {
		return err
	}
	defer s.closeNamespaces()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { s.startNamespaces(ctx); return nil })
	if s.serves(workdir.OVS) {
		s.facts = tables.ReadFacts(ctx, s.wd) // while the daemons start
		group.Go(func() error {
			if _, err := s.startServer(ctx, workdir.OVS); err != nil {
				return err
			}
			return s.startSwitch(ctx, func() { s.startBeside(ctx, group) })
		})
	} else {
		s.startBeside(ctx, group)
	}
	s.startOVN(ctx, group)
	if err := group.Wait(); err != nil {
		return err
	}
	if err := s.finish(); err != nil {
		return err
	}
	return s.keepNamespaces()
}

// startOVN starts the servers of the OVN databases, in the background.
func (s *starter) startOVN(ctx context.Context, group *errgroup.Group) {
	for _, kind := range s.kinds {
		if kind != workdir.OVS {
			group.Go(func() error {
				home, err := s.startServer(ctx, kind)
				if err != nil {
					return err
				}
				return s.checkLogicalFlows(ctx, kind, home)
			})
		}
	}
}

// startBeside starts what needs the server of the OVS database but not ovs-vswitchd, in the
// background.
func (s *starter) startBeside(ctx context.Context, group *errgroup.Group) {
	if s.serves(workdir.OVS) {
		group.Go(func() error { s.serveRecorded(ctx); return nil })
		if s.serves(workdir.SB) {
			group.Go(func() error { s.compareOrigin(ctx); return nil })
		}
	}
	group.Go(func() error { s.compareVersions(ctx); close(s.compared); s.findDetrace(ctx); return nil })
}

// location is where the server of a database runs: in the replica's workdir, or in the home
// of a shared server.
type location struct {
	wd     *workdir.Dir
	rt     runtime.Runtime
	remark func(text string) // adds a line to the report
}

// startServer prepares a database and starts its server, or uses the shared one of the
// home that it returns.
func (s *starter) startServer(ctx context.Context, kind workdir.Kind) (home *workdir.Dir, err error) {
	defer s.progress.showDuration(s.wd, kind, "loading")()
	if home, err = s.useShared(ctx, kind); home != nil || err != nil {
		return home, err
	}
	return nil, s.startIn(ctx, kind, location{s.wd, s.rt, s.report.Remark})
}

func (s *starter) startIn(ctx context.Context, kind workdir.Kind, p location) error {
	if err := s.prepare(ctx, kind, p); err != nil {
		return err
	}
	daemon := server(p.wd, kind)
	s.progress.starting(daemon.Role)
	return p.rt.Start(ctx, daemon)
}

func (s *starter) run(ctx context.Context, daemon runtime.Daemon) error {
	s.progress.starting(daemon.Role)
	return s.rt.Start(ctx, daemon)
}

// prepare makes the working copy of a database: standalone, complete, and with the
// schema of the installed daemons.
func (s *starter) prepare(ctx context.Context, kind workdir.Kind, p location) error {
	if err := makeFolders(filepath.Dir(p.wd.WorkingCopy(kind)), p.wd.VarRun(kind), filepath.Dir(p.wd.Log(""))); err != nil {
		return err
	}
	if _, err := os.Stat(s.wd.Database(kind)); errors.Is(err, os.ErrNotExist) && kind == workdir.OVS {
		return s.makeDatabase(ctx)
	}
	remarks, err := Copy(ctx, p.rt, kind, s.wd.Database(kind), p.wd.WorkingCopy(kind), p.wd.Run())
	for _, remark := range remarks {
		p.remark(remark)
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
	isolated, _ := s.rt.Isolated(ctx) // the reason is among the runtime's remarks
	node := &restore.Replica{Workdir: s.wd, Manifest: s.manifest, Runtime: s.rt, DB: db, Isolated: isolated, Loopback: s.rt.HasLoopback(ctx),
		Report: s.report, Facts: s.facts, Progress: s.progress.print}
	s.expected = node.Expected
	if err := node.Load(ctx); err != nil {
		return err
	}
	if err := restore.Run(ctx, node, without(s.opts.Without, restore.Edits())); err != nil {
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
	if err := restore.Run(ctx, node, without(s.opts.Without, restore.Steps())); err != nil {
		return err
	}
	if err := s.limitMemory(ctx, roomForUse); err != nil {
		return err
	}
	s.changed = db.Changed()
	return s.countLoaded(ctx)
}

// without returns the steps that have none of these names.
func without(names []string, steps []restore.Step) []restore.Step {
	return slices.DeleteFunc(steps, func(step restore.Step) bool { return slices.Contains(names, step.Name) })
}

// finish completes and writes the report, the wrappers and replica.json.
func (s *starter) finish() error {
	for _, remark := range s.rt.Remarks() {
		line, logged := strings.CutPrefix(remark, roleVswitchd+" logged while it started: ")
		if !logged || s.expected == nil || !s.expected(line) {
			s.report.Remark(remark)
		}
	}
	s.report.Synthesised, s.report.Built, s.report.Moments = s.manifest.Synthesis(), s.manifest.Built(), s.manifest.Moments()
	for _, collection := range s.manifest.Collections {
		if collection.Kind == workdir.Host {
			continue // the replica does not use it
		}
		if made := s.manifest.FromPrinted(collection.Kind); made != nil {
			for _, assumption := range made.Assumptions {
				s.report.Remark(collection.Kind.Title() + " database, made from its printed tables: " + assumption)
			}
		}
		s.report.Lost = append(s.report.Lost, collection.Lost...)
		for _, remark := range collection.Remarks {
			s.report.Remark(remark)
		}
		for _, file := range collection.Files {
			for _, remark := range file.Remarks {
				s.report.Remark(file.Path + ": " + remark)
			}
		}
	}
	if err := workdir.WriteUnsynced(s.wd.ReportFile(), s.report); err != nil {
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
	return workdir.WriteUnsynced(s.wd.ReplicaFile(), state)
}
