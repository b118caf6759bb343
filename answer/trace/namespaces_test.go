package trace

import (
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/ovn/names"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

// TestQuestionsThroughNamespaces asks by names about packets of the kinds that the lab sent through the namespaces of
// its routers and bridges, and compares the verdict with what became of those, and the rule with the one that the
// agents had written for it.
func TestQuestionsThroughNamespaces(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "unshare", "xz")
	for name, questions := range map[string][]struct {
		from, to, protocol string
		port               uint16
		verdict            answer.Verdict
		says               string // a part of the short form
	}{
		"neutron-routers": {
			{"10.201.0.12", "external/198.51.100.9", "tcp", 443, answer.Reachable, "SNAT of the router to 203.0.113.5"},
			{"10.201.0.11", "external/198.51.100.9", "icmp", 0, answer.Reachable, "floating IP 203.0.113.21 of 10.201.0.11"},
			{"10.201.0.11", "10.202.0.12", "tcp", 22, answer.Reachable, "no SNAT between the router's own networks"},
			{"10.201.0.11", "10.202.0.12", "tcp", 80, answer.Unreachable, "ACL"},
			{"10.201.0.11", "203.0.113.31", "icmp", 0, answer.Reachable, "floating IP 203.0.113.31 of 10.205.0.11"},
			{"10.205.0.11", "10.206.0.12", "icmp", 0, answer.Reachable, "qrouter-"},
			{"10.201.0.11", "10.201.0.1", "icmp", 0, answer.Reachable, "answered by qrouter-"},
			{"10.203.0.11", "external/198.51.100.9", "tcp", 443, answer.Unreachable, "no route"},
		},
		"neutron-hybrid": {
			{"10.211.0.11", "10.211.0.13", "tcp", 22, answer.Reachable, "qvo"},
			{"10.211.0.11", "10.211.0.13", "tcp", 443, answer.Unreachable, "security groups: nothing allows the packet"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := sets.RecordedNamespaces(t, "../../scripts/lab/lab", name)
			s := openSet(t, startReplicas(t, recorded), nil)
			for _, q := range questions {
				got, err := s.Ask(t.Context(), Between{From: q.from, To: q.to, Question: names.Question{Protocol: q.protocol, DstPort: q.port}})
				if err != nil {
					t.Errorf("%s to %s: %v", q.from, q.to, err)
					continue
				}
				var text strings.Builder
				if err := got.Write(&text, answer.Options{}); err != nil {
					t.Fatal(err)
				}
				if got.Verdict != q.verdict || !strings.Contains(text.String(), q.says) {
					t.Errorf("%s to %s, %s %d: want %s with %q\n%s", q.from, q.to, q.protocol, q.port, q.verdict, q.says, text.String())
				}
			}
		})
	}
}
