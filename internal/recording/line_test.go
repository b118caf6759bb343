package recording_test

import (
	"testing"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
	"ovs-offline/test/check/expect"
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
		"ovs-ofctl -O OpenFlow13 dump-flows br-int":                            {Name: "dump-flows", Argument: "br-int", OpenFlow: openflow.OpenFlow13},
		"ovs-ofctl dump-flows br-int -OOpenFlow15 --names":                     {Name: "dump-flows", Argument: "br-int", OpenFlow: openflow.OpenFlow15},
		"ovs-ofctl --protocols=OpenFlow14 dump-groups br-ex":                   {Name: "dump-groups", Argument: "br-ex", OpenFlow: openflow.OpenFlow14},
		"ovs-ofctl -O OpenFlow10 show br0":                                     {Name: "show.OpenFlow10", Argument: "br0", OpenFlow: openflow.OpenFlow10},
		"ovs-ofctl show br0":                                                   {Name: "show", Argument: "br0"},
		"ovs-appctl fdb/show br0":                                              {Name: "fdb.show", Argument: "br0"},
		"ovs-appctl -t ovs-vswitchd bridge/dump-flows --offload-stats br0":     {Name: "bridge.dump-flows", Argument: "br0"},
		"ovs-appctl dpif/show":                                                 {Name: "dpif.show"},
		"ovs-dpctl dump-flows -m":                                              {Name: "dpctl.dump-flows"},
		"ovs-appctl dpctl/dump-conntrack -m system@ovs-system":                 {Name: "dpctl.dump-conntrack", Argument: "system@ovs-system"},
		"ovs-vsctl list interface":                                             {Name: "list-interface"},
		"ovs-vsctl list Open_vSwitch":                                          {Name: "list-open_vswitch"},
		"ovsdb-client -f list dump":                                            {Name: "ovsdb-client.dump"},
		"ip route show table all":                                              {Name: "ip.route"},
		"ovs-vsctl list interface eth0":                                        {},
		"ovs-vsctl list-br":                                                    {},
		"/sbin/ip addr":                                                        {Name: workdir.RecordedLinks},
		"ip a show":                                                            {Name: workdir.RecordedLinks},
		"ip a show dev eth0":                                                   {},
		"ovs-vsctl show me":                                                    {},
		"echo ovs-vsctl is a tool":                                             {},
		"":                                                                     {},
	} {
		run, ok := recording.ParseLine(line)
		expect.Equal(t, ok, want.Name != "", line)
		expect.Equal(t, found{run.Command.Name, run.Argument, run.OpenFlow}, want, line)
	}
}

// TestFilesNamedForCommands checks names of files that hold the output of a command, as sos
// and people write them.
func TestFilesNamedForCommands(t *testing.T) {
	for name, want := range map[string][2]string{
		"ovs-vsctl_-t_5_show":                           {"ovs-vsctl.show"},
		"node1/openstack-hypervisor.ovs-vsctl_show.txt": {"ovs-vsctl.show"},
		"ovs-ofctl_-O_OpenFlow13_dump-flows_br_int":     {"dump-flows", "br_int"},
		"node1_ovs-appctl_dpif.show.log":                {"dpif.show"},
		"ovs-appctl_fdb.show_br-ex":                     {"fdb.show", "br-ex"},
		"ovs-vsctl_list_interface":                      {"list-interface"},
		"ovs-vsctl_list-br":                             {},
		"bug-report-2026/ovs-appctl-bond-show.out":      {"bond.show"},
		"bug-report-2026/ovs-appctl-dpctl-show-s.out":   {"dpctl.show"},
		"bug-report-2026/ovs-appctl-coverage-show.out":  {},
		"notes.txt": {},
	} {
		run, _ := recording.ParseFileName(name)
		expect.Equal(t, [2]string{string(run.Command.Name), run.Argument}, want, name)
	}
}
