package k8s_test

import (
	"path/filepath"
	"testing"

	"ovs-offline/collect/k8s"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/oracle/fidelity"
)

// TestReplicasAnswerLikeLiveNodes collects live nodes, and compares the answers of
// their replicas with those of the nodes: the trace of each packet, and every flow,
// group, meter and TLV mapping in the output of ovs-ofctl.
func TestReplicasAnswerLikeLiveNodes(t *testing.T) {
	// A collection of a container knows nothing of what the databases hold: openstack is in the sweep.
	for _, topology := range sweep.Rows([]string{shared, "openstack"},
		func(topology string) bool { return topology == shared }) {
		t.Run(topology, func(t *testing.T) {
			if !process.New(process.Options{}).HasLoopback(t.Context()) {
				t.Skip("the collectors of a live node can only be restored where daemons have a network namespace of their own")
			}
			dir, exec := live(t, topology)
			at := filepath.Join(t.TempDir(), "wd")
			r := collectOne(t, cluster(exec, interconnect("worker")...), at, k8s.Options{Nodes: []string{"worker"}})
			checkNothingLost(t, r)
			oracle := filepath.Join(t.TempDir(), "oracle")
			mustLab(t, "oracle", dir, oracle)
			n := fidelity.Started(t, at)
			f, err := n.Compare(t.Context(), filepath.Join(oracle, "packets"), filepath.Join(oracle, "live"))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s\n%s", fidelity.Header, f)
			for _, d := range f.Differences {
				t.Logf("differs: %.800s", d)
			}
			if f.Results+f.Balanced != f.Packets {
				t.Errorf("the result lines of %d packets differ", f.Packets-f.Results-f.Balanced)
			}
			if !n.Report.Complete() {
				t.Errorf("not all was restored: set aside %v, lost %v, steps %v", n.Report.Rejected, n.Report.Lost, n.Report.Steps)
			}
			checkTruth(t, n, filepath.Join(oracle, "truth"))
			for _, s := range n.Report.Steps {
				if s.Status != report.Restored && s.Status != report.Idle {
					t.Logf("%s: %s: %q", s.Step, s.Status, s.Details)
				}
			}
		})
	}
}

func checkNothingLost(t *testing.T, r k8s.Result) {
	t.Helper()
	for _, c := range r.Collections {
		if len(c.Lost) > 0 {
			t.Errorf("%s: lost %q", c.Kind, c.Lost)
		}
		for _, f := range c.Files {
			expect.Equal(t, f.Remarks, nil, f.Path)
		}
	}
}

// checkTruth compares the output of ovs-ofctl on the live node with that on
// the replica.
func checkTruth(t *testing.T, n *fidelity.Replica, truth string) {
	t.Helper()
	differ, err := fidelity.Truth(truth, func(args ...string) (string,
		error) {
		return n.Tool(t.Context(), "ovs-ofctl", args...)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differ {
		t.Error(d)
	}
}
