package rules

import "testing"

// TestNetfilterWords has rules as neutron's agents and OVN-Kubernetes write them.
func TestNetfilterWords(t *testing.T) {
	for _, c := range []struct{ chain, rule, want string }{
		{"nat neutron-l3-agent-float-snat", "-A neutron-l3-agent-float-snat -s 10.101.0.11/32 -j SNAT --to-source 203.0.113.7 --random-fully", "floating IP 203.0.113.7 of 10.101.0.11"},
		{"nat neutron-l3-agent-PREROUTING", "-A neutron-l3-agent-PREROUTING -d 203.0.113.7/32 -j DNAT --to-destination 10.101.0.11", "floating IP 203.0.113.7 of 10.101.0.11"},
		{"nat neutron-l3-agent-snat", "-A neutron-l3-agent-snat -o qg-5fd1b7e0-11 -j SNAT --to-source 203.0.113.5 --random-fully", "SNAT of the router to 203.0.113.5"},
		{"nat neutron-l3-agent-PREROUTING", "-A neutron-l3-agent-PREROUTING -d 169.254.169.254/32 -i qr-+ -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 9697", "metadata of instances"},
		{"filter neutron-openvswi-sg-fallback", `-A neutron-openvswi-sg-fallback -m comment --comment "Default drop rule for unmatched traffic." -j DROP`, "security groups: nothing allows the packet"},
		{"nat OVN-KUBE-NODEPORT", "-A OVN-KUBE-NODEPORT -p tcp -m addrtype --dst-type LOCAL -m tcp --dport 31234 -j DNAT --to-destination 10.96.0.7:80", "service, to 10.96.0.7:80"},
		{"filter FORWARD", "-A FORWARD -s 10.0.0.0/8 -j ACCEPT", ""},
	} {
		if got := NetfilterWords(c.chain, c.rule); got != c.want {
			t.Errorf("%s: %q, want %q", c.rule, got, c.want)
		}
	}
}

// TestNetfilterReasons names the kinds of drops by the chains of neutron's agent.
func TestNetfilterReasons(t *testing.T) {
	for chain, want := range map[string]Reason{"filter neutron-openvswi-sg-fallback": ACL, "filter neutron-openvswi-s1f0a2b3c-4": PortSecurity,
		"filter neutron-openvswi-i1f0a2b3c-4": ACL, "filter FORWARD": Netfilter} {
		if got := NetfilterReason(chain); got != want {
			t.Errorf("%s: %s, want %s", chain, got, want)
		}
	}
}
