package follow_test

import (
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

// TestPredictionsThroughNamespaces runs the lab's sets whose routers are network namespaces, in which a real
// kernel routes, translates and filters. Of each packet it compares where the tracer says that it comes out, and
// with which headers, with what really came out.
func TestPredictionsThroughNamespaces(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "unshare", "xz")
	all, undetermined := 0, 0
	for _, name := range slices.Concat(sets.NamespaceNames(), sets.OwnNames()) {
		t.Run(name, func(t *testing.T) {
			s := sets.RecordedNamespaces(t, "../../../scripts/lab/lab", name)
			all += len(s.Packets)
			undetermined += compareThroughNamespaces(t, s)
		})
	}
	if undetermined*33 > all {
		t.Errorf("%d of %d packets are undetermined: at most 3 %% may be", undetermined, all)
	}
}

// TestPredictionsThroughVRFsAreWhatTheKernelDid does the same with the recorded sets whose nodes have VRFs, whether
// this machine's kernel has some or not.
func TestPredictionsThroughVRFsAreWhatTheKernelDid(t *testing.T) {
	for _, s := range sets.OfKernel(t, sets.VRFNames()) {
		t.Run(s.Name, func(t *testing.T) {
			if undetermined := compareThroughNamespaces(t, s); undetermined*33 > len(s.Packets) {
				t.Errorf("%d of %d packets are undetermined: at most 3 %% may be", undetermined, len(s.Packets))
			}
		})
	}
}

// compareThroughNamespaces compares the predictions for a recorded set, and returns how many are undetermined.
func compareThroughNamespaces(t *testing.T, s *sets.Set) int {
	folder, hosts := openAll(t, s, sets.Native, "")
	for _, h := range hosts {
		h.Conntrack.Userspace = true
	}
	return comparePredictions(t, s, hosts, follow.Options{Neighbour: neighboursIn(t, folder)})
}

// neighboursIn returns which ports of the nodes in a folder answer for an address.
func neighboursIn(t *testing.T, dir string) func(node, port string, address netip.Addr) string {
	t.Helper()
	all, err := snapshot.OpenNodes(filepath.Clean(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	deployments, _, err := all.Deployments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known, err := names.Load(t.Context(), deployments)
	if err != nil {
		t.Fatal(err)
	}
	return func(node, port string, address netip.Addr) string {
		for _, holder := range known.WithIP(address) {
			if holder.Node == node && holder.LogicalPort == port {
				return holder.MAC
			}
		}
		return ""
	}
}
