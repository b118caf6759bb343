package follow_test

import (
	"strings"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/test/oracle/sets"
)

// TestPredictionsAreWhatTheKernelDid compares, for each packet of the sets that ran on the
// kernel's datapath, where the tracer says that it comes out, and with which headers, with
// what the kernel did.
func TestPredictionsAreWhatTheKernelDid(t *testing.T) {
	for _, s := range sets.OfKernel(t, sets.KernelNames()) {
		t.Run(s.Name, func(t *testing.T) {
			_, hosts := openAll(t, s, sets.Native, "")
			undetermined := comparePredictions(t, s, hosts, follow.Options{})
			later := 0
			for _, p := range s.Packets {
				if strings.Contains(p.Flow, "nw_frag=later") {
					later++ // its first fragment is not in the question
				}
			}
			if others := undetermined - later; others*50 > len(s.Packets) {
				t.Errorf("%d of %d packets that are not later fragments are undetermined: at most 2 %% may be", others,
					len(s.Packets))
			}
		})
	}
}
