package recording_test

import (
	"strings"
	"testing"

	"ovs-offline/pkg/openflow"
	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// TestCommandLinesAsPeopleTypeThem checks the command, the bridge and the OpenFlow version of
// command lines in tickets.
func TestCommandLinesAsPeopleTypeThem(t *testing.T) {
	type found struct {
		Name     recording.Name
		Argument string
		OpenFlow openflow.Version
	}
	for line, want := range map[string]found{
		"ovs-vsctl show":                      {Name: "ovs-vsctl.show"},
		"sudo ovs-vsctl -t 5 show":            {Name: "ovs-vsctl.show"},
		"/usr/bin/ovs-vsctl --timeout=5 show": {Name: "ovs-vsctl.show"},
		"microovn.ovs-vsctl show":             {Name: "ovs-vsctl.show"},
		"kubectl -n ovn exec ovs-node-x -c ovs -- ovs-ofctl dump-flows br-int": {Name: "dump-flows", Argument: "br-int"},
		"ovs-ofctl -O OpenFlow13 dump-flows br-int": {Name: "dump-flows", Argument: "br-int",
			OpenFlow: openflow.OpenFlow13},
		"ovs-ofctl dump-flows br-int -OOpenFlow15 --names": {Name: "dump-flows", Argument: "br-int",
			OpenFlow: openflow.OpenFlow15},
		"ovs-ofctl --protocols=OpenFlow14 dump-groups br-ex": {Name: "dump-groups", Argument: "br-ex",
			OpenFlow: openflow.OpenFlow14},
		"ovs-ofctl -O OpenFlow10 show br0": {Name: "show.OpenFlow10", Argument: "br0",
			OpenFlow: openflow.OpenFlow10},
		"ovs-ofctl show br0":      {Name: "show", Argument: "br0"},
		"ovs-appctl fdb/show br0": {Name: "fdb.show", Argument: "br0"},
		"ovs-appctl -t ovs-vswitchd bridge/dump-flows --offload-stats br0": {Name: "bridge.dump-flows", Argument: "br0"},
		"ovs-appctl dpif/show":    {Name: "dpif.show"},
		"ovs-dpctl dump-flows -m": {Name: "dpctl.dump-flows"},
		"ovs-appctl dpctl/dump-conntrack -m system@ovs-system": {Name: "dpctl.dump-conntrack",
			Argument: "system@ovs-system"},
		"ovs-vsctl list interface":                 {Name: "list-interface"},
		"ovs-vsctl list Open_vSwitch":              {Name: "list-open_vswitch"},
		"ovsdb-client -f list dump":                {Name: "ovsdb-client.dump"},
		"ip route show table all":                  {Name: "ip.route"},
		"ovs-vsctl list interface eth0":            {},
		"ovs-vsctl list-br":                        {},
		"/sbin/ip addr":                            {Name: workdir.RecordedLinks},
		"ip a show":                                {Name: workdir.RecordedLinks},
		"ip a show dev eth0":                       {},
		"ovs-vsctl show me":                        {},
		"ovs-appctl coverage/show":                 {Name: "coverage.show"},
		"ovs-appctl -t ovs-vswitchd coverage/show": {Name: "coverage.show"},
		"ovs-appctl -t /var/run/openvswitch/ovs-vswitchd.12.ctl memory/show":    {Name: "memory.show"},
		"ovs-appctl -t ovn-controller coverage/show":                            {Name: "ovn-controller.coverage.show"},
		"ovs-appctl --target=ovn-controller coverage/show":                      {Name: "ovn-controller.coverage.show"},
		"ovn-appctl coverage/show":                                              {Name: "ovn-controller.coverage.show"},
		"ovn-appctl -t ovn-northd inc-engine/show-stats":                        {Name: "ovn-northd.inc-engine.show-stats"},
		"ovn-appctl -t /var/run/ovn/ovn-controller.4711.ctl connection-status":  {Name: "ovn-controller.connection-status"},
		"ovn-appctl -t /var/run/ovn/ovnnb_db.ctl cluster/status OVN_Northbound": {Name: "cluster.status.nb"},
		"ovs-appctl -t ovsdb-server coverage/show":                              {Name: "ovsdb-server.coverage.show"},
		"ovs-appctl -t ovsdb-server upcall/show":                                {},
		"ovs-appctl -t other-daemon coverage/show":                              {},
		"ovs-appctl dpif-netdev/pmd-stats-show":                                 {Name: "dpif-netdev.pmd-stats-show"},
		"ip -s link":                                                            {Name: "ip.link"},
		"ip rule":                                                               {Name: "ip.rule"},
		"ip -6 rule":                                                            {Name: "ip.rule.6"},
		"ip -6 route show table all":                                            {},
		"ip netns":                                                              {},
		"ip netns exec qrouter-1 ip a": {Name: "netns.ip.address",
			Argument: "qrouter-1"},
		"sudo ip netns exec qrouter-1 /sbin/iptables-save": {Name: "netns.iptables-save",
			Argument: "qrouter-1"},
		"ip net e qrouter-1 ip rule": {Name: "netns.ip.rule",
			Argument: "qrouter-1"},
		"ip netns exec qrouter-1  ip -6 rule list": {Name: "netns.ip.rule.6",
			Argument: "qrouter-1"},
		"ip netns exec qrouter-1 conntrack -L -o extended": {Name: "netns.conntrack",
			Argument: "qrouter-1"},
		"ip netns exec qrouter-1 ip -s link": {},
		"ip netns exec qrouter-1":            {},
		"ip netns exec ovs ovs-vsctl show":   {Name: "ovs-vsctl.show"},
		"uptime":                             {},
		"free":                               {},
		"echo ovs-vsctl is a tool":           {},
		"":                                   {},
	} {
		run, ok := recording.ParseLine(line)
		expect.Equal(t, ok, want.Name != "", line)
		expect.Equal(t, found{run.Command.Name, run.Argument, run.OpenFlow}, want, line)
	}
}

// TestLongLinesAreNoCommands checks the longest command line and the longest name of a file that are read, and that
// of the words of a line that name tools only the first few are tried.
func TestLongLinesAreNoCommands(t *testing.T) {
	ofLength := func(n int, end string) string { return strings.Repeat("x", n-len(end)) + end }
	for line, want := range map[string]bool{
		ofLength(4096, " ovs-vsctl show"):                  true,
		ofLength(4097, " ovs-vsctl show"):                  false,
		strings.Repeat("ovs-ofctl ", 7) + "ovs-vsctl show": true,
		strings.Repeat("ovs-ofctl ", 8) + "ovs-vsctl show": false,
	} {
		_, ok := recording.ParseLine(line)
		expect.Equal(t, ok, want, line)
	}
	for name, want := range map[string]bool{
		"a/" + ofLength(255, "_ovs-vsctl_show"): true,
		"a/" + ofLength(256, "_ovs-vsctl_show"): false,
	} {
		_, ok := recording.ParseFileName(name)
		expect.Equal(t, ok, want, name)
	}
}

// TestLimitsOfTypedCommands checks what of a command line that a person typed limits the output to a part.
func TestLimitsOfTypedCommands(t *testing.T) {
	for line, want := range map[string][2]string{
		"ovs-appctl dpif/dump-flows br0":                   {workdir.RecordedDatapathFlows, "the ports of br0"},
		"ovs-appctl dpif/dump-flows -m br-int":             {workdir.RecordedDatapathFlows, "the ports of br-int"},
		"ovs-appctl dpif/dump-flows":                       {},
		"ovs-appctl dpctl/dump-flows type=offloaded":       {workdir.RecordedDatapathFlows, "type=offloaded"},
		"conntrack -L":                                     {workdir.NamespaceConntrack, ""},
		"/usr/sbin/conntrack --dump conntrack -o extended": {workdir.NamespaceConntrack, ""},
		"conntrack -L -f ipv4 -p tcp --dport 80":           {workdir.NamespaceConntrack, "-f ipv4 -p tcp --dport 80"},
		"conntrack -L expect":                              {},
		"conntrack -L -o xml":                              {},
		"conntrack -S":                                     {},
		"cat /proc/net/nf_conntrack":                       {workdir.NamespaceConntrack, ""},
		"ovs-appctl dpctl/flush-conntrack":                 {},
	} {
		run, _ := recording.ParseTyped(strings.Fields(line))
		expect.Equal(t, [2]string{string(run.Command.Name), run.Filter}, want, line)
	}
}

// TestFilesNamedForCommands checks names of files that hold the output of a command, as sos
// and people write them.
func TestFilesNamedForCommands(t *testing.T) {
	for name, want := range map[string][2]string{
		"ovs-vsctl_-t_5_show":                                                                       {"ovs-vsctl.show"},
		"node1/openstack-hypervisor.ovs-vsctl_show.txt":                                             {"ovs-vsctl.show"},
		"ovs-ofctl_-O_OpenFlow13_dump-flows_br_int":                                                 {"dump-flows", "br_int"},
		"node1_ovs-appctl_dpif.show.log":                                                            {"dpif.show"},
		"ovs-appctl_fdb.show_br-ex":                                                                 {"fdb.show", "br-ex"},
		"ovs-vsctl_list_interface":                                                                  {"list-interface"},
		"ovs-vsctl_list-br":                                                                         {},
		"bug-report-2026/ovs-appctl-bond-show.out":                                                  {"bond.show"},
		"bug-report-2026/ovs-appctl-dpctl-show-s.out":                                               {"dpctl.show"},
		"bug-report-2026/ovs-appctl-coverage-show.out":                                              {"coverage.show"},
		"ovs-appctl_-t_.var.run.ovn.ovn-controller._.ctl_ct-zone-list":                              {"ct-zone-list"},
		"ovs-appctl_-t_.var.run.ovn.ovn-controller.4711.ctl_ct-zone-list":                           {"ct-zone-list"},
		"ovs-appctl_-t_.var.run.openvswitch.ovnnb_db.ctl_cluster.status_OVN_Northbound":             {"cluster.status.nb"},
		"podman_exec_x_ovn-appctl_-t_.var.run.openvswitch.ovn-northd._.ctl_status":                  {"ovn-northd.status"},
		"microovn.ovn-appctl_-t_.var.snap.microovn.common.run.ovn.ovn-northd.12.ctl_status":         {"ovn-northd.status"},
		"ovs-appctl_-t_.var.run.ovn.ovnsb_db.ctl_memory.show":                                       {"sb.memory.show"},
		"ovs-appctl_-t_.var.run.ovn.ovnsb_db.ctl_ovsdb-server.get-db-storage-status_OVN_Southbound": {"sb.storage-status"},
		"ovs-appctl_-t_ovs-monitor-ipsec_tunnels.show":                                              {},
		"bug-report-2026/node1-ovs-appctl-bond-show.out":                                            {"bond.show"},
		"node1-ovs-vsctl_show.txt":                                                                  {"ovs-vsctl.show"},
		"ovs-appctl_upcall.show":                                                                    {"upcall.show"},
		"ip_-4_rule_list":                                                                           {},
		"ip_netns_exec_snat-1_ip_-d_address_show": {"netns.ip.address",
			"snat-1"},
		"ip_netns_exec_snat-1_ip_route_show_table_all.txt": {"netns.ip.route",
			"snat-1"},
		"ip_netns_exec_a_ip_rule_list_ip_-6_rule_list": {"netns.ip.rule.6",
			"a_ip_rule_list"},
		"ip_netns_exec_snat-1_ss_-peaonmi":     {},
		"ip_netns_exec_snat-1_iptables-save.1": {},
		"uptime":                               {},
		"notes.txt":                            {},
	} {
		run, _ := recording.ParseFileName(name)
		expect.Equal(t, [2]string{string(run.Command.Name), run.Argument}, want, name)
	}
}
