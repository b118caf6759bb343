package sosgen

import (
	"fmt"
	"path"
)

// MachineFile is a file of a source that belongs to the machine, and not to Open vSwitch's state.
type MachineFile struct {
	Source  string // its path in the source
	Workdir string // where it goes in a workdir
	Body    []byte
}

// logLine returns a line as the programs of Open vSwitch and OVN write it.
func (n *Node) logLine(module, text string) []byte {
	return fmt.Appendf(nil, "2026-01-02T10:00:00.123Z|00012|%s|INFO|%s on %s\n", module, text, n.Host)
}

// Machine returns what a report of any era has of the machine: logs in all shapes, and outputs of
// programs and plugins.
func (n *Node) Machine() (list []MachineFile) {
	add := func(source, workdir string, body []byte) {
		list = append(list, MachineFile{source, "host/" + workdir, body})
	}
	for _, log := range []struct{ program, source, module string }{
		{"ovs-vswitchd", "var/log/openvswitch/ovs-vswitchd.log", "bridge"},
		{"ovs-vswitchd", "var/log/openvswitch/ovs-vswitchd.log.1", "bridge"},
		{"ovsdb-server", "var/log/openvswitch/ovsdb-server.log", "ovsdb_server"},
		{"ovsdb-server-sb", "var/log/ovn/ovsdb-server-sb.log", "raft"},
		{"ovn-controller", "var/log/ovn/ovn-controller.log", "binding"},
		{"ovn-northd", "var/log/ovn/ovn-northd.log", "northd"},
		{"neutron-openvswitch-agent", "var/log/neutron/neutron-openvswitch-agent.log", "agent"},
		{"syslog", "var/log/messages", "kernel"},
		{"journal", "sos_commands/openvswitch/journalctl_--no-pager_--unit_openvswitch", "bridge"},
		{"kernel", "sos_commands/kernel/dmesg", "kernel"},
	} {
		add(log.source, "logs/"+log.program+"/"+path.Base(log.source), n.logLine(log.module, log.source))
	}
	add("var/log/openvswitch/ovs-vswitchd.log.2.gz", "logs/ovs-vswitchd/ovs-vswitchd.log.2.gz", Gzip(n.logLine("bridge", "older")))
	add("var/log/pods/openshift-ovn-kubernetes_ovnkube-node-x1_1234/ovn-controller/0.log", "logs/ovn-controller/ovnkube-node-x1.0.log",
		append([]byte("2026-01-02T10:00:00.123456789Z stderr F "), n.logLine("main", "in a pod")...))
	for source, workdir := range map[string]string{
		"uptime": "uptime", "sos_commands/kernel/sysctl_-a": "sysctl", "sos_commands/systemd/systemctl_list-units": "systemctl.list-units",
		"sos_commands/networking/ethtool_-k_eth0": "devices/eth0/ethtool.features", "sos_commands/networking/ip_-s_-s_neigh_show": "ip.neigh",
		"sos_commands/ovn_central/ovn-appctl_-t_.var.run.ovn.ovn-northd._.ctl_status":                            "ovn-northd.status",
		"sos_commands/ovn_central/ovs-appctl_-t_.var.run.openvswitch.ovnnb_db.ctl_cluster.status_OVN_Northbound": "cluster.status.nb",
		"sos_commands/microshift_ovn/ovs-appctl_-t_.var.run.ovn.ovnsb_db.ctl_coverage.show":                      "sb.coverage.show",
		"sos_commands/ovn_central/ovn-appctl_-t_.var.run.ovn.ovn-controller.4711.ctl_connection-status":          "ovn-controller.connection-status",
	} {
		add(source, workdir, fmt.Appendf(nil, "what %s has on %s\n", source, n.Host))
	}
	return list
}

// PodLogs returns the logs of the containers of the node's pod in a must-gather.
func (n *Node) PodLogs(pod string) (list []MachineFile) {
	folder := "namespaces/" + namespace + "/pods/" + pod + "/"
	for container, program := range map[string]string{"ovn-controller": "ovn-controller", "nbdb": "ovsdb-server-nb", "northd": "ovn-northd", "ovnkube-controller": "ovnkube-controller"} {
		for _, name := range []string{"current.log", "previous.log", "rotated/0.log.20260101-100000.gz"} {
			body := append([]byte("2026-01-02T10:00:00.123456789Z "), n.logLine("main", container+" "+name+" ran ovs-ofctl dump-flows br-int")...)
			if path.Ext(name) == ".gz" {
				body = Gzip(body)
			}
			list = append(list, MachineFile{folder + container + "/" + container + "/logs/" + name,
				"host/logs/" + program + "/" + pod + "." + map[bool]string{true: "rotated." + path.Base(name), false: name}[path.Dir(name) != "."], body})
		}
	}
	return list
}

// putMachine adds the files to a tree.
func (t Tree) putMachine(list []MachineFile) {
	for _, file := range list {
		t.put(file.Source, file.Body)
	}
}
