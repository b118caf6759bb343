package replica

import (
	"context"
	"os"
	"slices"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/activate"
	"ovs-offline/replica/runtime"
)

// Exec runs a program beside the replica's daemons, with the environment that
// activate sets, and returns its exit code.
func Exec(ctx context.Context, wd *workdir.Dir, kinds []workdir.Kind, e runtime.Executor, c runtime.Command) (int, error) {
	c.Env = scripts(wd, kinds).Environment()
	return e.Exec(ctx, c)
}

// Shell returns the arguments of an activated shell, and the variables to set in
// its environment.
func Shell(wd *workdir.Dir, kinds []workdir.Kind, shell string, interactive bool) (argv, env []string) {
	return scripts(wd, kinds).Shell(shell, interactive)
}

// scripts returns the parameters of the activate scripts and the wrappers.
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
