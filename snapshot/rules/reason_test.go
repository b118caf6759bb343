package rules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/fidelity"
)

// planted is what a packet of the lab or of a capture meets: what its author configured.
type planted struct {
	packet string // a part of the packet's text
	reason Reason
	words  string // a part of the rule's words
	acl    string // the name of the deciding ACL
	until  int    // the egress table of the last release that drops it, 0 for any
}

// since reports whether a node has a release that no longer drops the packet: OVN 26.03
// does not reject packets to a VIP without backends before it has looked at conntrack, and
// the traces of the lab don't go on there.
func (p planted) since(l Layout) bool { return p.until > 0 && l.Egress > p.until }

// dropped returns what was planted for packets that end on br-int, by topology.
func dropped() map[string][]planted {
	return map[string][]planted{
		"openstack": {
			{"dl_src=fa:16:3e:99:99:99", PortSecurity, "port security of port a1f0c2d4-11aa-4e01-8b3c-0d5e6f700001", "", 0},
			{"nw_src=192.168.10.99,", PortSecurity, "port security of port a1f0c2d4-11aa-4e01-8b3c-0d5e6f700001", "", 0},
			{"arp_spa=192.168.10.66", PortSecurity, "port security of port a1f0c2d4", "", 0},
			{"tp_src=4000,tp_dst=23,", ACL, "security group 5b6f7081-92a3-44b4-85c6-d7e8f9a0b101 (ACL priority 1005, reject)",
				"telnet", 0},
			{"tp_dst=9999,", ACL, "default drop (port group neutron_pg_drop) (ACL priority 1001, drop)", "drop-in", 0},
			{"nw_src=192.168.10.6,nw_dst=192.168.10.5,tp_src=4000,tp_dst=80,", ACL, "neutron_pg_drop", "drop-in", 0},
			{"nw_dst=198.51.100.9,icmp_type=8,icmp_code=0,nw_ttl=1", TTL, "router port lrp-main-blue", "", 0},
			{"nw_dst=192.168.10.104,", Explicit, "load balancer lb-empty, which has no backends", "", 45},
			{"nw_dst=10.66.1.1,", NoRoute, "route 10.66.0.0/16 via discard", "", 0},
			{"nw_dst=203.0.113.9,tp_src=4000,tp_dst=443", Explicit,
				"policy route priority 200: ip4.src == 192.168.20.5 && ip4.dst == 203.0.113.0/24, drop", "", 0},
		},
		"kubernetes": {
			{"nw_src=10.244.3.66,", PortSecurity, "port security of pod default/web-1 (port default_web-1)", "", 0},
			{"nw_dst=10.244.2.5,tp_src=4000,tp_dst=8080,nw_ttl=1", TTL, "router port rtos-ovn-worker2", "", 0},
			{"nw_src=10.244.3.5,nw_dst=10.244.3.8,tp_src=4000,tp_dst=22,", ACL, "ACL NP:shop:ingress (priority 1000, drop)",
				"NP:shop:ingress", 0},
			{"nw_dst=10.244.3.7,tp_src=4000,tp_dst=9999,", ACL, "ACL NP:shop:egress (priority 1000, drop)", "NP:shop:egress", 0},
			{"nw_src=10.244.3.5,nw_dst=203.0.113.9,", ACL, "ACL (priority 9999, drop)", "", 0},
			{"nw_dst=10.96.9.9,", Explicit, "load balancer Service_kube-system/no-endpoints_TCP_cluster, which has no backends",
				"", 45},
		},
		"ovn-kubernetes-worker": {
			{"nw_dst=10.244.1.200,", NoSuchPort, "", "", 0},
			{"nw_src=10.244.1.66,", PortSecurity, "port security of pod ns1/client (port ns1_client)", "", 0},
			{"arp_spa=10.244.1.66,", PortSecurity, "port security of pod ns1/client (port ns1_client)", "", 0},
		},
		"ovn-openstack-compute": {
			{"dl_src=fa:16:3e:99:99:99", PortSecurity, "port security of port p-vm1", "", 0},
			{"arp_spa=192.168.10.100,", PortSecurity, "port security of port p-vm1", "", 0},
			{"tp_src=4,tp_dst=22,", ACL, "default drop (port group neutron_pg_drop) (ACL priority 1001, drop)", "", 0},
		},
	}
}

// TestReasonsOfCaptures checks the reasons for drops on the captured nodes.
func TestReasonsOfCaptures(t *testing.T) {
	for _, node := range captures.Nodes(t) {
		checkReasons(t, node, dropped()[node.Name])
	}
}

// checkReasons compares the reasons for the drops in a node's live traces with what was
// planted.
func checkReasons(t *testing.T, node captures.Node, want []planted) {
	t.Helper()
	l := load(t, node.Name, node.NB, node.SB, node.Flows)
	traces, err := filepath.Glob(filepath.Join(node.Traces, "*"))
	if err != nil || len(traces) == 0 {
		t.Fatalf("%s: %v, no traces", node.Traces, err)
	}
	met := map[string]bool{}
	for _, path := range traces {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		packet, _, _ := strings.Cut(string(text), "\n")
		end, actions := endOf(t, l, string(text))
		if len(end.Steps) == 0 || !strings.HasPrefix(packet, "# br-int |") {
			continue
		}
		d, err := l.rules.Drop(end)
		if err != nil {
			t.Fatal(err)
		}
		if actions == "drop" && (!slices.Contains(reasons(), d.Reason) || d.Stage == "" || d.Rule.Words == "") {
			t.Errorf("%s: %+v", packet, d)
		}
		at := slices.IndexFunc(want, func(p planted) bool {
			return strings.Contains(packet+",", p.packet) &&
				!p.since(end.Layout)
		})
		if at < 0 {
			if actions == "drop" {
				t.Logf("%s: %s in %s: %s", packet, d.Reason, d.Stage, d.Rule.Words)
			}
			continue
		}
		p := want[at]
		met[p.packet] = true
		if d.Reason != p.reason || !strings.Contains(d.Rule.Words, p.words) || p.acl != "" && d.Rule.Cause.Name != p.acl {
			t.Errorf("%s: %s in %s: %s (ACL %q)\nwant %s: %s (ACL %q)\n%s", packet, d.Reason, d.Stage, d.Rule.Words,
				d.Rule.Cause.Name,
				p.reason, p.words, p.acl, actions)
		}
	}
	for _, p := range want {
		if !met[p.packet] && !p.since(l.flows[0].Layout) {
			t.Errorf("%s: no trace of a packet with %s", node.Name, p.packet)
		}
	}
}

// TestRulesOfReleases checks cookies and reasons on nodes that OVN 23.03, 25.03 and 26.03
// wrote: those of this host, and of the root file systems that scripts/roots makes.
func TestRulesOfReleases(t *testing.T) {
	ovs.Need(t, "ovn-northd", "ovn-controller", "ovs-vswitchd", "ip")
	roots := os.Getenv("OVS_OFFLINE_ROOTS")
	if roots == "" {
		t.Skip("OVS_OFFLINE_ROOTS names no folder with root file systems of other releases: make test-versions makes them")
	}
	for name, egress := range map[string]int{"": 42, "trixie": 45, "sid": 48} {
		root := ""
		if name != "" {
			root = filepath.Join(roots, name)
		}
		for _, topology := range []string{"openstack", "kubernetes"} {
			t.Run(name+topology, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), topology)
				if _, err := fidelity.LabIn(t.Context(), root, "../../scripts/lab/lab", topology, dir); err != nil {
					t.Fatal(err)
				}
				node := captures.NodeIn(t, dir)
				load(t, node.Name, node.NB, node.SB, node.Flows).checkCookies(t, egress)
				checkReasons(t, node, dropped()[topology])
			})
		}
	}
}

// reasons lists all reasons.
func reasons() []Reason {
	return []Reason{ACL, NoRoute, TTL, Unresolved, PortSecurity, Disabled, UnknownVLAN, MTU, Meter, NoSuchPort, NotBound,
		MissingFlow, Failed, Explicit}
}
