package ovs

import (
	"bytes"
	"path/filepath"
	"testing"
)

// Switch is an ovsdb-server and an ovs-vswitchd whose datapath is a dummy.
type Switch struct {
	// Dir holds the database (conf.db), sockets, pid files and logs.
	Dir        string
	tb         testing.TB
	options    []string
	server     *Server
	vswitchd   *daemon
	controller *daemon // nil without one
}

// Start starts a switch without bridges. The options are those of ovs-vswitchd;
// without any, bridges of type "system" have the dummy datapath. The switch ends
// with the test, which is skipped where Open vSwitch is not installed.
func Start(tb testing.TB, options ...string) *Switch {
	tb.Helper()
	return StartIn(tb, Dir(tb), options...)
}

// StartIn works like Start, with a folder for everything that the switch writes.
func StartIn(tb testing.TB, dir string, options ...string) *Switch {
	tb.Helper()
	Need(tb, "ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "ovs-appctl")
	if len(options) == 0 {
		options = []string{"--enable-dummy=system"}
	}
	s := &Switch{Dir: dir, tb: tb, options: options}
	database := filepath.Join(dir, "conf.db")
	s.Run("ovsdb-tool", "create", database)
	s.server = ServeIn(tb, dir, database)
	s.Vsctl("--no-wait", "init")
	s.startVswitchd()
	return s
}

// startVswitchd returns when ovs-vswitchd has applied the database, which it
// logs by its name and version.
func (s *Switch) startVswitchd() {
	s.tb.Helper()
	before := 0
	if s.vswitchd != nil {
		before = len(s.vswitchd.logged(0))
	}
	s.vswitchd = startDaemon(s.tb, s.Dir, "ovs-vswitchd", append([]string{s.server.Remote}, s.options...)...)
	s.vswitchd.waitFor(s.tb, func() bool { return bytes.Contains(s.vswitchd.logged(before), []byte("(Open vSwitch)")) })
}

// Restart ends ovs-vswitchd and starts it again on the same database.
func (s *Switch) Restart() {
	s.tb.Helper()
	s.vswitchd.stop()
	s.startVswitchd()
}

// Run runs a tool beside the switch, fails the test if it fails, and returns its
// standard output.
func (s *Switch) Run(argv ...string) string {
	s.tb.Helper()
	return must(s.tb, argv, environment(s.Dir))
}

// Try works like Run for a tool that may fail. The error holds its standard error.
func (s *Switch) Try(argv ...string) (string, error) { return try(argv, environment(s.Dir)) }

// Vsctl runs ovs-vsctl.
func (s *Switch) Vsctl(args ...string) string {
	s.tb.Helper()
	return s.Run(append([]string{"ovs-vsctl", Timeout()}, args...)...)
}

// Ofctl runs ovs-ofctl.
func (s *Switch) Ofctl(args ...string) string {
	s.tb.Helper()
	return s.Run(append([]string{"ovs-ofctl", Timeout()}, args...)...)
}

// Appctl runs ovs-appctl on ovs-vswitchd.
func (s *Switch) Appctl(args ...string) string {
	s.tb.Helper()
	return s.Run(append([]string{"ovs-appctl", Timeout()}, args...)...)
}
