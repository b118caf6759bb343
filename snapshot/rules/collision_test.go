package rules

import (
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

// TestCollisionsAreSettled writes rows whose UUIDs begin alike, and one with leading zeros.
func TestCollisionsAreSettled(t *testing.T) {
	const (
		switch1, switch2, group = "d0000000-0000-4000-8000-000000000001", "d0000000-0000-4000-8000-000000000002",
			"e0000000-0000-4000-8000-000000000001"
		a, b, c = "0000abcd-0000-4000-8000-000000000001", "0000abcd-0000-4000-8000-000000000002",
			"0000abcd-0000-4000-8000-000000000003"
		port, d, e = "0000abcd-0000-4000-8000-000000000004", "0000abcd-0000-4000-8000-000000000005",
			"0000abcd-0000-4000-8000-000000000006"
		escaped = "0000abce-0000-4000-8000-000000000001"
	)
	sb := ovndb.Create(t, ovs.SBSchema)
	flow := func(pipeline string, table, priority int, match string, datapath string) ovndb.Row {
		row := ovndb.Row{"pipeline": pipeline, "table_id": table, "priority": priority, "match": match, "actions": "next;",
			"external_ids": ovndb.Map("stage-name", pipeline+match), "logical_datapath": ovndb.UUID(datapath)}
		if datapath == group {
			row["logical_datapath"], row["logical_dp_group"] = ovndb.Set(), ovndb.UUID(group)
		}
		return row
	}
	sb.Add(ovndb.Rows{
		"Datapath_Binding": {switch1: ovndb.Row{"tunnel_key": 1,
			"external_ids": ovndb.Map("name", "s1", "logical-switch", switch1)},
			switch2: ovndb.Row{"tunnel_key": 2, "external_ids": ovndb.Map("name", "s2", "logical-switch", switch2)}},
		"Logical_DP_Group": {group: ovndb.Row{"datapaths": ovndb.Set(ovndb.UUID(switch1), ovndb.UUID(switch2))}},
		"Logical_Flow": {a: flow("ingress", 1, 50, "a", switch1), b: flow("ingress", 1, 60, "b", switch1),
			c: flow("ingress", 1, 50, "c", switch2),
			d: flow("egress", 3, 50, "d", group), e: flow("egress", 3, 50, "e", switch2),
			escaped: ovndb.Row{"pipeline": 7, "table_id": "x", "priority": ovndb.Set(), "match": "\x1b[31m\n",
				"external_ids": "none", "logical_datapath": ovndb.UUID("no")}},
		"Port_Binding": {port: ovndb.Row{"logical_port": "p1", "datapath": ovndb.UUID(switch1)}},
	})
	r := New(nil, open(t, sb.Close()))
	layout := Layout{Ingress: 8, IngressEnd: 36, Egress: 42, EgressEnd: 63}
	for _, want := range []struct {
		table, priority int
		metadata        uint64
		uuid            string
		candidates      int
		datapath        string
	}{
		{9, 50, 1, a, 0, "s1"}, {9, 60, 1, b, 0, "s1"}, {9, 50, 2, c, 0, "s2"}, {45, 50, 1, d, 0, "s1"},
		{45, 50, 2, d, 2, "s2"},
		{65, 100, 1, port, 0, "s1"}, {9, 70, 1, "", 0, ""}, {9, 60, 2, "", 0, ""}, {9, 50, 3, "", 0, ""},
		{10, 50, 1, "", 0, ""},
	} {
		f := Flow{Cookie: 0xabcd, Table: want.table, Priority: want.priority, Metadata: want.metadata, Layout: layout}
		for range 2 { // the second answer comes from memory
			rule, ok, err := r.Find(f)
			if err != nil || ok != (want.uuid != "") || rule.UUID != want.uuid || rule.Candidates != want.candidates ||
				rule.Datapath.Name != want.datapath {
				t.Errorf("%+v: %+v %v %v", want, rule, ok, err)
			}
		}
	}
	if rule, ok, err := r.Find(Flow{Cookie: 0xabce, Table: 9, Layout: layout}); ok || err != nil {
		t.Errorf("a row with wrong types: %+v %v", rule, err)
	}
	for _, cookie := range []uint64{0xffffffff, 1 << 40} {
		if _, ok, err := r.Find(Flow{Cookie: cookie, Layout: layout}); ok || err != nil {
			t.Errorf("cookie %#x: %v %v", cookie, ok, err)
		}
	}
}

func TestMissedFlows(t *testing.T) {
	const s1, r1 = "d0000000-0000-4000-8000-000000000001", "d0000000-0000-4000-8000-000000000002"
	sb := ovndb.Create(t, ovs.SBSchema)
	flow := func(stage string, table, priority int, match, datapath string) ovndb.Row {
		return ovndb.Row{"pipeline": "ingress", "table_id": table, "priority": priority, "match": match, "actions": "next;",
			"external_ids": ovndb.Map("stage-name", stage), "logical_datapath": ovndb.UUID(datapath)}
	}
	first := ovndb.Row{"pipeline": "ingress", "priority": 0, "match": "1", "actions": "next;", // without table_id: it is 0
		"external_ids": ovndb.Map("stage-name", "ls_in_check_port_sec"), "logical_datapath": ovndb.UUID(s1)}
	sb.Add(ovndb.Rows{
		"Datapath_Binding": {s1: ovndb.Row{"tunnel_key": 1, "external_ids": ovndb.Map("name", "s1", "logical-switch", s1)},
			r1: ovndb.Row{"tunnel_key": 2, "external_ids": ovndb.Map("name", "r1", "logical-router", r1)}},
		"Port_Binding": {"00000007-0000-4000-8000-000000000001": ovndb.Row{"logical_port": "p7", "datapath": ovndb.UUID(s1),
			"tunnel_key": 7, "chassis": ovndb.UUID(r1)},
			"00000008-0000-4000-8000-000000000001": ovndb.Row{"logical_port": "p8", "datapath": ovndb.UUID(s1), "tunnel_key": 8},
			"00000009-0000-4000-8000-000000000001": ovndb.Row{"logical_port": "to-r1", "type": "patch",
				"datapath": ovndb.UUID(s1), "tunnel_key": 10},
			"0000000a-0000-4000-8000-000000000001": ovndb.Row{"logical_port": "vip", "type": "virtual",
				"datapath": ovndb.UUID(s1), "tunnel_key": 11, "chassis": ovndb.UUID(r1)}},
		"Logical_Flow": {"00000000-0000-4000-8000-000000000001": first,
			"00000001-0000-4000-8000-000000000001": flow("ls_in_acl", 8, 0, "1", s1),
			"00000002-0000-4000-8000-000000000001": flow("lr_in_ip_routing", 8, 50, "ip4.dst == 10.0.0.0/8", r1),
			"00000003-0000-4000-8000-000000000001": flow("lr_in_arp_resolve", 9, 50, "ip4.dst == 10.0.0.0/8", r1)},
	})
	r := New(nil, open(t, sb.Close()))
	layout := Layout{Ingress: 8, IngressEnd: 36, Egress: 42, EgressEnd: 63}
	for _, want := range []struct {
		table    int
		metadata uint64
		reason   Reason
		stage    string
	}{
		{8, 1, MissingFlow, "ls_in_check_port_sec"},
		{16, 1, MissingFlow, "ls_in_acl"}, // a flow of the stage matches every packet
		{16, 2, NoRoute, "lr_in_ip_routing"},
		{17, 2, Unresolved, "lr_in_arp_resolve"},
		{0, 0, NoSuchPort, "input: from physical to logical"},
		{40, 1, NotBound, "output: to this chassis"},
		{65, 1, NotBound, "output: from logical to physical"},
		{41, 1, MissingFlow, "output: loopback check"},
		{64, 1, MissingFlow, "output: save the input port"},
	} {
		d, err := r.Drop(End{Miss: true, MissTable: want.table, Metadata: want.metadata, Layout: layout})
		if err != nil || d.Reason != want.reason || d.Stage != want.stage {
			t.Errorf("%+v: %+v %v", want, d, err)
		}
	}
	for port, why := range map[uint64]Reason{7: MissingFlow, 8: NotBound, 9: NotBound, 10: MissingFlow, 11: NoSuchPort} {
		if d, err := r.Drop(End{Miss: true, MissTable: 65, Metadata: 1, OutPort: port, Layout: layout}); err != nil ||
			d.Reason != why {
			t.Errorf("output to port %d: %+v %v", port, d, err)
		} else if port == 8 && d.Rule.Words != "port p8 is bound to no chassis" {
			t.Errorf("output to port 8: %q", d.Rule.Words)
		}
	}
	if d, err := r.Drop(End{Known: Meter, Layout: layout}); err != nil || d.Reason != Meter {
		t.Errorf("meter: %+v %v", d, err)
	}
	if d, err := r.Drop(End{Layout: layout}); err != nil || !strings.Contains(string(d.Reason), "drop") {
		t.Errorf("nothing: %+v %v", d, err)
	}
}
