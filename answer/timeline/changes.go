package timeline

import (
	"bytes"
	"sync"

	"ovs-offline/internal/daemonlog"
)

// changes are the parts of messages that say that something changed, by the module that writes them; ""
// stands for any module. They are from the sources of Open vSwitch 3.6 and OVN 25.09.
var changes = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"":               {"recompute", "killed (", "leader for term", "became leader", "acquired lease"},
		"vlog":           {"opened log file"},
		"bridge":         {"added interface", "deleted interface", "(Open vSwitch)", "using datapath ID", "state changed"},
		"ovsdb_server":   {"(Open vSwitch)", "compact"},
		"daemon_unix":    {"died", "restarting"},
		"binding":        {"Claiming", "Releasing", "Changing chassis", "Not claiming", "Setting lport", "Dropped"},
		"if_status":      {"Setting lport", "lport"},
		"bfd":            {"state change"},
		"raft":           {"term ", "leader", "lection", "server ", "cluster", "join", "remov", "snapshot", "transfer"},
		"storage":        {"compact"},
		"ovsdb_file":     {"compact"},
		"ovsdb":          {"compact", "Database"},
		"reconnect":      {": connected", "closed by peer", "connection attempt failed", "connection failed", "connection dropped", "no response", "timed out", "cluster leader"},
		"rconn":          {": connected", "closed by peer", "connection failed", "connection dropped", "no response", "timed out"},
		"ovsdb_idl":      {"not cluster leader", "disconnected from cluster", "database server", "Resetting"},
		"ovsdb_cs":       {"not cluster leader", "disconnected from cluster", "database server", "not the cluster leader"},
		"ovn_northd":     {"active", "standby", "lock"},
		"main":           {"northd", "connect", "restart", "exiting", "version"},
		"bond":           {"enabled", "disabled", "active member", "active slave", "link state"},
		"lacp":           {"state", "partner"},
		"ofproto_dpif":   {"link state", "state changed"},
		"rstp":           {"state", "root"},
		"stp":            {"state", "root"},
		"vsctl":          {"Called as"},
		"nbctl":          {"Called as"},
		"sbctl":          {"Called as"},
		"chassis":        {"chassis"},
		"encaps":         {"tunnel"},
		"kernel":         {"promiscuous mode", "link becomes ready", "Link is", "link is not ready", "segfault", "Out of memory", "Killed process", "oom-kill"},
		"systemd":        {"Started ", "Stopped ", "Starting ", "Stopping ", "Main process exited", "Failed ", "code=killed"},
		"NetworkManager": {"state change"},
	}
})

// isChange reports whether a line says that something changed: of a module, or of a program without any.
func isChange(line *daemonlog.Line) bool {
	if line.Continues || line.Level == daemonlog.Debug {
		return false
	}
	module := line.Module
	if module == nil {
		module = line.Program
	}
	if bytes.HasSuffix(module, []byte(".ovs_idl.vlog")) { // ovsdbapp has the messages of the library of Open vSwitch
		module = []byte("reconnect")
	}
	return hasAny(line.Text, changes()[string(module)]) || hasAny(line.Text, changes()[""])
}

func hasAny(text []byte, parts []string) bool {
	for _, part := range parts {
		if bytes.Contains(text, []byte(part)) {
			return true
		}
	}
	return false
}
