// Package daemon knows what Open vSwitch's daemons do wherever they run: the
// environment they take, the files and sockets they leave in their directories,
// and what their logs say.
package daemon

// Environment is all that a daemon or tool gets, path being its PATH: nothing of the caller's own
// OVS and OVN settings, and every directory that OVS would otherwise take from
// the host's own installation.
func Environment(path, runDir, logDir string) []string {
	return []string{
		"PATH=" + path,
		"OVS_RUNDIR=" + runDir, "OVS_LOGDIR=" + logDir, "OVS_DBDIR=" + runDir, "OVS_SYSCONFDIR=" + runDir,
		"OVN_RUNDIR=" + runDir, "OVN_LOGDIR=" + logDir, "OVN_DBDIR=" + runDir, "OVN_SYSCONFDIR=" + runDir,
		"OVS_SYSLOG_METHOD=null",     // else each greets the host's syslog before it reads -vsyslog:off
		"OVS_RESOLV_CONF=/dev/null",  // no name that a database holds is asked of the host's DNS
		"OVS_UNBOUND_CONF=/dev/null", // nor by way of a resolver's own settings
	}
}
