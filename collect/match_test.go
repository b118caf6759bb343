package collect

import (
	"fmt"
	"strings"
	"testing"
)

// chassisRow is a row of the table Chassis with its tunnel.
type chassisRow struct{ name, host, ip string }

// southbound is an OVN SB database with chassis, and with the datapath and a port of a
// logical switch.
func southbound(logicalSwitch string, rows ...chassisRow) string {
	var chassis, encaps []string
	for i, r := range rows {
		encap := fmt.Sprintf("22222222-0000-4000-8000-%012d", i)
		encaps = append(encaps, fmt.Sprintf(`%q:{"ip":%q}`, encap, r.ip))
		chassis = append(chassis, fmt.Sprintf(`"33333333-0000-4000-8000-%012d":{"name":%q,"hostname":%q,"encaps":["uuid",%q]}`, i, r.name, r.host, encap))
	}
	text := `"type":"string"`
	schema := `{"name":"OVN_Southbound","version":"20.0.0","tables":{` +
		`"SB_Global":{"columns":{"options":` + stringMap + `}},` +
		`"Chassis":{"columns":{"name":{` + text + `},"hostname":{` + text +
		`},"encaps":{"type":{"key":{"type":"uuid","refTable":"Encap"},"min":1,"max":"unlimited"}}}},` +
		`"Encap":{"columns":{"ip":{` + text + `}}},` +
		`"Port_Binding":{"columns":{"logical_port":{` + text + `}}},` +
		`"Datapath_Binding":{"columns":{"external_ids":` + stringMap + `}}}}`
	return record(schema) + record(`{"Port_Binding":{"55555555-0000-4000-8000-000000000000":{"logical_port":"port of `+
		logicalSwitch+`"}},"Chassis":{`+strings.Join(chassis, ",")+`},"Encap":{`+strings.Join(encaps, ",")+`},`+
		`"Datapath_Binding":{"44444444-0000-4000-8000-000000000000":{"external_ids":["map",[["logical-switch",`+
		fmt.Sprintf("%q", logicalSwitch)+`]]]}}}`)
}

// northbound is an OVN NB database with a logical switch.
func northbound(logicalSwitch string) string {
	schema := `{"name":"OVN_Northbound","version":"7.0.0","tables":{"NB_Global":{"columns":{"options":` + stringMap +
		`}},` +
		`"Logical_Switch":{"columns":{"name":{"type":"string"}}},"Logical_Router":{"columns":{"name":{"type":"string"}}}}}`
	return record(schema) + record(`{"Logical_Switch":{`+fmt.Sprintf("%q", logicalSwitch)+`:{"name":"s"}}}`)
}

const (
	switchA = "aaaaaaaa-0000-4000-8000-000000000000"
	switchB = "bbbbbbbb-0000-4000-8000-000000000000"
)

// external is what the OVS database of a chassis says.
type external struct{ host, system, ip, remote string }

func (e external) pairs(format, separator string) string {
	var list []string
	for _, p := range [][2]string{{"hostname", e.host}, {"ovn-encap-ip", e.ip}, {"ovn-remote", e.remote},
		{"system-id", e.system}} {
		if p[1] != "" {
			list = append(list, fmt.Sprintf(format, p[0], p[1]))
		}
	}
	return strings.Join(list, separator)
}

// chassisReport is the report of a node with its OVS database, or with what ovs-vsctl
// printed of it, and with more files.
func chassisReport(t *testing.T, name string, e external, printed bool, more map[string]string) string {
	t.Helper()
	top := "sosreport-" + e.host + "-2026-01-02-" + name + "/"
	files := map[string]string{top + "sos_commands/openvswitch/ovs-vsctl_-t_5_list-br": "br-int\n",
		top + "sos_commands/openvswitch/ovs-ofctl_dump-flows_br-int": flowText}
	if printed {
		files[top+"sos_commands/openvswitch/ovs-vsctl_-t_5_list_Open_vSwitch"] = "_uuid               : 11111111-2222-3333-4444-555555555555\nexternal_ids        : {" + e.pairs("%s=%q", ", ") + "}\n"
	} else {
		files[top+"etc/openvswitch/conf.db"] = tableDatabase("Open_vSwitch", "Open_vSwitch", `"external_ids":`+stringMap,
			`"external_ids":["map",[`+e.pairs(`[%q,%q]`, ",")+`]]`)
	}
	for file, body := range more {
		files[top+file] = body
	}
	return packed(t, files)
}

// TestEvidenceDecidesWhoseDatabases collects a controller with databases and a node, and
// checks whether the node gets them, and the reason if it does not.
func TestEvidenceDecidesWhoseDatabases(t *testing.T) {
	own := chassisRow{"sys-1", "n1.example.org", "192.0.2.1"}
	node := external{"n1", "sys-1", "192.0.2.1", "tcp:192.0.2.9:6642"}
	with := func(change func(*external)) external {
		e := node
		change(&e)
		return e
	}
	for what, c := range map[string]struct {
		row     chassisRow
		node    external
		printed bool
		nb      string
		reason  string // "" if the node gets the databases
	}{
		"everything agrees":                 {row: own, node: node},
		"printed tables instead of conf.db": {row: own, node: node, printed: true},
		"several encap IPs":                 {row: own, node: with(func(e *external) { e.ip = "198.51.100.1, 192.0.2.1" })},
		"another notation of an IPv6": {row: chassisRow{"sys-1", "n1", "fd00::1"},
			node: with(func(e *external) { e.ip = "fd00:0::0001" })},
		"another host name": {row: chassisRow{"sys-1", "renamed", "192.0.2.1"}, node: node},
		"no ovn-remote": {row: own, node: with(func(e *external) { e.remote = "" }),
			reason: "has no ovn-remote"},
		"another system-id": {row: chassisRow{"sys-2", "n1", "192.0.2.1"}, node: node},
		"another system-id and encap IP": {row: chassisRow{"sys-2", "n1", "192.0.2.7"}, node: node,
			reason: "the database of ctl (ctl.tar.gz) has no chassis sys-1"},
		"the system-id of another cloud": {row: chassisRow{"sys-1", "n1", "192.0.2.7"}, node: node,
			reason: "ctl (ctl.tar.gz) has the chassis sys-1 with the encap IP 192.0.2.7, not 192.0.2.1"},
		"only the host name is known": {row: own, node: external{host: "n1", remote: "x"}},
		"a deleted chassis": {row: chassisRow{"sys-3", "n3", "192.0.2.3"}, node: node,
			reason: "no chassis sys-1"},
		"a northbound of another deployment": {row: own, node: node, nb: switchB,
			reason: "the database of ctl (ctl.tar.gz) belongs to another deployment than the OVN SB database of ctl (ctl.tar.gz)"},
	} {
		nb := switchA
		if c.nb != "" {
			nb = c.nb
		}
		controller := chassisReport(t, "a", external{"ctl", "sys-9", "192.0.2.9", ""}, false, map[string]string{
			"var/lib/ovn/ovnsb_db.db": southbound(switchA, c.row), "var/lib/ovn/ovnnb_db.db": northbound(nb)})
		dir := folder(t, map[string]string{"ctl.tar.gz": controller,
			"n1.tar.gz": chassisReport(t, "b", c.node, c.printed, nil)})
		got, _, _, err := takeFiles(t, Options{}, dir)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		n := got["n1"]
		if given := strings.HasPrefix(n.kinds(), "ovs ovn_nb ovn_sb"); given != (c.reason == "") ||
			!strings.Contains(n.OVN.Reason, c.reason) {
			t.Errorf("%s: %s, because %q", what, n.kinds(), n.OVN.Reason)
		}
		if lacks := c.reason != "" && c.node.remote != ""; n.OVN.Lacking != lacks {
			t.Errorf("%s: lacking: %v", what, n.OVN.Lacking)
		}
	}
}

// TestStaleDatabasesOfANodeAreNotUsed checks that a node with databases that lack its
// chassis gets those of its deployment.
func TestStaleDatabasesOfANodeAreNotUsed(t *testing.T) {
	row, other := chassisRow{"sys-1", "n1", "192.0.2.1"}, chassisRow{"sys-7", "n7", "192.0.2.7"}
	controller := chassisReport(t, "a", external{"ctl", "sys-9", "192.0.2.9", ""}, false, map[string]string{
		"var/lib/ovn/ovnsb_db.db": southbound(switchA, row), "var/lib/ovn/ovnnb_db.db": northbound(switchA)})
	node := chassisReport(t, "b", external{"n1", "sys-1", "192.0.2.1", "tcp:192.0.2.9:6642"}, false, map[string]string{
		"var/lib/ovn/ovnsb_db.db": southbound(switchB, other), "var/lib/ovn/ovnnb_db.db": northbound(switchB)})
	got, _, _, err := takeFiles(t, Options{}, folder(t, map[string]string{"ctl.tar.gz": controller, "n1.tar.gz": node}))
	if err != nil || len(got["n1"].OVN.From) != 1 || got["n1"].OVN.From[0].String() != "ctl (ctl.tar.gz)" {
		t.Fatalf("%+v %v", got["n1"].OVN, err)
	}
	remarks := fmt.Sprint(got["n1"].Collections)
	if want := "the node is a chassis of the deployment of ctl (ctl.tar.gz)"; strings.Count(remarks, want) != 2 {
		t.Errorf("no %q for each database: %s", want, remarks)
	}
}

// TestLoneNodeWithDatabasesInFiles checks that the databases that a user gives with one
// node are its own, unless they contradict it.
func TestLoneNodeWithDatabasesInFiles(t *testing.T) {
	node := chassisReport(t, "b", external{"n1", "sys-1", "192.0.2.1", "tcp:192.0.2.9:6642"}, false, nil)
	for what, c := range map[string]struct {
		sb    string
		kinds string
	}{
		"its chassis":     {southbound(switchA, chassisRow{"sys-1", "n1", "192.0.2.1"}), "ovs ovn_nb ovn_sb"},
		"no chassis":      {southbound(switchA), "ovs ovn_nb ovn_sb"},
		"another chassis": {southbound(switchA, chassisRow{"sys-7", "n7", "192.0.2.7"}), "ovs"},
	} {
		got, _, _, err := takeFiles(t, Options{},
			folder(t, map[string]string{"n1.tar.gz": node, "sb": c.sb, "nb": northbound(switchA)}))
		if err != nil || got["n1"].kinds() != c.kinds || got["n1"].OVN.Lacking != (c.kinds == "ovs") {
			t.Errorf("%s: %q %+v %v", what, got["n1"].kinds(), got["n1"].OVN, err)
		}
	}
}

// TestPortsTellDeploymentsWithTheSameChassisApart collects two controllers with the
// same chassis, and a node with a port of the logical switch of one.
func TestPortsTellDeploymentsWithTheSameChassisApart(t *testing.T) {
	row := chassisRow{"sys-1", "n1", "192.0.2.1"}
	for _, c := range []struct{ port, want string }{{"port of " + switchA, "one"}, {"port of " + switchB, "two"},
		{"another", ""}} {
		files := map[string]string{}
		for name, uuid := range map[string]string{"one": switchA, "two": switchB} {
			sb := southbound(uuid, row) + record(fmt.Sprintf(`{"SB_Global":{%q:{"options":["map",[]]}}}`, uuid))
			files[name+".tar.gz"] = chassisReport(t, name, external{name, "sys-9", "192.0.2.9", ""}, false, map[string]string{
				"var/lib/ovn/ovnsb_db.db": sb, "var/lib/ovn/ovnnb_db.db": northbound(uuid)})
		}
		schema := `{"name":"Open_vSwitch","version":"8.0.0","tables":{"Open_vSwitch":{"columns":{"external_ids":` +
			stringMap + `}},"Interface":{"columns":{"external_ids":` + stringMap + `}}}}`
		e := external{"n1", "sys-1", "192.0.2.1", "tcp:192.0.2.9:6642"}
		files["n1.tar.gz"] = chassisReport(t, "b", e, false, map[string]string{"etc/openvswitch/conf.db": record(schema) +
			record(`{"Open_vSwitch":{"11111111-2222-3333-4444-555555555555":{"external_ids":["map",[`+e.pairs(`[%q,%q]`, ",")+
				`]]}},`+
				`"Interface":{"66666666-0000-4000-8000-000000000000":{"external_ids":["map",[["iface-id",`+
				fmt.Sprintf("%q", c.port)+`]]]}}}`)})
		got, _, _, err := takeFiles(t, Options{}, folder(t, files))
		if err != nil {
			t.Fatal(err)
		}
		ovn := got["n1"].OVN
		if c.want != "" && (len(ovn.From) != 1 || ovn.From[0].Node != c.want) {
			t.Errorf("%s: %+v", c.port, ovn)
		}
		if c.want == "" && (!ovn.Lacking || !strings.Contains(ovn.Reason,
			"the databases of one (one.tar.gz), two (two.tar.gz) fit equally well")) {
			t.Errorf("%s: %+v", c.port, ovn)
		}
	}
}
