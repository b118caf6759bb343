package trace

import (
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
)

// TestTrunkOfTheAgentEntersByItsTap asks for packets of the parent and of a subport of a trunk
// on a node of real neutron with the Open vSwitch agent. They enter by the tap on the trunk's
// bridge, and come out where the live node's ofproto/trace said for the same packets.
func TestTrunkOfTheAgentEntersByItsTap(t *testing.T) {
	s := openReplica(t, "trunk/neutron-ovs-dvr-cmp-1")
	const bridge, tap = "tbr-f2f98c2c-c", "tap66dfbbbe-bd"
	for _, q := range []struct {
		from, to, protocol, port string
	}{
		{"66dfbbbe", "10.0.10.11", "icmp", "tap0da97168-17"},
		{"tap66dfbbbe-bd", "10.0.10.13", "icmp", "tapaa67d74b-64"},
		{"10.0.10.61", "10.0.10.11:80", "tcp", "tap0da97168-17"},
		{"a7ed7ff3", "10.0.20.11:4567", "tcp", "tap38e6379c-d2"},
	} {
		a, err := s.Ask(t.Context(), Between{From: q.from, To: q.to, Question: names.Question{Protocol: q.protocol}})
		if err != nil {
			t.Errorf("%s to %s: %v", q.from, q.to, err)
			continue
		}
		if first := a.Path[0]; a.Verdict != answer.Reachable || first.Bridge != bridge || first.Port != tap ||
			!comesOutAt(a, q.port) ||
			a.Return == nil || a.Return.Verdict != answer.Reachable || !comesOutAt(a.Return, tap) {
			t.Errorf("%s to %s enters at %s %s:\n%s", q.from, q.to, first.Bridge, first.Port, text(a))
		}
	}
	seen := map[string]bool{}
	for _, e := range s.Names().Senders() {
		if seen[e.LogicalPort] {
			t.Errorf("port %s is two endpoints, which would be asked about each other", e.LogicalPort)
		}
		seen[e.LogicalPort] = true
	}
}

// comesOutAt reports whether the packet arrives at a port.
func comesOutAt(a *answer.Answer, port string) bool {
	for _, o := range a.Outcomes {
		if o.Destination && o.Port == port {
			return true
		}
	}
	return false
}

// openReplica opens a session on the replica of a capture in testdata.
func openReplica(t *testing.T, folder string) *Session {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "xz")
	return adopted(t, collected.Report(t, captures.Report(t, folder)).Path())
}
