package local

import (
	"context"

	"ovs-offline/internal/versions"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// Replica is a replica that runs as local processes, for packages that take the running half of a node from their caller.
type Replica struct{}

// Running returns the state of the replica of a workdir.
func (Replica) Running(ctx context.Context, wd *workdir.Dir) (replica.State, error) {
	return replica.Find(ctx, wd, func() []runtime.Runtime { return Runtimes(wd).All(ctx) })
}

// Executor returns what runs programs beside it.
func (Replica) Executor(_ context.Context, wd *workdir.Dir, _ replica.State, _ bool) (runtime.Executor, error) {
	return newProcesses(wd), nil
}

// Run starts it with the programs of this machine.
func (Replica) Run(ctx context.Context, wd *workdir.Dir, _ string, _ versions.Pair) error {
	_, err := replica.Start(ctx, wd, newProcesses(wd), replica.Options{})
	return err
}

// Stop stops it.
func (Replica) Stop(ctx context.Context, wd *workdir.Dir) (started bool, err error) {
	return true, replica.Stop(ctx, wd, newProcesses(wd))
}
