// Package daemon implements what Open vSwitch's daemons have in common in every
// runtime: their environment, the files and sockets that they make, their logs, and
// when they are ready.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/unixctl"
	"ovs-offline/replica/runtime"
)

// Environment returns the whole environment of a daemon or tool; path is its PATH.
// It contains none of the caller's OVS and OVN settings, and sets every directory that
// OVS would otherwise share with the host's own installation.
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

// Ask sends a command to the daemon of that program ("ovs-vswitchd") whose pid file is
// in runDir, and returns its answer. It uses the control socket, which is on this host
// in every runtime, else the runtime's ovs-appctl. The error is a *command.Error.
func Ask(ctx context.Context, rt runtime.Runtime, runDir, program string, argv ...string) ([]byte, error) {
	out, err := unixctl.Run(ctx, runDir, program, argv...)
	if !errors.Is(err, unixctl.ErrUnreachable) {
		return out, err
	}
	return rt.Tool(ctx, runDir, nil, append([]string{"ovs-appctl", "-t", program}, argv...)...)
}

// The time limits for the start of a daemon with a small database, and for its end,
// after which it is killed.
const (
	StartTimeout = 30 * time.Second
	StopTimeout  = 5 * time.Second
)

// StartContext returns the context of a start of the daemon, with a timeout: minimum, and a
// second for each MiB of a database. ovsdb-server loads tens of MiB per second, but
// less on a busy machine.
func StartContext(ctx context.Context, minimum time.Duration, daemon runtime.Daemon) (context.Context, context.CancelFunc) {
	var size int64
	for _, path := range databases(daemon) {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	timeout := minimum + time.Duration(size>>20)*time.Second
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it was not ready within %v: %w", timeout, context.DeadlineExceeded))
}

// StartEnded returns the error of a StartContext that has ended.
func StartEnded(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return ctx.Err()
}

// Ready reports whether the daemon, which runs in the foreground, is ready in the sense of its
// own --detach: it answers at its sockets and, if it is ovs-vswitchd, has set up the
// bridges of its database. before is the size of its log before it was started.
func Ready(daemon runtime.Daemon, before int64) bool {
	if !slices.ContainsFunc(ControlSockets(daemon), answers) {
		return false
	}
	for _, path := range listens(daemon) {
		if !answers(path) {
			return false
		}
	}
	return daemon.Program != "ovs-vswitchd" || slices.ContainsFunc(linesFrom(daemon.Log, before), isConfigured)
}

func answers(path string) bool {
	_, _, ok := Listener(path)
	return ok
}

// isConfigured recognises the line that ovs-vswitchd logs at the moment at which it
// would detach (bridge_run in vswitchd/bridge.c).
func isConfigured(line string) bool {
	return strings.Contains(line, "|bridge|INFO|ovs-vswitchd (Open vSwitch) ")
}
