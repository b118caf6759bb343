package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/activate"
	"ovs-offline/replica/runtime"
)

// Touched returns the runtime in which a start began, ended well or not; "" where
// nothing tells of one.
func Touched(wd *workdir.Dir) (string, error) {
	var state State
	err := workdir.ReadJSON(wd.ReplicaFile(), &state)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return state.Runtime, err
}

// ReadState reads what runs. The error wraps runtime.ErrNotRunning where nothing
// tells of it.
func ReadState(wd *workdir.Dir) (State, error) {
	var state State
	err := workdir.ReadJSON(wd.ReplicaFile(), &state)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(state.Kinds) == 0 {
		return State{}, fmt.Errorf("%w in %s: start one with: ovs-offline start", runtime.ErrNotRunning, wd.Path())
	}
	return state, err
}

// Find returns what runs. replica.json tells it; where that is lost, the
// runtimes are asked, and it is written anew.
func Find(ctx context.Context, wd *workdir.Dir, rts func() []runtime.Runtime) (State, error) {
	state, lost := ReadState(wd)
	if !errors.Is(lost, runtime.ErrNotRunning) {
		return state, lost
	}
	begun, err := Touched(wd)
	if err != nil {
		return State{}, err
	}
	for _, rt := range rts() {
		if begun != "" && begun != rt.Name() {
			continue // a start was cut off, and not there
		}
		state, err := ask(ctx, wd, rt)
		if err != nil {
			return State{}, err
		}
		if len(state.Kinds) > 0 {
			return state, workdir.WriteJSON(wd.ReplicaFile(), state)
		}
	}
	return State{}, lost
}

// ask asks one runtime what it runs.
func ask(ctx context.Context, wd *workdir.Dir, rt runtime.Runtime) (State, error) {
	state := State{Runtime: rt.Name(), Started: time.Now().UTC().Truncate(time.Second)}
	for _, k := range workdir.Kinds() {
		s, err := rt.State(ctx, server(wd, k))
		if err != nil {
			return State{}, err
		}
		if s.Running {
			state.Kinds = append(state.Kinds, k)
		}
	}
	return state, nil
}

// Exec runs a program beside the replica's daemons, with the environment that
// activate sets, and returns its exit code.
func Exec(ctx context.Context, wd *workdir.Dir, kinds []workdir.Kind, e runtime.Executor, c runtime.Command) (int, error) {
	c.Env = scripts(wd, kinds).Environment()
	return e.Exec(ctx, c)
}

// Shell is how an activated shell is run beside the replica: its arguments, and
// what is set in its environment.
func Shell(wd *workdir.Dir, kinds []workdir.Kind, shell string, interactive bool) (argv, env []string) {
	return scripts(wd, kinds).Shell(shell, interactive)
}

// scripts is what activate and the wrappers are told of a replica.
func scripts(wd *workdir.Dir, kinds []workdir.Kind) activate.Replica {
	r := activate.Replica{Bin: wd.Bin(), OVSRunDir: wd.VarRun(workdir.OVS), OVNRunDir: wd.VarRun(workdir.NB), OVS: slices.Contains(kinds, workdir.OVS)}
	if slices.Contains(kinds, workdir.NB) {
		r.NBSocket = wd.Socket(workdir.NB)
	}
	if slices.Contains(kinds, workdir.SB) {
		r.SBSocket = wd.Socket(workdir.SB)
	}
	if _, err := os.Stat(wd.RecordedSocket()); err == nil {
		r.Recorded = wd.RecordedSocket()
	}
	return r
}
