package ovs

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Server is an ovsdb-server.
type Server struct {
	// Dir holds the server's sockets, pid file and log.
	Dir string
	// Remote is the server's address as tools take it: "unix:PATH".
	Remote string
	tb     testing.TB
	daemon *daemon
	northd *daemon // nil without one
}

// Serve starts an ovsdb-server on database files, in a folder of its own, and
// returns when it accepts connections. Arguments that begin with "--" are
// options of ovsdb-server. The server ends with the test.
func Serve(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return ServeIn(tb, Dir(tb), args...)
}

// ServeIn works like Serve, with a folder for the server's sockets, pid file and log.
func ServeIn(tb testing.TB, dir string, args ...string) *Server {
	tb.Helper()
	socket := filepath.Join(dir, "db.sock")
	s := &Server{Dir: dir, Remote: "unix:" + socket, tb: tb}
	s.daemon = startDaemon(tb, dir, "ovsdb-server", append([]string{"--remote=punix:" + socket}, args...)...)
	// ovsdb-server opens its control socket after those of its remotes.
	control := filepath.Join(dir, fmt.Sprintf("ovsdb-server.%d.ctl", s.daemon.cmd.Process.Pid))
	for _, argument := range args {
		if path, ok := strings.CutPrefix(argument, "--unixctl="); ok {
			control = path
		}
	}
	s.daemon.waitFor(tb, func() bool { return listening(socket) && listening(control) })
	return s
}

// listening reports whether a unix socket accepts connections: its file exists
// some time before that. It opens the folder first, because an address holds at
// most 107 bytes.
func listening(socket string) bool {
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return false
	}
	defer dir.Close()
	conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket)))
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was written
	return true
}

// Stop ends the server, and its ovn-northd, before the test ends.
func (s *Server) Stop() {
	if s.northd != nil {
		s.northd.stop()
	}
	s.daemon.stop()
}

// Log returns what the server has logged.
func (s *Server) Log() string { return string(s.daemon.logged(0)) }

// Run runs a tool beside the server, fails the test if it fails, and returns its
// standard output.
func (s *Server) Run(argv ...string) string {
	s.tb.Helper()
	return must(s.tb, argv, environment(s.Dir))
}

// Content returns every row of every table with its UUID, in a fixed order.
func (s *Server) Content(database string) string {
	s.tb.Helper()
	s.Run("ovsdb-client", Timeout(), "wait", s.Remote, database, "connected")
	return s.Run("ovsdb-client", Timeout(), "-f", "json", "--pretty", "dump", s.Remote, database)
}

// Northd starts an ovn-northd on the server's OVN databases, and returns when it has
// written its version into both. It ends with the test.
func (s *Server) Northd() {
	s.tb.Helper()
	d := startDaemon(s.tb, s.Dir, "ovn-northd", "--ovnnb-db="+s.Remote, "--ovnsb-db="+s.Remote)
	written := func(tool, table string) bool {
		out, err := try([]string{tool, "--timeout=5", "--db=" + s.Remote, "--if-exists", "get", table, ".", "options:northd_internal_version"}, environment(s.Dir))
		return err == nil && strings.TrimSpace(out) != ""
	}
	s.northd = d
	d.waitFor(s.tb, func() bool { return written("ovn-nbctl", "NB_Global") && written("ovn-sbctl", "SB_Global") })
}
