package follow_test

import (
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/test/oracle/sets"
)

// TestPredictionsThroughNamespacesAreWhatTheKernelDid does the same for the sets whose packets pass network
// namespaces, the node's own as well: one kernel forwards, routes, filters and tracks all connections of a node.
func TestPredictionsThroughNamespacesAreWhatTheKernelDid(t *testing.T) {
	all, undetermined := 0, 0
	for _, s := range sets.OfKernel(t, sets.KernelNamespaceNames()) {
		t.Run(s.Name, func(t *testing.T) {
			folder, hosts := openAll(t, s, sets.Native, "")
			all += len(s.Packets)
			undetermined += comparePredictions(t, s, hosts, follow.Options{Neighbour: neighboursIn(t, folder)})
		})
	}
	if undetermined*33 > all {
		t.Errorf("%d of %d packets are undetermined: at most 3 %% may be", undetermined, all)
	}
}
