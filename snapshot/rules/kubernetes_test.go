package rules

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

// TestFlowsOfOvnkubeNode names flows that ovn-kubernetes da86b2aa wrote into br-ex of a node with a
// user-defined network.
func TestFlowsOfOvnkubeNode(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	const lsp, ls, lb = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002",
		"00000000-0000-4000-8000-000000000003"
	nb.Add(ovndb.Rows{
		"Logical_Switch_Port": {lsp: {"name": "br-ex_blue_net.blue_node1", "type": "localnet"}},
		"Logical_Switch": {ls: {"name": "ext_blue_net.blue_node1", "ports": ovndb.UUID(lsp),
			"external_ids": ovndb.Map("k8s.ovn.org/network", "blue_net-blue")}},
		"Load_Balancer": {lb: {"name": "Service_front/web_TCP_node_router+switch_node1", "protocol": "tcp",
			"vips":         ovndb.Map("172.18.0.2:30080", "10.244.1.3:8080"),
			"external_ids": ovndb.Map("k8s.ovn.org/kind", "Service", "k8s.ovn.org/owner", "front/web")}},
	})
	r := New(open(t, nb.Close()), nil)
	port := func(number string) string {
		return map[string]string{"1": "eth0", "2": "patch-br-ex_node1-to-br-int",
			"3": "patch-br-ex_blue_net.blue_node1-to-br-int"}[number]
	}
	for flow, want := range map[string]string{
		"cookie=0x1892f014b9ce56da, priority=110,tcp,in_port=1,tp_dst=30080 actions=output:2":                                                            "Service front/web, port 30080",
		"cookie=0xdeff105, priority=100,ip,in_port=3,nw_src=169.254.0.11 actions=ct(commit,zone=64000,nat(src=172.18.0.2)),output:1":                     "from network blue/net-blue to the outside",
		"cookie=0xdeff105, priority=105,pkt_mark=0x3f0,ip,in_port=2,dl_src=ee:74:c4:ad:7d:f6 actions=ct(commit,zone=64000,nat(src=172.18.0.2)),output:1": "EgressIP or EgressService of the default network",
		"cookie=0xdeff105, table=1, priority=100,ct_state=+est+trk,ct_mark=0x4,ip actions=output:3":                                                      "connections of network blue/net-blue",
		"cookie=0xdeff105, table=1, priority=100,ct_state=+est+trk,ct_mark=0x2,ip actions=LOCAL":                                                         "connections of the node",
		"cookie=0xdeff105, table=2, priority=200,ip,nw_src=169.254.0.12 actions=drop":                                                                    "isolation of user-defined networks: services of other networks",
		"cookie=0x304, priority=700,icmp,in_port=2,nw_dst=172.18.0.3,icmp_type=3,icmp_code=4 actions=drop":                                               "ICMP errors about the MTU of other nodes: dropped",
		"cookie=0x5, priority=1,ip actions=drop":                                                                                                         "",
	} {
		key, err := openflow.ParseKey(flow)
		if err != nil {
			t.Fatal(err)
		}
		_, actions, _ := strings.Cut(flow, " actions=")
		if _, words, ok := r.Gateway(GatewayFlow{Key: key, Actions: actions, Port: port}); words != want ||
			ok != (want != "") {
			t.Errorf("%s: %q, want %q", flow, words, want)
		}
	}
}

// TestFlowsOfSeveralRowsNameNone describes logical flows that ovn-northd makes once for several rows: the
// words hold for all of them.
func TestFlowsOfSeveralRowsNameNone(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	uuid := func(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }
	nb.Add(ovndb.Rows{
		"Load_Balancer": {uuid(1): {"name": "web", "vips": ovndb.Map("172.18.0.3:30080", "10.244.1.3:8080")},
			uuid(2): {"name": "red", "vips": ovndb.Map("172.18.0.3:30090", "10.30.0.4:8080")}},
		"Logical_Router_Static_Route": {uuid(3): {"ip_prefix": "10.244.1.4/32", "nexthop": "172.18.0.1", "policy": "src-ip"},
			uuid(4): {"ip_prefix": "10.244.1.5/32", "nexthop": "172.18.0.1", "policy": "src-ip"}},
	})
	r := New(open(t, nb.Close()), nil)
	for _, c := range []struct{ table, uuid, match, want string }{
		{"Load_Balancer", uuid(1), "ip && ip4.dst == 172.18.0.3", "load balancers with the address 172.18.0.3"},
		{"Load_Balancer", uuid(1), "ct.new && ip4.dst == 172.18.0.3 && reg1[0..15] == 30080", "load balancer web"},
		{"Logical_Router_Static_Route", uuid(3), "reg8[0..15] == 1 && reg8[16..31] == 1", "routes via 172.18.0.1"},
		{"Logical_Router_Static_Route", uuid(3), "reg7 == 0 && ip4.src == 10.244.1.4/32",
			"route for source 10.244.1.4/32 via 172.18.0.1"},
	} {
		row, ok, err := r.nb.Row(c.table, c.uuid)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if got := r.explain(c.table, row, Rule{Match: c.match}).Words; got != c.want {
			t.Errorf("%s: %q, want %q", c.match, got, c.want)
		}
	}
}
