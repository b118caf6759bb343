package trace

import (
	"strings"
	"testing"

	"ovs-offline/snapshot/names"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

// TestPingsOfLoadBalancersAndAddressesWithPorts asks as people type: the address of a load balancer with and without a
// port, and IPv6 addresses outside, whose last digits may be a port.
func TestPingsOfLoadBalancersAndAddressesWithPorts(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	const only = "the packet is a ping, and load balancers have the address "
	type typed struct {
		from, to, protocol string
		packet             string // what was asked, or the error
		remark             string // "" for none about the ports of a load balancer
	}
	for set, questions := range map[string][]typed{
		"openstack": {
			{"vm1", "192.168.10.100", "", ": icmp,", "192.168.10.100 for these ports only: 192.168.10.100:80 (tcp)"},
			{"vm1", "192.168.10.100", "icmp", ": icmp,", "192.168.10.100 for these ports only: 192.168.10.100:80 (tcp)"},
			{"vm1", "192.168.10.103", "", ": icmp,", "192.168.10.103 for these ports only: 192.168.10.103:53 (udp)"},
			{"vm1", "fd00:10::100", "", ": icmp6,", "fd00:10::100 for these ports only: [fd00:10::100]:80 (tcp)"},
			{"vm1", "192.168.10.100", "tcp", ",tcp_src=40000,tcp_dst=80,", ""},
			{"vm1", "192.168.10.100:80", "", ",tcp_src=40000,tcp_dst=80,", ""},
			{"vm1", "192.168.10.100:80", "icmp", "is a load balancer for tcp, not icmp", ""},
			{"external/172.24.4.1", "172.24.4.40", "", ": icmp,", "172.24.4.40 for these ports only: 172.24.4.40:443 (tcp)"},
			{"vm1", "external/[2001:db8:9::1]:443", "", "ipv6_dst=2001:db8:9::1,nw_ttl=64,tcp_src=40000,tcp_dst=443", ""},
			{"vm1", "external/[2001:db8:9::1]", "", "ipv6_dst=2001:db8:9::1,nw_ttl=64,icmpv6_type=128", ""},
			{"vm1", "external/2001:db8:9::1", "", "ipv6_dst=2001:db8:9::1,nw_ttl=64,icmpv6_type=128", ""},
			{"vm1", "external/2001:db8:9::1:443", "", "write external/[2001:db8:9::1]:443 with the port, or " +
				"external/[2001:db8:9::1:443] without one", ""},
			{"vm1", "external/[2001:db8:9::1:443]", "", "ipv6_dst=2001:db8:9::1:443,nw_ttl=64,icmpv6_type=128", ""},
			{"vm1", "external/2001:db8:9::1:abcd", "", "ipv6_dst=2001:db8:9::1:abcd,nw_ttl=64,icmpv6_type=128", ""},
			{"vm1", "external/198.51.100.9:443", "", "nw_dst=198.51.100.9,nw_ttl=64,tcp_src=40000,tcp_dst=443", ""},
			{"vm1", "[fd00:10::100]:80", "", "ipv6_dst=fd00:10::100,nw_ttl=64,tcp_src=40000,tcp_dst=80", ""},
			{"external/[2001:db8:4::99]", "external/[2001:db8:4::26]:443", "",
				"ipv6_src=2001:db8:4::99,ipv6_dst=2001:db8:4::26,", ""},
		},
		"kubernetes-ic": {
			{"ns1/web-0", "svc/kube-system/dns", "icmp", ": icmp,", "10.96.0.10 for these ports only: 10.96.0.10:53 (udp)"},
			{"ns1/web-0", "10.96.0.10", "", ": icmp,", "10.96.0.10 for these ports only: 10.96.0.10:53 (udp)"},
			{"external/172.18.0.1", "172.18.0.2", "", ": icmp,", ""}, // a node with node ports
			{"ns1/web-0", "svc/kube-system/dns", "", ",udp_src=40000,udp_dst=53", ""},
		},
	} {
		s := openSet(t, startReplicas(t, sets.Recorded(t, "../../scripts/lab/lab", set)), nil)
		for _, q := range questions {
			said := ""
			a, err := s.Ask(t.Context(), Between{From: q.from, To: q.to, Question: names.Question{Protocol: q.protocol}})
			if err == nil {
				said = a.Question + "\n" + text(a)
			} else {
				said = err.Error()
			}
			if remarks := q.remark != ""; !strings.Contains(said, q.packet) || !strings.Contains(said, q.remark) ||
				strings.Contains(said, only) != remarks {
				t.Errorf("%s to %s %s: %q and %q expected:\n%s", q.from, q.to, q.protocol, q.packet, q.remark, said)
			}
		}
	}
}
