// Package daemon knows the behaviour of Open vSwitch's daemons that is the same in
// every runtime: their environment, the files and sockets that they make, their
// logs, and when they are ready.
package daemon

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ovs-offline/internal/unixctl"
	"ovs-offline/replica/runtime"
)

// Environment returns the whole environment of a daemon or tool; path is its PATH.
// It has nothing of the caller's OVS and OVN settings, and sets every directory
// that OVS would otherwise share with the host's own installation.
func Environment(path, runDir, logDir string) []string {
	return []string{
		"PATH=" + path,
		"OVS_RUNDIR=" + runDir, "OVS_LOGDIR=" + logDir, "OVS_DBDIR=" + runDir, "OVS_SYSCONFDIR=" + runDir,
		"OVN_RUNDIR=" + runDir, "OVN_LOGDIR=" + logDir, "OVN_DBDIR=" + runDir, "OVN_SYSCONFDIR=" + runDir,
		"OVS_SYSLOG_METHOD=null",     // else each writes to the host's syslog before it reads -vsyslog:off
		"OVS_RESOLV_CONF=/dev/null",  // names in a database are not looked up in the host's DNS
		"OVS_UNBOUND_CONF=/dev/null", // nor by a resolver's own configuration
	}
}

// Ask sends a command to the daemon of that program ("ovs-vswitchd") whose pid file
// is in runDir, and returns its answer. It uses the control socket, which is on
// this host in every runtime, else the runtime's ovs-appctl. The error is a
// *command.Error.
func Ask(ctx context.Context, rt runtime.Runtime, runDir, program string, argv ...string) ([]byte, error) {
	out, err := unixctl.Run(ctx, runDir, program, argv...)
	if !errors.Is(err, unixctl.ErrUnreachable) {
		return out, err
	}
	return rt.Tool(ctx, runDir, nil, append([]string{"ovs-appctl", "-t", program}, argv...)...)
}

// StartTimeout returns the time that a start of d may take: minimum, and a second
// for each MiB of a database. ovsdb-server loads tens of MiB a second, but not on a
// busy machine.
func StartTimeout(minimum time.Duration, d runtime.Daemon) time.Duration {
	if d.Program != "ovsdb-server" {
		return minimum
	}
	var size int64
	for _, arg := range d.Args {
		if info, err := os.Stat(arg); err == nil && filepath.IsAbs(arg) {
			size += info.Size()
		}
	}
	return minimum + time.Duration(size>>20)*time.Second
}

// Ready reports whether d, which runs in the foreground, has come as far as its own
// --detach would wait for: it answers at its sockets and, if it is ovs-vswitchd,
// has set up the bridges of its database. before is the size of its log before it
// was started.
func Ready(d runtime.Daemon, before int64) bool {
	answers := false
	for _, path := range ControlSockets(d) {
		_, listening := Listener(path)
		answers = answers || listening
	}
	if !answers {
		return false
	}
	for _, path := range listens(d) {
		if _, listening := Listener(path); !listening {
			return false
		}
	}
	return d.Program != "ovs-vswitchd" || configured(d.Log, before)
}

// configured looks for the line that ovs-vswitchd logs at the moment at which it
// would detach (bridge_run in vswitchd/bridge.c).
func configured(log string, before int64) bool {
	f, err := os.Open(log)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	scanner := bufio.NewScanner(io.NewSectionReader(f, before, 1<<62))
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		if strings.Contains(scanner.Text(), "|bridge|INFO|ovs-vswitchd (Open vSwitch) ") {
			return true
		}
	}
	return false
}
