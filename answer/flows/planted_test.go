package flows

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
	"ovs-offline/workdir"
)

// TestPlantedRulesAreNamed plants ACLs that are there twice, and that multiply two address
// sets, in a deployment of real daemons, and looks for each.
func TestPlantedRulesAreNamed(t *testing.T) {
	wd := planted(t,
		"create Address_Set name=left addresses=10.9.0.1,10.9.0.2,10.9.0.3,10.9.0.4,10.9.0.5",
		"create Address_Set name=right addresses=10.8.0.1,10.8.0.2,10.8.0.3,10.8.0.4",
		"--name=product acl-add db to-lport 2200 outport==@db&&ip4.src==$left&&ip4.dst==$right drop",
		"--id=@a create ACL name=twice-a direction=to-lport priority=1002 match=\"outport==@db&&tcp.dst==5432\" action=drop -- add Port_Group db acls @a",
		"--id=@a create ACL name=twice-b direction=to-lport priority=1002 match=\"outport==@db&&tcp.dst==5432\" action=drop -- add Port_Group db acls @a",
	)
	top := count(t, []Source{{Dir: wd}}, ByACL, 0)
	if !slices.ContainsFunc(top.Conjunctions,
		func(p Product) bool { return strings.HasPrefix(p.Text(), "5 nw_src + 4 nw_dst") }) {
		t.Errorf("the conjunction is not found: %+v", top.Conjunctions)
	}
	if !slices.ContainsFunc(top.Duplicates, func(d Duplicate) bool {
		return strings.Contains(d.Where, "port group db") && strings.Contains(d.Match, "5432") && len(d.Rows) == 2
	}) {
		t.Errorf("the duplicate is not found: %+v", top.Duplicates)
	}
}

// planted returns the workdir of a node with a switch of three ports, of which vm1 is in the
// port group web and vm2 in db, after commands of ovn-nbctl.
func planted(t *testing.T, commands ...string) *workdir.Dir {
	t.Helper()
	return plantedWith(t, func(*ovs.Switch) {}, commands...)
}

// plantedWith works like planted, and sends packets before the node is recorded.
func plantedWith(t *testing.T, send func(*ovs.Switch), commands ...string) *workdir.Dir {
	t.Helper()
	ovs.Need(t, "ovn-controller", "ovn-northd", "ovn-nbctl", "ovs-vswitchd", "ovsdb-tool", "ovs-ofctl")
	central := ovs.StartCentral(t)
	central.Northd()
	s := ovs.Start(t)
	s.Join(central, "compute1")
	central.Nbctl("ls-add", "blue")
	for i := range 3 {
		port, address := fmt.Sprintf("vm%d", i+1), fmt.Sprintf("02:00:00:00:00:0%d 10.0.1.%d", i+1, i+1)
		central.Nbctl("lsp-add", "blue", port, "--", "lsp-set-addresses", port, address, "--", "lsp-set-port-security", port,
			address)
		s.Vsctl("add-port", "br-int", "tap-"+port, "--", "set", "Interface", "tap-"+port, "external_ids:iface-id="+port)
	}
	central.Nbctl("pg-add", "web", "vm1", "--", "pg-add", "db", "vm2")
	for _, command := range commands {
		central.Nbctl(strings.Fields(command)...)
	}
	for i := range 3 {
		central.Nbctl("wait-until", "Logical_Switch_Port", fmt.Sprintf("vm%d", i+1), "up=true")
	}
	central.Nbctl("--wait=hv", "sync")
	central.Nbctl("--wait=hv", "sync")
	send(s)
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{filepath.Join(s.Dir, "conf.db"): wd.Database(workdir.OVS),
		central.NB: wd.Database(workdir.NB), central.SB: wd.Database(workdir.SB)} {
		files.Write(t, to, files.Read(t, from))
	}
	for dump, command := range map[workdir.Dump]string{workdir.Flows: "dump-flows", workdir.Groups: "dump-groups",
		workdir.Meters: "dump-meters", workdir.TLV: "dump-tlv-map"} {
		files.Write(t, wd.DumpFile("br-int", dump), s.Ofctl("-O", "OpenFlow15", command, "br-int"))
	}
	files.Write(t, wd.BridgeRecorded("br-int", workdir.RecordedShow), s.Ofctl("show", "br-int"))
	files.Write(t, wd.BridgeRecorded("br-int", workdir.RecordedFeatures), s.Appctl("dpif/show-dp-features", "br-int"))
	files.Write(t, wd.Recorded(workdir.RecordedDpifShow), s.Appctl("dpif/show"))
	files.Write(t, wd.Recorded(workdir.RecordedDatapathFlows), s.Appctl("dpctl/dump-flows", "-m"))
	return wd
}

// TestMultipliedValuesAreAProduct has an ACL of which each of three addresses was multiplied by
// four ports, in flows without conjunctions.
func TestMultipliedValuesAreAProduct(t *testing.T) {
	ovs.Need(t, "ovsdb-tool")
	const acl, flow, datapath = "c0000000-0000-4000-8000-000000000000", "a0000000-0000-4000-8000-000000000000",
		"80000000-0000-4000-8000-000000000000"
	nb, sb := ovndb.Create(t, ovs.NBSchema), ovndb.Create(t, ovs.SBSchema)
	nb.Add(ovndb.Rows{"ACL": {acl: {"name": "many", "priority": 1001, "direction": "to-lport", "match": "ip4",
		"action": "allow"}}})
	sb.Add(ovndb.Rows{"Datapath_Binding": {datapath: {"tunnel_key": 1, "external_ids": ovndb.Map("name", "blue")}},
		"Logical_Flow": {flow: {"pipeline": "ingress", "table_id": 3, "priority": 50, "match": "ip4", "actions": "next;",
			"logical_datapath": ovndb.UUID(datapath),
			"external_ids":     ovndb.Map("stage-name", "ls_in_acl", "stage-hint", acl[:8])}}})
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files.Write(t, wd.Database(workdir.NB), files.Read(t, nb.Close()))
	files.Write(t, wd.Database(workdir.SB), files.Read(t, sb.Close()))
	dump := ""
	for address := range 3 {
		for port := range 4 {
			dump += fmt.Sprintf(" cookie=0xa0000000, duration=1s, table=11, n_packets=1, n_bytes=98, priority=50,tcp,metadata=0x1,nw_src=10.0.0.%d,tp_dst=%d actions=resubmit(,12)\n", address, port)
		}
	}
	files.Write(t, wd.DumpFile("br-int", workdir.Flows), dump)
	top := count(t, []Source{{Dir: wd}}, ByACL, 0)
	if len(top.Products) != 1 || top.Products[0].Text() != "4 tp_dst x 3 nw_src" || top.Products[0].Flows != 12 ||
		top.Products[0].UUID != acl {
		t.Errorf("%+v", top.Products)
	}
}

// TestIntegrationBridgeComesFirst has nodes whose integration bridge has a name of its own: one
// of OVN, and one of neutron's Open vSwitch agent.
func TestIntegrationBridgeComesFirst(t *testing.T) {
	ovs.Need(t, "ovsdb-tool")
	row := func(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }
	for name, rows := range map[string]ovndb.Rows{
		"ovn-controller": {"Open_vSwitch": {row(1): {"external_ids": ovndb.Map("system-id", "a", "ovn-remote",
			"ssl:192.0.2.1:6642", "ovn-bridge", "br-int", "ovn-bridge-a", "br-own")}}},
		"neutron's agent": {"Port": {row(2): {"name": "tap1", "other_config": ovndb.Map("net_uuid", row(9))}},
			"Bridge": {row(3): {"name": "br-own", "ports": ovndb.UUID(row(2))}}},
	} {
		conf := ovndb.Create(t, ovs.Schema)
		conf.Add(rows)
		wd, err := workdir.Find(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		files.Write(t, wd.Database(workdir.OVS), files.Read(t, conf.Close()))
		for table, bridge := range []string{"br-int", "br-own", "br-a"} {
			files.Write(t, wd.DumpFile(bridge, workdir.Flows),
				fmt.Sprintf(" cookie=0x0, table=%d, priority=1 actions=drop\n", table))
		}
		counted := map[string]bool{}
		for _, c := range count(t, []Source{{Dir: wd}}, ByTables, 0).Costs {
			words := strings.Fields(c.Name)
			counted[strings.Join(words[:min(3, len(words))], " ")] = true
		}
		for table, bridge := range []string{"br-int", "br-own", "br-a"} {
			if want := fmt.Sprintf("%s table %d", bridge, table); !counted[want] {
				t.Errorf("%s: nothing is counted for %s, but for %v", name, want, counted)
			}
		}
		var order []string
		for _, f := range list(t, wd, Query{}) {
			order = append(order, f.Bridge)
		}
		if got := strings.Join(order, " "); got != "br-own br-a br-int" {
			t.Errorf("%s: flows of %s; want br-own br-a br-int", name, got)
		}
	}
}
