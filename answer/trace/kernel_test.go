package trace

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/test/oracle/sets"
)

// sentAgain is how the remark ends of an answer about a packet that is repeated, because the
// first one of a client is lost.
const sentAgain = "this is about the packet as it is sent again"

// TestAnswersAreWhatTheKernelDid asks for each packet of the sets that ran on the kernel's
// datapath, and compares the verdict with what the kernel did. An answer that leaves it open
// says why.
func TestAnswersAreWhatTheKernelDid(t *testing.T) {
	for _, recorded := range sets.OfKernel(t, sets.KernelNames()) {
		t.Run(recorded.Name, func(t *testing.T) {
			s := openRecorded(t, startReplicas(t, recorded), nil)
			verdicts := map[answer.Verdict]int{}
			for _, p := range recorded.Packets {
				if len(p.After) > 0 {
					continue // package follow compares what depends on earlier packets
				}
				a := ask(t, s, p).answer
				verdicts[a.Verdict]++
				real := recorded.Whole(p)
				if slices.ContainsFunc(a.Remarks, func(text string) bool { return strings.HasSuffix(text, sentAgain) }) {
					var err error
					if real, err = recorded.Repetition(real); err != nil {
						t.Errorf("packet %d (%s): %v\n%s", p.ID, p.Shows, err, text(a))
						continue
					}
				}
				if wrong := contradicts(a, real); wrong != "" {
					t.Errorf("packet %d (%s): %s: %s\n%s", p.ID, p.Shows, p.Flow, wrong, text(a))
				}
			}
			t.Logf("%s: %v", recorded.Name, verdicts)
		})
	}
}

// contradicts returns what is wrong with the verdict about a packet, "" for nothing.
func contradicts(a *answer.Answer, p *sets.Packet) string {
	switch {
	case a.Verdict == answer.Undetermined && len(a.Missing) == 0:
		return "the verdict is UNDETERMINED, and nothing is named as missing"
	case a.Verdict == answer.Undetermined || p.Class == sets.Generated:
		return "" // package follow compares what OVN makes
	case p.Class == sets.Dropped && a.Verdict != answer.Unreachable:
		return "the kernel dropped the packet"
	case p.Class == sets.Delivered && a.Verdict == answer.Unreachable:
		return "the kernel delivered the packet"
	}
	return ""
}
