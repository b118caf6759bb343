// Package replica starts a replica of the node whose data a workdir holds, and manages
// it: real ovsdb-servers and a real ovs-vswitchd that answer as the node's did.
// It is independent of the source of the data and of the runtime that runs the daemons.
package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/activate"
	"ovs-offline/replica/logicalflows"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// Options are the options of Start.
type Options struct {
	// Everywhere holds the runtimes in which an earlier replica of the workdir may run,
	// which Start stops first; nil for only the runtime to start in.
	Everywhere []runtime.Runtime
	// Exec is the beginning of a command line that runs a tool beside the
	// replica, for the wrappers of a runtime whose tools are not on this host.
	Exec []string
	// Starting is called before each daemon is started, and Progress at each step of
	// the restore; both may be nil. They are never called at the same time.
	Starting func(role string)
	Progress func(text string)
	// VersionsNamed reports that the user named the image or the versions to run: the
	// report then gives no advice on others.
	VersionsNamed bool
	// Shared holds the digests of the OVN databases whose ovsdb-server the replica shares
	// with the replicas of workdirs in the same folder, by kind. Where the runtime or the file
	// system can't, the replica gets a server of its own.
	Shared map[workdir.Kind]string
	// Without names steps to leave out, so that tests can show the effect of each.
	Without []string
}

// ErrNothing is wrapped when a workdir holds no data for a replica.
var ErrNothing = errors.New("nothing to start")

// Start starts a replica of the workdir in place of an earlier one and returns the
// report on it. After an error, no daemon and no file of the replica is left.
func Start(ctx context.Context, wd *workdir.Dir, rt runtime.Runtime, opts Options) (*report.Report, error) {
	starter := &starter{wd: wd, rt: rt, opts: opts, report: report.New(), compared: make(chan struct{}), progress: &progress{options: opts}}
	if err := starter.findData(); err != nil {
		return nil, err
	}
	if len(opts.Everywhere) == 0 {
		opts.Everywhere = []runtime.Runtime{rt}
	}
	if err := Stop(ctx, wd, opts.Everywhere...); err != nil {
		return nil, err
	}
	err := starter.start(ctx)
	if err == nil {
		return starter.report, nil
	}
	// The context may have ended, which must not end the cleanup.
	return nil, errors.Join(err, Stop(context.WithoutCancel(ctx), wd, rt))
}

// Stop stops all daemons of the workdir's replica in each of the runtimes,
// ovs-vswitchd first, and removes the files that Start made. Collected data stays.
// Stop needs no replica.json: the runtimes find the daemons by the workdir. A database
// server that other replicas use goes on running; one that no replica uses any more ends.
func Stop(ctx context.Context, wd *workdir.Dir, rts ...runtime.Runtime) error {
	if err := leaveShared(wd); err != nil {
		return err
	}
	if err := stopNamespaces(ctx, wd); err != nil {
		return err
	}
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
	return EndUnused(ctx, wd.Shared(), rts...)
}

// stopIn stops ovs-vswitchd, then the servers side by side, and the ovn-trace of a start
// that was killed.
func stopIn(ctx context.Context, wd *workdir.Dir, rt runtime.Runtime) error {
	all := daemons(wd)
	if err := rt.Stop(ctx, all[0]); err != nil {
		return err
	}
	others := append(all[1:], logicalflows.Tracer(wd.Tracer()))
	errs := make([]error, len(others))
	var wg sync.WaitGroup
	for i, daemon := range others {
		wg.Go(func() { errs[i] = rt.Stop(ctx, daemon) })
	}
	wg.Wait()
	return cmp.Or(errors.Join(errs...), rt.End(ctx))
}

// State is the document replica.json: what Start started.
type State struct {
	Runtime string    `json:"runtime"`
	Root    string    `json:"root,omitempty"` // of the image whose tools run as local processes; "" for this host's
	Started time.Time `json:"started"`
	// Restored is when all was restored; zero before.
	Restored time.Time      `json:"restored,omitzero"`
	Kinds    []workdir.Kind `json:"kinds"` // of the databases; none until the start is complete
	// Recorded and Running are the versions on the node and of the replica's programs.
	Recorded versions.Pair `json:"recorded"`
	Running  versions.Pair `json:"running"`
	// Memory is the limit of ovs-vswitchd's memory in bytes, 0 without one.
	Memory int64 `json:"memory_limit,omitempty"`
	// Changed names the columns of the OVS database that start changed, by table.
	Changed map[string][]string `json:"changed,omitempty"`
	// Pod is where a replica in a cluster runs; nil for the other runtimes.
	Pod *Place `json:"pod,omitempty"`
}

// newState returns the state of a replica that starts now.
func newState(rt runtime.Runtime, kinds []workdir.Kind) State {
	return State{Runtime: rt.Name(), Root: rt.Root(), Started: time.Now().UTC().Truncate(time.Second), Kinds: kinds}
}

// LastRuntime returns the name of the runtime in which the last start began, even if
// that start was not completed; "" without replica.json.
func LastRuntime(wd *workdir.Dir) (string, error) {
	state, err := LastState(wd)
	return state.Runtime, err
}

// LastState returns the state that the last start wrote, even if that start was not
// completed; an empty one without replica.json.
func LastState(wd *workdir.Dir) (State, error) {
	var state State
	err := workdir.ReadUnsynced(wd.ReplicaFile(), &state)
	if errors.Is(err, os.ErrNotExist) {
		return State{}, nil
	}
	return state, err
}

// ReadState reads replica.json. Its error wraps runtime.ErrNotRunning before a
// completed start.
func ReadState(wd *workdir.Dir) (State, error) {
	var state State
	err := workdir.ReadUnsynced(wd.ReplicaFile(), &state)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(state.Kinds) == 0 {
		return State{}, fmt.Errorf("%w in %s", runtime.ErrNotRunning, wd.Path())
	}
	return state, err
}

// Find returns the state of the running replica. If replica.json is lost, it
// asks the runtimes for the daemons and writes the file again.
func Find(ctx context.Context, wd *workdir.Dir, rts func() []runtime.Runtime) (State, error) {
	state, notRunning := ReadState(wd)
	if !errors.Is(notRunning, runtime.ErrNotRunning) {
		return state, notRunning
	}
	last, err := LastRuntime(wd)
	if err != nil {
		return State{}, err
	}
	for _, rt := range rts() {
		if last != "" && last != rt.Name() {
			continue // an interrupted start was in another runtime
		}
		var kinds []workdir.Kind
		for _, kind := range workdir.Kinds() {
			s, err := rt.State(ctx, server(wd, kind))
			if err != nil {
				return State{}, err
			}
			if s.Running {
				kinds = append(kinds, kind)
			}
		}
		if len(kinds) > 0 {
			state := newState(rt, kinds)
			return state, workdir.WriteUnsynced(wd.ReplicaFile(), state)
		}
	}
	return State{}, notRunning
}
