package check_test

import (
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestNamespacesOverruleInterfaces checks interfaces that ovs-vswitchd calls down against the devices of the node's network
// namespaces: a device that neutron moved into one is judged by what that namespace says.
func TestNamespacesOverruleInterfaces(t *testing.T) {
	iface := func(name, kind string) string {
		return "# ovs-vsctl list Interface " + name + "\n" + row(1, "name", name, "ofport", "4", "error", "[]", "type", kind,
			"admin_state", "down", "link_state", "down", "external_ids", "{iface-id=\"5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b7777\"}")
	}
	const inRouter, lo = "# ip netns exec qrouter-1 ip address\n",
		"1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000\n"
	device := func(name, flags string) string {
		return lo + "7: " + name + ": <BROADCAST,MULTICAST" + flags + "> mtu 1450 qdisc noqueue state UNKNOWN group default qlen 1000\n" +
			"    link/ether fa:16:3e:00:00:01 brd ff:ff:ff:ff:ff:ff\n    inet 10.0.0.1/24 brd 10.0.0.255 scope global " + name + "\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"a router's port that is up in its namespace": {iface("qr-5c9a0cf4-8f", "internal") + inRouter + device("qr-5c9a0cf4-8f",
			",UP,LOWER_UP"), ""},
		"a router's port that is down in its namespace": {iface("qr-5c9a0cf4-8f", "internal") + inRouter + device("qr-5c9a0cf4-8f", ""),
			"interface qr-5c9a0cf4-8f in network namespace qrouter-1 of port 5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b7777 is switched off"},
		"a router's port without its namespace":   {iface("fg-5c9a0cf4-8f", "internal"), ""},
		"a port of DHCP beside another namespace": {iface("tap5c9a0cf4-8f", "internal") + inRouter + device("qr-1", ",UP,LOWER_UP"), ""},
		"the node's port to its pods": {iface("ovn-k8s-mp0", "internal"),
			"interface ovn-k8s-mp0 of port 5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b7777 is switched off"},
		"an instance's port that the node shows up": {iface("tap5c9a0cf4-8f", `""`) + "# ip address\n" + device("tap5c9a0cf4-8f",
			",UP,LOWER_UP"), ""},
		"an instance's port": {iface("tap5c9a0cf4-8f", `""`),
			"interface tap5c9a0cf4-8f of port 5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b7777 is switched off"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range checkTicket(t, "ticket.md", c.text).Findings {
				if f.Rule == "interface-down" {
					got = append(got, f.What)
				}
			}
			expect.Equal(t, strings.Join(got, "\n"), c.want)
		})
	}
}

// TestTablesOverruleLogs checks lines of logs that say what the tables of the node no longer show.
func TestTablesOverruleLogs(t *testing.T) {
	const refused = "2022-05-24T20:51:11.024Z|00592|bridge|WARN|could not open network device tap9 (No such device)\n"
	iface := func(name, number string) string {
		return "# ovs-vsctl list Interface\n" + row(1, "name", name, "ofport", number, "error", "[]", "type", `""`, "external_ids", "{}") + "\n"
	}
	bridge := "# ovs-vsctl list Bridge\n" + row(2, "name", "br-ex", "ports", "[]") + "\n# ovs-vsctl list Port\n" + row(4, "name", "br-ex") + "\n" +
		iface("br-ex", "65534")
	mapped := func(mappings string) string {
		return "# ovs-vsctl list Open_vSwitch\n" + row(3, "bridges", "[]", "external_ids", "{ovn-bridge-mappings=\""+mappings+"\"}") + "\n"
	}
	const unmapped = "2022-02-10T00:00:00.000Z|00012|patch|ERR|bridge not found for localnet port 'provnet-1' with network name 'physnet1'\n"
	for name, c := range map[string]struct{ text, want string }{
		"a port that is gone":          {refused + iface("tap8", "3"), ""},
		"a port that was added since":  {refused + iface("tap9", "3"), ""},
		"a port that has no number":    {refused + iface("tap9", "-1"), "port-not-added"},
		"no table":                     {refused, "port-not-added"},
		"one other interface":          {refused + strings.Replace(iface("tap8", "3"), "Interface", "Interface tap8", 1), "port-not-added"},
		"a bridge that was mapped":     {unmapped + bridge + mapped("physnet1:br-ex"), ""},
		"a bridge of another network":  {unmapped + bridge + mapped("physnet2:br-ex"), "localnet-without-bridge"},
		"a bridge that does not exist": {unmapped + bridge + mapped("physnet1:br-other"), "localnet-without-bridge"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, f := range checkTicket(t, "ticket.md", c.text).Findings {
				if f.Rule == "port-not-added" || f.Rule == "localnet-without-bridge" {
					got += f.Rule
				}
			}
			expect.Equal(t, got, c.want)
		})
	}
}

// TestErrorsThatNoRuleKnowsAreCounted checks that lines of errors in logs are counted, unless a rule is about them.
func TestErrorsThatNoRuleKnowsAreCounted(t *testing.T) {
	const unknown = "2022-05-24T20:51:11.024Z|00592|bridge|ERR|a line that no rule is about\n"
	const known = "2022-05-24T20:51:11.024Z|00593|dpif_netlink(handler3)|ERR|failed to offload flow: Invalid argument: p0\n"
	const warning = "2022-05-24T20:51:11.024Z|00594|bridge|WARN|a line that no rule knows\n"
	const emergency = "2022-05-24T20:51:11.024Z|00595|daemon_unix|EMER|could not initiate process monitoring\n"
	const agent = "2022-05-24 20:51:11.024 7 ERROR neutron.agent.ovn.metadata.agent [-] Port 1 vanished\n"
	for name, c := range map[string]struct {
		text, found string
		count       int
	}{
		"ovs-vswitchd.log":                 {unknown + known + unknown + warning, "offload-failed", 2},
		"ovn-controller.log":               {warning, "", 0},
		"neutron-ovn-metadata-agent.log":   {agent + agent, "", 2},
		"ovsdb-server.log":                 {emergency + unknown, "emergency", 1},
		"ovs-vswitchd-with-an-end.log":     {emergency, "emergency", 0},
		"ovs-vswitchd-without-a-fault.log": {strings.Replace(unknown, "ERR", "INFO", 1), "", 0},
	} {
		r := checkTicket(t, name, c.text)
		var rules []string
		for _, f := range r.Findings {
			rules = append(rules, f.Rule)
		}
		expect.Equal(t, strings.Join(rules, " "), c.found, name)
		expect.Equal(t, r.UnknownErrors, c.count, name)
	}
}

// TestOVNWithoutItsDatabasesIsNotJudged checks that a node that uses OVN gets no all-clear without a database of its deployment.
func TestOVNWithoutItsDatabasesIsNotJudged(t *testing.T) {
	tables := func(ids string) string {
		return "# ovs-vsctl list Open_vSwitch\n" + row(3, "bridges", "[]", "external_ids", ids) + "\n# ovs-vsctl list Bridge\n" +
			row(2, "name", "br-int", "ports", "[]") + "\n# ovs-vsctl list Port\n" + row(4, "name", "br-int") +
			"\n# ovs-vsctl list Interface\n" + row(1, "name", "br-int", "ofport", "65534", "error", "[]", "type", "internal") + "\n"
	}
	const northbound = "# ovn-nbctl list Logical_Switch\n"
	ovn := tables(`{ovn-encap-type=geneve, ovn-encap-ip="10.0.0.1", ovn-remote="tcp:10.0.0.9:6642", system-id=n1}`)
	for name, c := range map[string]struct {
		text   string
		judged bool
	}{
		"OVN":                     {ovn, false},
		"another use of a switch": {tables("{system-id=n1}"), true},
		"OVN with a table of it":  {ovn + northbound + row(5, "name", "sw0", "ports", "[]"), true},
	} {
		r := checkTicket(t, "ticket.md", c.text)
		said := strings.Contains(strings.Join(r.Unjudged, "\n"), "uses OVN, and no database of its deployment was collected")
		expect.Equal(t, !said, c.judged, name+": "+strings.Join(r.Unjudged, "\n"))
	}
}

// TestDPDKOnTheKernelsDatapath checks that the finding on an interface of DPDK that failed names a bridge of the wrong type.
func TestDPDKOnTheKernelsDatapath(t *testing.T) {
	const id = "5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b000"
	for kind, hint := range map[string]bool{"netdev": false, "system": true, `""`: true} {
		text := "# ovs-vsctl list Open_vSwitch\n" + row(3, "bridges", "["+id+"2]", "external_ids", "{}") + "\n# ovs-vsctl list Bridge\n" +
			row(2, "name", "br0", "datapath_type", kind, "ports", "["+id+"4]") + "\n# ovs-vsctl list Port\n" +
			row(4, "name", "dpdk0", "interfaces", "["+id+"1]") + "\n# ovs-vsctl list Interface\n" + row(1, "name", "dpdk0", "ofport", "-1",
			"error", `"could not open network device dpdk0 (Address family not supported by protocol)"`, "type", "dpdk") + "\n"
		all := strings.Join(found(checkTicket(t, "ticket.md", text)), "\n")
		if !strings.Contains(all, "interface dpdk0 could not be added") ||
			strings.Contains(all, "; its type is dpdk, and bridge br0 does not have datapath_type=netdev") != hint {
			t.Errorf("datapath_type %s: %s", kind, all)
		}
	}
}
