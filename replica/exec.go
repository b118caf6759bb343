package replica

import (
	"cmp"
	"os"
	"slices"

	"ovs-offline/replica/activate"
	"ovs-offline/workdir"
)

// Scripts returns the parameters of the activate scripts and the wrappers, and of the
// environment of programs that run beside the replica's daemons.
func Scripts(wd *workdir.Dir, kinds []workdir.Kind) activate.Replica {
	replica := activate.Replica{Bin: wd.Bin(), OVSRunDir: wd.VarRun(workdir.OVS), OVNRunDir: wd.VarRun(workdir.NB), OVS: slices.Contains(kinds, workdir.OVS)}
	if manifest, err := wd.Manifest(); err == nil { // without it, only the prompt lacks the node
		for _, collection := range manifest.Collections {
			replica.Node = cmp.Or(replica.Node, collection.Node)
		}
	}
	if slices.Contains(kinds, workdir.NB) {
		replica.NBSocket = wd.Socket(workdir.NB)
	}
	if slices.Contains(kinds, workdir.SB) {
		replica.SBSocket = wd.Socket(workdir.SB)
	}
	if _, err := os.Stat(wd.RecordedSocket()); err == nil {
		replica.Recorded = wd.RecordedSocket()
	}
	return replica
}
