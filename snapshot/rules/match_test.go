package rules

import (
	"testing"

	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

// TestMatchesOfLogicalFlows evaluates matches as ovn-northd writes them (23.03 and 25.03).
func TestMatchesOfLogicalFlows(t *testing.T) {
	sb := ovndb.Create(t, ovs.SBSchema)
	sb.Add(ovndb.Rows{
		"Port_Group":  {"00000001-0000-4000-8000-000000000001": ovndb.Row{"name": "3_pg_web", "ports": "vm1"}},
		"Address_Set": {"00000002-0000-4000-8000-000000000001": ovndb.Row{"name": "as", "addresses": "10.0.1.0/24"}},
	})
	r := New(nil, open(t, sb.Close()))
	p, err := flow.Parse("tcp,dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.1.7,nw_dst=10.0.2.8,tp_src=1000,tp_dst=80")
	if err != nil {
		t.Fatal(err)
	}
	for match, want := range map[string]holding{
		"1":   holds,
		"ip4": holds,
		"ip6": fails,
		`reg0[7] == 1 && (outport == @pg_web && ip4 && tcp && tcp.dst == 80)`: possible,
		`reg0[7] == 1 && (outport == @pg_web && ip4 && tcp && tcp.dst == 81)`: fails,
		`outport == @pg_other && ip`:                                          fails,
		`outport == "vm1" && ip4.src == $as`:                                  holds,
		`outport == "vm1" && ip4.src == {10.9.0.0/16, 10.0.1.7}`:              holds,
		`ip4.src != $as`:     fails,
		`ip4.src == $nosuch`: fails,
		`inport == "vm1"`:    unclear, // where it came in is not known
		`!ct.est && ct.rel && !ct.new && ct_mark.blocked == 0`: possible,
		`udp.dst == 53 || (tcp && tcp.dst == {22, 80})`:        holds,
		`!(udp || icmp4) && eth.dst == 0a:00:00:00:00:02`:      holds,
		`is_chassis_resident("cr-lrp") && ip4`:                 unclear,
		`ip.ttl == {0, 1}`:                                     unclear,
		`ip4.dst == 10.0.0.0/8 && (`:                           unclear,
		`tcp.dst >= 80`:                                        unclear,
		`flags.loopback == 1 && ip4.dst == 10.0.2.8 && eth.src == 0a:00:00:00:00:01 && tcp.src == 1000`: possible,
	} {
		expect.Equal(t, r.evaluate(match, Subject{Packet: p, OutPort: "vm1"}), want, match)
	}
}
