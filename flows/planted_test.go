package flows

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/test/fidelity"
	"ovs-offline/test/files"
	"ovs-offline/test/ovndb"
	"ovs-offline/test/ovs"
)

// TestPlantedRulesAreNamed plants ACLs that no packet reaches, that are there twice, and that
// multiply two address sets, in a deployment of real daemons, and looks for each.
func TestPlantedRulesAreNamed(t *testing.T) {
	wd := planted(t,
		// What is covered, and what covers it.
		"--name=cover acl-add web to-lport 2000 outport==@web&&ip4 allow-related",
		"--name=covered acl-add web to-lport 1500 outport==@web&&tcp.dst==80 drop",
		"--name=cover-out acl-add web from-lport 2000 inport==@web&&udp drop",
		"--name=covered-out acl-add web from-lport 1900 inport==@web&&udp.dst==53 allow",
		"--name=covered-reject acl-add web from-lport 1800 inport==@web&&ip4.dst==10.0.1.3&&udp reject",
		// What is reached.
		"--name=above acl-add web to-lport 2500 outport==@web&&tcp.dst==443 drop",
		"--name=aside acl-add web from-lport 1700 inport==@web&&tcp.dst==22 drop",
		"create Address_Set name=left addresses=10.9.0.1,10.9.0.2,10.9.0.3,10.9.0.4,10.9.0.5",
		"create Address_Set name=right addresses=10.8.0.1,10.8.0.2,10.8.0.3,10.8.0.4",
		"--name=product acl-add db to-lport 2200 outport==@db&&ip4.src==$left&&ip4.dst==$right drop",
		"--id=@a create ACL name=twice-a direction=to-lport priority=1002 match=\"outport==@db&&tcp.dst==5432\" action=drop -- add Port_Group db acls @a",
		"--id=@a create ACL name=twice-b direction=to-lport priority=1002 match=\"outport==@db&&tcp.dst==5432\" action=drop -- add Port_Group db acls @a",
	)
	top := count(t, []Source{{Dir: wd}}, ByACL, 0)
	if !slices.ContainsFunc(top.Products, func(p Product) bool { return strings.HasPrefix(p.Text(), "conjunction: 5 nw_src + 4 nw_dst") }) {
		t.Errorf("the product is not found: %+v", top.Products)
	}
	if !slices.ContainsFunc(top.Duplicates, func(d Duplicate) bool {
		return strings.Contains(d.Where, "port group db") && strings.Contains(d.Match, "5432") && len(d.Rows) == 2
	}) {
		t.Errorf("the duplicate is not found: %+v", top.Duplicates)
	}
	n, err := fidelity.Adopt(t.Context(), wd.Path(), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	s, err := FindShadows(t.Context(), []Source{{Dir: wd}})
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]string{}
	for _, r := range s.Rules {
		by[r.Name] = r.By
	}
	var got []string
	for name, other := range by {
		got = append(got, fmt.Sprintf("%s by %s", name, other))
	}
	t.Logf("%d reached, not examined: %v\n%s", s.Reached, s.NotExamined, strings.Join(got, "\n"))
	for name, other := range map[string]string{"covered": "cover", "covered-out": "cover-out", "covered-reject": "cover-out"} {
		found := false
		for rule, cover := range by {
			found = found || strings.Contains(rule, "ACL "+name+" (") && strings.Contains(cover, "ACL "+other+" (")
		}
		if !found {
			t.Errorf("%s is not found as shadowed by %s", name, other)
		}
	}
	for rule := range by {
		if strings.Contains(rule, "above") || strings.Contains(rule, "aside") || strings.Contains(rule, "cover (") || strings.Contains(rule, "cover-out (") {
			t.Errorf("%s is reached", rule)
		}
	}
}

// planted returns the workdir of a node with a switch of three ports, of which vm1 is in the
// port group web and vm2 in db, after commands of ovn-nbctl.
func planted(t *testing.T, commands ...string) *workdir.Dir {
	t.Helper()
	ovs.Need(t, "ovn-controller", "ovn-northd", "ovn-nbctl", "ovs-vswitchd", "ovsdb-tool", "ovs-ofctl")
	central := ovs.StartCentral(t)
	central.Northd()
	s := ovs.Start(t)
	s.Vsctl("set", "Open_vSwitch", ".", "external_ids:system-id=compute1", "external_ids:hostname=compute1", "external_ids:ovn-remote="+central.Remote,
		"external_ids:ovn-encap-type=geneve", "external_ids:ovn-encap-ip=192.168.0.1")
	s.Controller()
	central.Nbctl("ls-add", "blue")
	for i := range 3 {
		port, address := fmt.Sprintf("vm%d", i+1), fmt.Sprintf("02:00:00:00:00:0%d 10.0.1.%d", i+1, i+1)
		central.Nbctl("lsp-add", "blue", port, "--", "lsp-set-addresses", port, address, "--", "lsp-set-port-security", port, address)
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
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{filepath.Join(s.Dir, "conf.db"): wd.Database(workdir.OVS), central.NB: wd.Database(workdir.NB), central.SB: wd.Database(workdir.SB)} {
		files.Write(t, to, files.Read(t, from))
	}
	for dump, command := range map[workdir.Dump]string{workdir.Flows: "dump-flows", workdir.Groups: "dump-groups", workdir.Meters: "dump-meters", workdir.TLV: "dump-tlv-map"} {
		files.Write(t, wd.DumpFile("br-int", dump), s.Ofctl("-O", "OpenFlow15", command, "br-int"))
	}
	return wd
}

// TestMultipliedValuesAreAProduct has an ACL of which each of three addresses was multiplied by
// four ports, in flows without conjunctions.
func TestMultipliedValuesAreAProduct(t *testing.T) {
	ovs.Need(t, "ovsdb-tool")
	const acl, flow, datapath = "c0000000-0000-4000-8000-000000000000", "a0000000-0000-4000-8000-000000000000", "80000000-0000-4000-8000-000000000000"
	nb, sb := ovndb.Create(t, ovs.NBSchema), ovndb.Create(t, ovs.SBSchema)
	nb.Add(ovndb.Rows{"ACL": {acl: {"name": "many", "priority": 1001, "direction": "to-lport", "match": "ip4", "action": "allow"}}})
	sb.Add(ovndb.Rows{"Datapath_Binding": {datapath: {"tunnel_key": 1, "external_ids": ovndb.Map("name", "blue")}},
		"Logical_Flow": {flow: {"pipeline": "ingress", "table_id": 3, "priority": 50, "match": "ip4", "actions": "next;", "logical_datapath": ovndb.UUID(datapath),
			"external_ids": ovndb.Map("stage-name", "ls_in_acl", "stage-hint", acl[:8])}}})
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
	if len(top.Products) != 1 || top.Products[0].Text() != "4 tp_dst x 3 nw_src" || top.Products[0].Flows != 12 || top.Products[0].UUID != acl {
		t.Errorf("%+v", top.Products)
	}
}
