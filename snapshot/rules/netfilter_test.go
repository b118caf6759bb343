package rules

import "testing"

// TestNetfilterWords has rules as neutron's agents and OVN-Kubernetes write them.
func TestNetfilterWords(t *testing.T) {
	serviceAt := func(address string) string {
		return map[string]string{"10.96.0.7:80": "shop/db", "169.254.169.3:31234": "shop/web"}[address]
	}
	for _, c := range []struct{ chain, rule, want string }{
		{"nat neutron-l3-agent-float-snat", "-A neutron-l3-agent-float-snat -s 10.101.0.11/32 -j SNAT --to-source 203.0.113.7 --random-fully", "floating IP 203.0.113.7 of 10.101.0.11"},
		{"nat neutron-l3-agent-PREROUTING", "-A neutron-l3-agent-PREROUTING -d 203.0.113.7/32 -j DNAT --to-destination 10.101.0.11", "floating IP 203.0.113.7 of 10.101.0.11"},
		{"nat neutron-l3-agent-snat", "-A neutron-l3-agent-snat -o qg-5fd1b7e0-11 -j SNAT --to-source 203.0.113.5 --random-fully", "SNAT of the router to 203.0.113.5"},
		{"nat neutron-l3-agent-PREROUTING", "-A neutron-l3-agent-PREROUTING -d 169.254.169.254/32 -i qr-+ -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 9697", "metadata of instances"},
		{"filter neutron-openvswi-sg-fallback",
			`-A neutron-openvswi-sg-fallback -m comment --comment "Default drop rule for unmatched traffic." -j DROP`,
			"security groups: nothing allows the packet"},
		{"nat OVN-KUBE-NODEPORT", "-A OVN-KUBE-NODEPORT -p tcp -m addrtype --dst-type LOCAL -m tcp --dport 31234 -j DNAT --to-destination 10.96.0.7:80", "node port 31234 of Service shop/db"},
		{"nat OVN-KUBE-NODEPORT", "-A OVN-KUBE-NODEPORT -p tcp -m addrtype --dst-type LOCAL -m tcp --dport 31234 -j DNAT --to-destination 10.96.0.8:80", "node port 31234 of the service at 10.96.0.8:80"},
		{"nat OVN-KUBE-EXTERNALIP", "-A OVN-KUBE-EXTERNALIP -d 192.0.2.9/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.96.0.7:80", "address 192.0.2.9 outside, port 80, of Service shop/db"},
		{"nat OVN-KUBE-ETP", "-A OVN-KUBE-ETP -d 192.0.2.9/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 169.254.169.3:31234", "address 192.0.2.9 outside, port 80, with externalTrafficPolicy Local, of Service shop/web"},
		{"mangle OVN-KUBE-ITP", "-A OVN-KUBE-ITP -d 10.96.0.7/32 -p tcp -m tcp --dport 80 -j MARK --set-xmark 0x1745ec/0xffffffff", "internalTrafficPolicy Local, by the management port, of Service shop/db"},
		{"nat OVN-KUBE-ITP", "-A OVN-KUBE-ITP -d 10.96.0.7/32 -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 8080",
			"internalTrafficPolicy Local, to port 8080 of the node, of Service shop/db"},
		{"ovn-kubernetes mgmtport-snat", "meta l4proto . th dport @mgmtport-no-snat-nodeports counter packets 0 bytes 0 return", "externalTrafficPolicy Local: the client's address stays"},
		{"ovn-kubernetes mgmtport-snat", "counter packets 0 bytes 0 snat ip to 10.244.3.2",
			"SNAT to the management port 10.244.3.2"},
		{"filter FORWARD", "-A FORWARD -s 10.0.0.0/8 -j ACCEPT", ""},
	} {
		if got := NetfilterWords(c.chain, c.rule, serviceAt); got != c.want {
			t.Errorf("%s: %q, want %q", c.rule, got, c.want)
		}
	}
}

// TestNetfilterReasons names the kinds of drops by the chains of neutron's agent.
func TestNetfilterReasons(t *testing.T) {
	for chain, want := range map[string]Reason{"filter neutron-openvswi-sg-fallback": ACL,
		"filter neutron-openvswi-s1f0a2b3c-4": PortSecurity,
		"filter neutron-openvswi-i1f0a2b3c-4": ACL, "filter FORWARD": Netfilter} {
		if got := NetfilterReason(chain); got != want {
			t.Errorf("%s: %s, want %s", chain, got, want)
		}
	}
}
