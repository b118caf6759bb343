package rules

import (
	"maps"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
	"ovs-offline/test/oracle/captures"
)

// TestAgentBridgesAreFound reads a node with the bridges of the agent, of a trunk, and one
// of another program.
func TestAgentBridgesAreFound(t *testing.T) {
	conf := ovndb.Create(t, ovs.Schema)
	rows := ovndb.Rows{"Bridge": {}, "Port": {}, "Interface": {}}
	add := func(bridge string, ports ...[3]string) { // name, type, peer
		references := []any{}
		for _, p := range ports {
			id := uuidFor(len(rows["Port"]))
			references = append(references, ovndb.UUID(id))
			rows["Port"][id] = ovndb.Row{"name": p[0], "interfaces": ovndb.UUID(id)}
			if p[1] == "" {
				rows["Port"][id] = ovndb.Row{"name": p[0], "interfaces": ovndb.UUID(id), "other_config": ovndb.Map("net_uuid", "x")}
			}
			rows["Interface"][id] = ovndb.Row{"name": p[0], "type": p[1], "options": ovndb.Map("peer", p[2])}
		}
		rows["Bridge"][uuidFor(len(rows["Bridge"]))] = ovndb.Row{"name": bridge, "ports": ovndb.Set(references...)}
	}
	add("br-int", [3]string{"tap1"}, [3]string{"patch-tun", "patch", "patch-int"},
		[3]string{"int-br-ex", "patch", "phy-br-ex"}, [3]string{"tpi-1", "patch", "tpt-1"})
	add("br-tun", [3]string{"patch-int", "patch", "patch-tun"}, [3]string{"vxlan-1", "vxlan"})
	add("br-ex", [3]string{"phy-br-ex", "patch", "int-br-ex"}, [3]string{"eth1", "system"})
	add("tbr-1", [3]string{"tpt-1", "patch", "tpi-1"})
	add("br-other", [3]string{"eth2", "system"})
	conf.Add(rows)
	got, err := AgentBridges(open(t, conf.Close()))
	want := map[string]string{"br-int": AgentIntegration, "br-tun": AgentTunnel, "br-ex": AgentPhysical}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
	for _, node := range captures.Nodes(t) { // they have OVN
		if got, err := AgentBridges(open(t, node.OVS)); err != nil || len(got) > 0 {
			t.Errorf("%s: %v %v", node.Name, got, err)
		}
	}
	if AgentTable(AgentTunnel, 21) != "ARP responder" || AgentTable(AgentIntegration, 21) != "" ||
		AgentTable("", 0) != "" {
		t.Error("names of tables")
	}
}

// TestReasonsOfTheAgent has the tables through which dropped packets of the lab's ML2/OVS
// set went.
func TestReasonsOfTheAgent(t *testing.T) {
	for _, c := range []struct {
		why    Reason
		tables []int
	}{
		{PortSecurity, []int{0, 25, 60, 71, 93}}, {PortSecurity, []int{0, 24}}, {PortSecurity, []int{0, 25}},
		{ACL, []int{60, 71, 72, 93}},
		{ACL, []int{81, 82, 93}}, {ACL, []int{82}}, {Explicit, []int{0}}, {Explicit, []int{60}}, {Explicit, nil},
		{ACL, []int{93, 93}},
	} {
		expect.Equal(t, AgentReason(c.tables...), c.why, c.tables)
	}
}

func uuidFor(n int) string {
	return "00000000-0000-4000-8000-0000000000" + string("0123456789"[n/10]) + string("0123456789"[n%10])
}
