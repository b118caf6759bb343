package recording

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"

	"ovs-offline/internal/daemonlog"
	"ovs-offline/internal/lazyregexp"
)

// LogFile is what the path of a log in a source tells about it.
type LogFile struct {
	Program string // "ovs-vswitchd"; the logs of several programs have one of SharedLogs
	Name    string // of the file on the node; of a pod's log, with the name of the pod in front
	Pod     string // whose container printed it, "" for none
	// Sure reports that the path alone tells that the file is a log: other files may have its name.
	Sure bool
}

// The programs of logs that hold lines of several programs, or of the kernel.
const (
	Journal = "journal"
	Syslog  = "syslog"
	Kernel  = "kernel"
)

// IsShared reports whether the logs of a program hold lines of the whole machine.
func IsShared(program string) bool {
	return program == Journal || program == Syslog || program == Kernel
}

// rotation matches what logrotate and others add to the name of a log.
const rotation = `(?:[.-](?:[0-9]+|old))*(?:\.(?:gz|xz|zst|bz2))?(?:\.tailed)?`

var (
	// daemonLog matches the names of logs that are named for their program. Names in sos_strings begin
	// with the path on the node, with dots for slashes.
	daemonLog = lazyregexp.New(`^(?:.*\.)?((?:ovs-vswitchd|ovsdb-server(?:-(?:[ns]b|ic-[ns]b|relay|local))?|ovn-controller(?:-vtep)?|ovn-northd|ovn-ic|ovn-br-controller|ovs-monitor-ipsec|ovs-ctl|ovn-ctl|ovn_[a-z_]+_agent|ovn-[a-z-]*agent|kube-ovn-[a-z-]+|antrea-(?:agent|controller))\.log` + rotation + `)$`)
	// neutronLog matches the logs of Neutron, whose folder some distributions leave to tell the program.
	neutronLog = lazyregexp.New(`(?:^|[/.])neutron[/.](?:neutron-)?([a-z0-9_-]+\.log` + rotation + `)$`)
	// neutronName matches the logs of Neutron by their names alone.
	neutronName = lazyregexp.New(`^neutron-([a-z0-9-]+\.log` + rotation + `)$`)
	// machineLog matches the logs of syslog, and of the kernel.
	machineLog = lazyregexp.New(`(?:^|/|\.)var[/.]log[/.]((?:syslog|messages|kern\.log|dmesg)` + rotation + `)$`)
	// journalText matches what journalctl printed for plugins of sos.
	journalText = lazyregexp.New(`(?:^|/)(?:sos_commands|sos_strings)/(?:logs|systemd|openvswitch|ovn_host|ovn_central|openstack_neutron|networking|networkmanager)/(journalctl_[^/]+)$`)
	journalMeta = lazyregexp.New(`--list-boots|--disk-usage|--verify|--header`)
	kernelText  = lazyregexp.New(`(?:^|/)sos_commands/kernel/(dmesg(?:_-T)?)$`)
	// logEnding is what is not part of the program's name.
	logEnding = lazyregexp.New(`\.log` + rotation + `$`)
)

// podLogs are the paths of logs of containers as the kubelet, a must-gather, the support bundle of
// Harvester, and sos with the option podlogs (sos/report/plugins/kubernetes.py, openshift.py) name them. The groups are the pod, the container and the rest of the name.
var podLogs = []*lazyregexp.Regexp{
	lazyregexp.New(`(?:^|/)var/log/pods/[^/_]+_(?P<pod>[^/_]+)_[^/]+/(?P<container>[^/]+)/(?P<name>[0-9]+\.log[^/]*)$`),
	lazyregexp.New(`(?:^|/)var/log/containers/(?P<pod>[^/_]+)_[^/_]+_(?P<container>[^/]+)-(?P<name>[0-9a-f]{64}\.log)$`),
	lazyregexp.New(`(?:^|/)namespaces/[^/]+/pods/(?P<pod>[^/]+)/(?P<container>[^/]+)/[^/]+/logs/(?P<name>.+)$`),
	lazyregexp.New(`(?:^|/)logs/[^/]+/(?P<pod>[^/]+)/(?P<container>[^/]+?)(?P<name>\.log(?:\.[0-9]+)?)$`),
	lazyregexp.New(`(?:^|/)podlogs/(?P<pod>[^/]+)/[^/]*_logs_[^/]*?_-c_(?P<container>[A-Za-z0-9-]+)(?P<name>(?:\.tailed)?)$`),
	lazyregexp.New(`(?:^|/)sos_commands/(?:podman|docker)/(?:containers/)?(?P<pod>podman|docker)_logs_(?:-t_)?(?P<container>[A-Za-z0-9_-]+)(?P<name>)$`),
	lazyregexp.New(`(?:^|/)var/log/containers/(?P<pod>stdouts)/(?P<container>[^/]+?)(?P<name>\.log` + rotation + `)$`),
}

// containerPrograms has the programs that containers of Open vSwitch, OVN and what uses them run, by the
// names of the containers. A container that runs several is one of its own.
func containerPrograms() map[string]string {
	return map[string]string{
		"northd": "ovn-northd", "ovn-northd": "ovn-northd", "ovn_northd": "ovn-northd",
		"nbdb": "ovsdb-server-nb", "nb-ovsdb": "ovsdb-server-nb", "ovsdbserver-nb": "ovsdb-server-nb", "ovn-nb-db-server": "ovsdb-server-nb", "ovn_cluster_north_db_server": "ovsdb-server-nb",
		"sbdb": "ovsdb-server-sb", "sb-ovsdb": "ovsdb-server-sb", "ovsdbserver-sb": "ovsdb-server-sb", "ovn-sb-db-server": "ovsdb-server-sb", "ovn_cluster_south_db_server": "ovsdb-server-sb",
		"ovn-controller": "ovn-controller", "ovn_controller": "ovn-controller",
		"ovs-vswitchd": "ovs-vswitchd", "ovsdb-server": "ovsdb-server",
	}
}

// ownContainers matches the names of the other containers whose logs are taken.
var ownContainers = lazyregexp.New(`^(?:ovnkube-[a-z-]+|ovn-acl-logging|ovn-dbchecker|ovn-ipsec|ovs-daemons|openvswitch|openvswitch_[a-z_]+|ovn-central|ovn-dbs-bundle[a-z0-9-]*|ovn_[a-z_]+|cni-server|kube-ovn-[a-z-]+|antrea-[a-z-]+|neutron_[a-z_]+)$`)

// LogOf returns what a path in a source tells about a log of Open vSwitch, OVN, Neutron, or the machine.
func LogOf(file string) (log LogFile, ok bool) {
	if !containsAny(file, ".log", "/logs/", "_logs_", "journalctl_", "dmesg", "syslog", "messages") { // a source can have a million names
		return LogFile{}, false
	}
	if log, ok := podLog(file); ok {
		return log, true
	}
	base := path.Base(file)
	below := strings.Contains("/"+file, "/var/log/") || strings.Contains("/"+file, "/sos_strings/") || strings.Contains("/"+file, "/var/snap/")
	if match := daemonLog.FindStringSubmatch(base); match != nil {
		return named("", match[1], below), true
	}
	for _, pattern := range []*lazyregexp.Regexp{neutronLog, neutronName} {
		if match := pattern.FindStringSubmatch(file); match != nil && (below || pattern == neutronName) {
			return named("neutron-", match[1], below), true
		}
	}
	if match := machineLog.FindStringSubmatch(file); match != nil {
		program := Kernel
		if strings.HasPrefix(match[1], "syslog") || strings.HasPrefix(match[1], "messages") {
			program = Syslog
		}
		return LogFile{Program: program, Name: strings.TrimSuffix(match[1], ".tailed"), Sure: true}, true
	}
	if match := journalText.FindStringSubmatch(file); match != nil && !journalMeta.MatchString(match[1]) {
		return LogFile{Program: Journal, Name: strings.TrimSuffix(match[1], ".tailed"), Sure: true}, true
	}
	if match := kernelText.FindStringSubmatch(file); match != nil {
		return LogFile{Program: Kernel, Name: match[1], Sure: true}, true
	}
	return LogFile{}, false
}

// containsAny reports whether a text contains one of some words.
func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// named returns the log with a name that begins with its program, without a prefix of that.
func named(prefix, name string, sure bool) LogFile {
	name = prefix + strings.TrimSuffix(name, ".tailed")
	return LogFile{Program: logEnding.ReplaceAllString(name, ""), Name: name, Sure: sure}
}

// podLog returns the log of a container.
func podLog(file string) (log LogFile, ok bool) {
	for _, pattern := range podLogs {
		match := pattern.FindStringSubmatch(file)
		if match == nil {
			continue
		}
		pod, container, name := match[1], match[2], match[3]
		program, known := ContainerProgram(container)
		if !known || strings.Contains(file, "/podlogs/") && !isCentral(program) {
			return LogFile{}, false
		}
		if slices.Contains([]string{"stdouts", "podman", "docker"}, pod) { // which have no pods
			return LogFile{Program: program, Name: pod + "." + container + name, Sure: true}, true
		}
		name = cmp.Or(strings.TrimPrefix(strings.TrimSuffix(name, ".tailed"), "."), container+".log")
		return LogFile{Program: program, Name: PodLogName(pod, name), Pod: pod, Sure: true}, true
	}
	return LogFile{}, false
}

// isCentral reports whether a program runs for all nodes. sos has the logs of pods of all nodes in the report of one, and does not say where
// each ran: a log of a program of another node would count as one of this node.
func isCentral(program string) bool {
	return slices.Contains([]string{"ovn-northd", "ovsdb-server-nb", "ovsdb-server-sb"}, program)
}

// ContainerProgram returns the program whose log a container prints; ok is false for containers of other
// things than Open vSwitch and OVN.
func ContainerProgram(container string) (program string, ok bool) {
	if program, ok := containerPrograms()[container]; ok {
		return program, true
	}
	return container, ownContainers.MatchString(container)
}

// PodLogName returns the name of the log that a container of a pod printed.
func PodLogName(pod, name string) string { return pod + "." + strings.ReplaceAll(name, "/", ".") }

// UnknownDaemon is the program of a log that a program of Open vSwitch or OVN wrote, or several, none of which is known by
// name.
const UnknownDaemon = "daemon"

// IsLogLine reports whether a line is one of a log of a program of Open vSwitch or OVN, in any form in which logs are kept.
func IsLogLine(line string) bool {
	if !containsAny(line, severities()...) {
		return false
	}
	_, ok := daemonlog.Vlog([]byte(line))
	return ok
}

func severities() []string { return []string{"|INFO|", "|WARN|", "|ERR|", "|DBG|", "|EMER|"} }

// programModules has the modules (VLOG_DEFINE_THIS_MODULE) that one program alone logs with, in any release: those of its own
// folder in the source, and of libraries that the others do not use. ovn-controller-vtep, which is rare, has "binding" too.
// The modules dpif, dpdk and netdev_dpdk and their kin are linked to all programs, and ovs-vswitchd alone opens datapaths.
func programModules() map[string][]string {
	return map[string][]string{
		"ovs-vswitchd": {"bfd", "bond", "bridge", "bundles", "cfm", "collectors", "connmgr", "dpdk", "dpif", "dpif_netdev", "dpif_netlink", "dpif_offload",
			"dpif_offload_dpdk", "dpif_offload_dpdk_netdev", "dpif_offload_tc", "dpif_offload_tc_netdev", "fail_open", "in_band", "ipfix", "lacp", "lldp", "lldpd",
			"netdev_dpdk", "netdev_offload_dpdk", "netdev_offload_tc", "netflow", "ofproto", "ofproto_dpif", "ofproto_dpif_mirror", "ofproto_dpif_monitor",
			"ofproto_dpif_rid", "ofproto_dpif_upcall", "ofproto_dpif_xlate", "ofproto_xlate_cache", "ovs_lldp", "pktbuf", "pmd_perf", "rstp", "rstp_sm", "sflow", "stp",
			"system_stats", "tunnel", "vswitchd"},
		"ovsdb-server": {"ovsdb", "ovsdb_file", "ovsdb_jsonrpc_server", "ovsdb_log", "ovsdb_monitor", "ovsdb_rbac", "ovsdb_server", "ovsdb_util", "raft", "raft_rpc",
			"relay", "replication", "storage", "transaction", "transaction_forward", "trigger"},
		"ovn-controller": {"acl_ids", "acl_log", "binding", "chassis", "controller_lb", "ct_zone", "encaps", "evpn_arp", "evpn_binding", "evpn_fdb", "garp_rarp",
			"ha_chassis", "host_if_monitor", "if_status", "ldata", "lflow", "lflow_cache", "lport", "mac_cache", "mac_learn", "neighbor_exchange", "ofctrl", "ovn_bfd",
			"ovndns", "ovsport", "patch", "physical", "pinctrl", "port_mirror", "route_exchange", "statctrl", "vif_plug"},
		"ovn-northd": {"datapath_sync", "en_global_config", "en_lb_data", "en_lr_nat", "en_lr_stateful", "en_ls_stateful", "en_meters", "en_multicast", "en_northd",
			"en_port_group", "en_sync_from_sb", "en_sync_to_sb", "inc_proc_northd", "ipam", "lflow_mgr", "mac_binding_aging", "northd", "northd_acl_ids", "northd_lb", "ovn_northd"},
		"ovn-ic":            {"en_ic", "inc_proc_ic", "ovn_ic"},
		"ovn-br-controller": {"brflowmgr", "brofctrl", "en_bridge_data", "en_pflow"},
	}
}

// namedDaemons are the programs that the name of a file tells.
func namedDaemons() []string {
	return []string{"ovsdb-server-nb", "ovsdb-server-sb", "ovsdb-server", "ovs-vswitchd", "ovn-controller", "ovn-northd", "ovn-ic"}
}

// LogOfContent returns the log that the beginning of a file shows to be one of a program of Open vSwitch or OVN. The program is
// in the file's name, or else lines name it, or their modules tell it. Where they tell several, none is known: that of each
// line is, as far as the line names it.
func LogOfContent(file string, start []byte) (log LogFile, ok bool) {
	if !slices.ContainsFunc(severities(), func(word string) bool { return bytes.Contains(start, []byte(word)) }) {
		return LogFile{}, false // a source can have a million files
	}
	programOf := map[string]string{}
	for program, modules := range programModules() {
		for _, module := range modules {
			programOf[module] = program
		}
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(start) {
		if !bytes.Contains(line, []byte("|")) {
			continue
		}
		if written, isVlog := daemonlog.Vlog(line); isVlog {
			ok = true
			seen[cmp.Or(programOf[written.Module], written.Program)] = true
		}
	}
	if !ok {
		return LogFile{}, false
	}
	log = LogFile{Program: UnknownDaemon, Name: path.Base(file), Sure: true}
	delete(seen, "")
	if len(seen) == 1 {
		for program := range seen {
			log.Program = program
		}
	}
	for _, program := range namedDaemons() {
		if strings.Contains(log.Name, program) {
			log.Program = program
			break
		}
	}
	return log, true
}
