package recording

import (
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir"
)

// The programs that ovs-appctl asks, besides ovs-vswitchd.
const (
	controller  = "ovn-controller"
	northd      = "ovn-northd"
	ovsdbServer = "ovsdb-server"
	nbServer    = "ovnnb_db" // the ovsdb-server of the OVN NB database, by the name of its socket
	sbServer    = "ovnsb_db"
)

// socketName matches the path of a control socket at its end: ovn-controller.4711.ctl, ovnnb_db.ctl. In
// the names of files, sos writes dots for slashes and "_" for "*".
var socketName = lazyregexp.New(`(?:^|[./])([a-z][A-Za-z0-9_-]*)(?:\.[0-9*?_]+)?\.ctl$`)

// TargetOf returns the program that a value of ovs-appctl's option -t names: ovn-controller,
// /var/run/ovn/ovn-controller.4711.ctl. It is "" for ovs-vswitchd, which is asked without the option.
func TargetOf(value string) string {
	if match := socketName.FindStringSubmatch(value); match != nil {
		value = match[1]
	}
	if value == "ovs-vswitchd" {
		return ""
	}
	return value
}

// switchCommands returns the commands that tell how ovs-vswitchd and its datapath are doing. A replica
// does not use their output.
func switchCommands() []Command {
	return []Command{
		{Name: workdir.RecordedCoverage, Line: "ovs-appctl coverage/show"},
		{Name: workdir.RecordedUpcalls, Line: "ovs-appctl upcall/show"},
		{Name: workdir.RecordedMemory, Line: "ovs-appctl memory/show"},
		{Name: "lacp.show-stats", Line: "ovs-appctl lacp/show-stats"},
		{Name: workdir.RecordedFDBStats, Scope: OfBridge, Line: "ovs-appctl fdb/stats-show"},
		{Name: workdir.RecordedConntrackStats, Scope: OfDatapath, Line: "ovs-appctl dpctl/ct-stats-show -m"},
		{Name: workdir.RecordedConntrackLimit, Scope: OfDatapath, Line: "ovs-appctl dpctl/ct-get-maxconns"},
		{Name: workdir.RecordedConntrackCount, Scope: OfDatapath, Line: "ovs-appctl dpctl/ct-get-nconns"},
		{Name: "dpctl.ipf-get-status", Scope: OfDatapath, Line: "ovs-appctl dpctl/ipf-get-status"},
		{Name: workdir.RecordedOffloadStats, Scope: OfDatapath, Line: "ovs-appctl dpctl/offload-stats-show"},
		{Name: workdir.RecordedPMDStats, Line: "ovs-appctl dpif-netdev/pmd-stats-show"},
		{Name: workdir.RecordedPMDQueues, Line: "ovs-appctl dpif-netdev/pmd-rxq-show"},
		{Name: workdir.RecordedPMDPerformance, Line: "ovs-appctl dpif-netdev/pmd-perf-show"},
		{Name: "dpif-netdev.pmd-sleep-show", Line: "ovs-appctl dpif-netdev/pmd-sleep-show"},
		// The list of the table has them too, on a live node.
		{Name: workdir.RecordedExternalIDs, Line: "ovs-vsctl get Open_vSwitch . external_ids", NotLive: true,
			Sos: []SosLine{{Plugin: openvswitch, Line: "ovs-vsctl -t 5 get Open_vSwitch . external_ids"}}},
		{Name: workdir.RecordedOtherConfig, Line: "ovs-vsctl get Open_vSwitch . other_config", NotLive: true,
			Sos: []SosLine{{Plugin: openvswitch, Line: "ovs-vsctl -t 5 get Open_vSwitch . other_config"}}},
	}
}

// daemonCommands returns the commands that tell how the programs of OVN, and the servers of the
// databases, are doing. Of each program, the one that all versions know is the first.
func daemonCommands() (table []Command) {
	add := func(target, tool, prefix string, commands ...string) {
		for _, command := range commands {
			table = append(table, Command{Name: Name(prefix + "." + strings.ReplaceAll(command, "/", ".")), Host: true, Target: target,
				Line: tool + " -t " + target + " " + command})
		}
	}
	add(controller, "ovn-appctl", controller, "coverage/show", "memory/show", "connection-status", "inc-engine/show-stats",
		"lflow-cache/show-stats", "stopwatch/show", "debug/status")
	add(northd, "ovn-appctl", northd, "coverage/show", "memory/show", "status", "inc-engine/show-stats", "stopwatch/show",
		"nb-connection-status", "sb-connection-status", "debug/chassis-features-list")
	add(ovsdbServer, "ovs-appctl", ovsdbServer, "coverage/show", "memory/show")
	for _, server := range []struct {
		target, short string
		status        Name
		kind          workdir.Kind
	}{{nbServer, "nb", workdir.HostStatusNB, workdir.NB}, {sbServer, "sb", workdir.HostStatusSB, workdir.SB}} {
		add(server.target, "ovs-appctl", server.short, "coverage/show", "memory/show", "ovsdb-server/sync-status")
		table = append(table, Command{Name: server.status, Host: true, Target: server.target,
			Line: "ovs-appctl -t " + server.target + " cluster/status " + server.kind.Schema()})
		table = append(table, Command{Name: Name(server.short + ".storage-status"), Host: true, Target: server.target,
			Line: "ovs-appctl -t " + server.target + " ovsdb-server/get-db-storage-status " + server.kind.Schema()})
	}
	return table
}

// machineCommands returns the commands that tell about the machine. They are not run on live nodes: a
// pod sees its container only.
func machineCommands() []Command {
	of := func(name Name, line string, sos ...SosLine) Command {
		return Command{Name: name, Host: true, NotLive: true, Line: line, Sos: sos}
	}
	run := func(plugin, line string) SosLine { return SosLine{Plugin: plugin, Line: line} }
	file := func(path string) SosLine { return SosLine{File: path} }
	table := []Command{
		of(workdir.HostDate, "date --utc", run("date", "date --utc"), run("date", "date"), file("date")),
		of(workdir.HostUptime, "uptime", run("host", "uptime"), file("uptime")),
		of(workdir.HostKernel, "uname -a", run("kernel", "uname -a"), file("uname")),
		of(workdir.HostMemory, "free", run("memory", "free"), file("free")),
		of(workdir.HostProcessors, "lscpu", run("processor", "lscpu")),
		of(workdir.HostCommandLine, "cat /proc/cmdline", file("proc/cmdline")),
		of(workdir.HostProcesses, "ps auxwwwm", run("process", "ps auxwwwm"), run("process", "ps auxwww"), run("process", "ps aux"), file("ps")),
		of(workdir.HostDebs, "dpkg -l", run("dpkg", "dpkg -l"), file("installed-debs")),
		of(workdir.HostRPMs, "rpm -qa", file("installed-rpms"), file("sos_commands/rpm/package-data")),
		of(workdir.HostUnits, "systemctl list-units", run("systemd", "systemctl list-units --all"), run("systemd", "systemctl list-units")),
		of(workdir.HostUnitFiles, "systemctl list-unit-files", run("systemd", "systemctl list-unit-files")),
		of(workdir.HostLinks, "ip -s link", run(networking, "ip -s -d link"), run(networking, "ip -s link")),
	}
	for _, tool := range []string{"iptables", "ip6tables"} {
		for _, rules := range [][2]string{{"filter", "-vnxL"}, {"nat", "-t nat -nvL"}, {"mangle", "-t mangle -nvL"}} {
			line := tool + " " + rules[1]
			table = append(table, of(Name(tool+"."+rules[0]), line, run("firewall_tables", line), run(networking, line)))
		}
	}
	for _, command := range []Command{
		of(workdir.HostDeviceFeatures, "ethtool -k", run(networking, "ethtool -k")),
		of(workdir.HostDeviceStatistics, "ethtool -S", run(networking, "ethtool -S")),
	} {
		command.Scope = OfDevice
		table = append(table, command)
	}
	return table
}

// networkCommands returns the commands that tell what the kernel does with packets in the node's own network
// namespace, in which the pods are that they are run in on a live node.
func networkCommands() []Command {
	of := func(name Name, line string, sos ...SosLine) Command {
		return Command{Name: name, Host: true, Line: line, Sos: sos}
	}
	large := func(name Name, line string, sos ...SosLine) Command {
		return Command{Name: name, Host: true, Large: true, Line: line, Sos: sos}
	}
	run := func(plugin, line string) SosLine { return SosLine{Plugin: plugin, Line: line} }
	return []Command{
		of(workdir.HostSysctl, "sysctl -a", run("kernel", "sysctl -a")),
		of(workdir.HostRules, "ip rule", run(networking, "ip -4 rule list"), run(networking, "ip -4 rule"), run(networking, "ip rule list")),
		of(workdir.NamespaceRules6, "ip -6 rule", run(networking, "ip -6 rule list"), run(networking, "ip -6 rule")),
		of(workdir.HostNeighbours, "ip -s -s neigh show", run(networking, "ip -s -s neigh show"), run(networking, "ip neigh show")),
		large(workdir.HostNftables, "nft list ruleset", run("firewall_tables", "nft -a list ruleset"), run("firewall_tables", "nft list ruleset"), run(networking, "nft list ruleset")),
		large(workdir.NamespaceFilters, "iptables-save"),
		large(workdir.NamespaceFilters6, "ip6tables-save"),
		large(workdir.NamespaceSets, "ipset save"),
		large(workdir.NamespaceConntrack, "conntrack -L -o extended", run(conntrack, "conntrack -L -o extended")),
	}
}

// isOfSystem reports whether a command runs a tool of the operating system. A text that names such a
// tool need not have its output.
func (c Command) isOfSystem() bool {
	return c.Host && c.Target == "" && !strings.HasPrefix(c.Line, "ip ") && !strings.HasPrefix(c.Line, "ovn-")
}
