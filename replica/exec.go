package replica

import (
	"cmp"
	"os"
	"slices"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/activate"
)

// Scripts returns the parameters of the activate scripts and the wrappers, and of the
// environment of programs that run beside the replica's daemons.
func Scripts(wd *workdir.Dir, kinds []workdir.Kind) activate.Replica {
	r := activate.Replica{Bin: wd.Bin(), OVSRunDir: wd.VarRun(workdir.OVS), OVNRunDir: wd.VarRun(workdir.NB), OVS: slices.Contains(kinds, workdir.OVS)}
	if m, err := wd.Manifest(); err == nil { // without it, only the prompt lacks the node
		for _, c := range m.Collections {
			r.Node = cmp.Or(r.Node, c.Node)
		}
	}
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
