package trace

import (
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/replica"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
)

// TestFloatingIPThatNoPortHas moves floating IPs to addresses that no port has, which is how they lead to an allowed
// address pair, to an amphora of Octavia, or nowhere, and asks on nodes that still have the flows of before. A packet
// from outside comes in at the gateway, and what the other nodes do with their copies decides nothing.
func TestFloatingIPThatNoPortHas(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	recorded := sets.Recorded(t, "../../scripts/lab/lab", "openstack")
	folder := ovs.Dir(t)
	paths, err := recorded.Workdirs(t.Context(), folder, sets.Native)
	if err != nil {
		t.Fatal(err)
	}
	changed, _, _ := afterChange(t, paths["compute1"], func(c *ovs.Central) {
		for ip, to := range map[string]string{"172.24.4.21": "192.168.10.51", "172.24.4.22": "192.168.10.50"} {
			router := routerWith(c, "nat", "NAT", "external_ip="+ip)
			c.Nbctl("lr-nat-del", router, "dnat_and_snat", ip)
			c.Nbctl("lr-nat-add", router, "dnat_and_snat", ip, to)
		}
	})
	replicas := map[string]*fidelity.Replica{}
	for _, node := range recorded.Nodes {
		databasesAlone(t, changed, paths[node])
		replicas[node] = fidelity.Started(t, paths[node])
	}
	says := func(to string, parts ...string) {
		t.Helper()
		s := openSet(t, folder, nil)
		a, err := s.Ask(t.Context(), Between{From: "external/8.8.8.8", To: to})
		if err != nil || a.Verdict != answer.Unreachable {
			t.Fatalf("%s: %v\n%s", to, err, text(a))
		}
		for _, part := range parts {
			if !strings.Contains(text(a), part) {
				t.Errorf("%s: %q is not in\n%s", to, part, text(a))
			}
		}
	}
	says("172.24.4.22", "comes out elsewhere, at vm3 (compute2 br-int port ", "path     gateway br-ex",
		"floating ip 172.24.4.22 for 192.168.10.7 of router main, deleted at ", "stale flows of floating ip 172.24.4.22",
		"the floating IP 172.24.4.22 leads to 192.168.10.50, and no port in the databases has this address")
	says("172.24.4.21", "path     gateway br-ex", "dropped on compute1, switch blue",
		"leads to 192.168.10.51, and no port")
	edit(t, paths["gateway"], func(line string) bool {
		return strings.Contains(line, " table=0,") && strings.Contains(line, "priority=100,in_port=") &&
			strings.Contains(line, ",vlan_tci=0x0000/0x1000")
	}, "") // by which packets without a tag come in from the network
	if err := replicas["gateway"].Restart(t.Context(), replica.Options{}); err != nil {
		t.Fatal(err)
	}
	says("172.24.4.22", "dropped on gateway")
}
