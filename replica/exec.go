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

// ReadState reads what runs. The error wraps runtime.ErrNotRunning where nothing
// tells of it.
func ReadState(wd *workdir.Dir) (State, error) {
	var state State
	err := workdir.ReadJSON(wd.ReplicaFile(), &state)
	if errors.Is(err, os.ErrNotExist) {
		return State{}, fmt.Errorf("%w in %s: start one with: ovs-offline start", runtime.ErrNotRunning, wd.Path())
	}
	return state, err
}

// Find returns what runs and where. replica.json tells it; where that is lost or
// names a runtime that is not among these, the runtimes are asked, and
// replica.json is written anew.
func Find(ctx context.Context, wd *workdir.Dir, rts ...runtime.Runtime) (State, runtime.Runtime, error) {
	state, lost := ReadState(wd)
	if lost == nil {
		for _, rt := range rts {
			if rt.Name() == state.Runtime {
				return state, rt, nil
			}
		}
		return State{}, nil, fmt.Errorf("the replica in %s runs in %s, which does not answer", wd.Path(), state.Runtime)
	}
	for _, rt := range rts {
		state := State{Runtime: rt.Name(), Started: time.Now().UTC().Truncate(time.Second)}
		for _, k := range workdir.Kinds() {
			s, err := rt.State(ctx, server(wd, k))
			if err != nil {
				return State{}, nil, err
			}
			if s.Running {
				state.Kinds = append(state.Kinds, k)
			}
		}
		if len(state.Kinds) > 0 {
			return state, rt, workdir.WriteJSON(wd.ReplicaFile(), state)
		}
	}
	return State{}, nil, lost
}

// Exec runs a program beside the replica's daemons, with the environment that
// activate sets, and returns its exit code.
func Exec(ctx context.Context, wd *workdir.Dir, state State, rt runtime.Runtime, c runtime.Command) (int, error) {
	c.Env = scripts(wd, state.Kinds).Environment()
	return rt.Exec(ctx, c)
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
	return r
}
