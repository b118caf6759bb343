package ovs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Cluster is a database that several servers share (RAFT). Their addresses are unix sockets.
type Cluster struct {
	Database string // "OVN_Northbound"
	Members  []*Member
	tb       testing.TB
	dir      string
}

// Member is one server of a cluster.
type Member struct {
	Name    string // "n1"
	Address string // for the other servers
	File    string
	Dir     string // of its sockets, pid file and log
	cluster *Cluster
	server  *Server // nil while it does not run
	cut     bool    // CutOff was called
}

// electionTimer is that of the clusters, in milliseconds: elections are short, and a loaded machine
// is not taken for a dead one.
const electionTimer = "1000"

// StartCluster starts a cluster of n servers, and returns when all have joined. The servers end with
// the test, which is skipped where Open vSwitch is not installed.
func StartCluster(tb testing.TB, n int, database, schema string) *Cluster {
	tb.Helper()
	Need(tb, "ovsdb-tool", "ovsdb-server", "ovsdb-client", "ovs-appctl")
	c := &Cluster{Database: database, tb: tb, dir: Dir(tb)}
	for range n {
		m := c.Add()
		if m == c.Members[0] {
			Run(tb, "ovsdb-tool", "--election-timer="+electionTimer, "create-cluster", m.File, schema, m.Address)
		} else {
			m.Join(c.Members[0].Address)
		}
		m.Start()
		m.WaitFor("Status: cluster member")
	}
	return c
}

// Add adds a member without a file.
func (c *Cluster) Add() *Member {
	c.tb.Helper()
	name := "n" + strconv.Itoa(len(c.Members)+1)
	dir := filepath.Join(c.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		c.tb.Fatal(err)
	}
	m := &Member{Name: name, Address: "unix:" + filepath.Join(c.dir, name+".raft"), File: filepath.Join(dir, name+".db"), Dir: dir, cluster: c}
	c.Members = append(c.Members, m)
	return m
}

// Join makes the file of a server that is to join the servers at the given addresses.
func (m *Member) Join(addresses ...string) {
	m.cluster.tb.Helper()
	Run(m.cluster.tb, append([]string{"ovsdb-tool", "join-cluster", m.File, m.cluster.Database, m.Address}, addresses...)...)
}

// Start starts the server on its file.
func (m *Member) Start() {
	m.cluster.tb.Helper()
	_ = os.Remove(m.Control()) // of a server that was killed; there may be none
	m.server = ServeIn(m.cluster.tb, m.Dir, m.File, "--unixctl="+m.Control())
}

// Control returns the path of the server's control socket.
func (m *Member) Control() string { return filepath.Join(m.Dir, "ctl") }

// Remote returns the server's address for clients.
func (m *Member) Remote() string { return "unix:" + filepath.Join(m.Dir, "db.sock") }

// Running reports whether the server was started and not ended.
func (m *Member) Running() bool { return m.server != nil }

// Stop ends the server.
func (m *Member) Stop() {
	if m.server != nil {
		m.server.Stop()
		m.server = nil
	}
}

// Kill ends the server without giving it time for anything.
func (m *Member) Kill() {
	m.Signal(syscall.SIGKILL)
	m.Stop()
}

// Signal sends a signal to the server: SIGSTOP keeps it from answering, as a partition does, and
// SIGCONT ends that.
func (m *Member) Signal(signal syscall.Signal) {
	m.cluster.tb.Helper()
	if err := m.server.daemon.cmd.Process.Signal(signal); err != nil {
		m.cluster.tb.Fatal(err)
	}
}

// Appctl runs ovs-appctl on the server. The error holds its standard error.
func (m *Member) Appctl(args ...string) (string, error) {
	return try(append([]string{"ovs-appctl", "--timeout=10", "-t", m.Control()}, args...), nil)
}

// Status returns what cluster/status prints, "" if the server does not answer.
func (m *Member) Status() string {
	out, err := m.Appctl("cluster/status", m.cluster.Database)
	if err != nil {
		return ""
	}
	return out
}

// Log returns what the server logged since it was started.
func (m *Member) Log() string { return m.server.Log() }

// WaitFor returns when cluster/status has a text, and fails the test if that takes longer than Patience.
func (m *Member) WaitFor(text string) {
	m.cluster.tb.Helper()
	m.cluster.Wait(m.Name+": "+text, func() bool { return strings.Contains(m.Status(), text) })
}

// Wait returns when a condition holds. If that takes longer than Patience it fails the test, with the status and the log of
// each member.
func (c *Cluster) Wait(what string, holds func() bool) {
	c.tb.Helper()
	Await(c.tb, what, holds, func() string {
		var state strings.Builder
		for _, m := range c.Members {
			if m.Running() {
				fmt.Fprintf(&state, "%s: %s\n%s\n", m.Name, m.Status(), m.server.Log())
			}
		}
		return state.String()
	})
}

// Leader returns the member that leads, once there is one that the other running members know too.
func (c *Cluster) Leader() *Member {
	c.tb.Helper()
	var leader *Member
	c.Wait("a leader", func() bool {
		leader = nil
		for _, m := range c.Members {
			if !m.Running() {
				continue
			}
			status := m.Status()
			if strings.Contains(status, "Leader: self\n") {
				leader = m
			} else if strings.Contains(status, "Leader: unknown\n") {
				return false
			}
		}
		return leader != nil
	})
	return leader
}

// Other returns a member that is none of the given ones.
func (c *Cluster) Other(not ...*Member) *Member {
	for _, m := range c.Members {
		found := false
		for _, one := range not {
			found = found || one == m
		}
		if !found {
			return m
		}
	}
	return nil
}

// Transact runs a transaction on a member (RFC 7047), and fails the test if it fails.
func (m *Member) Transact(operations string) {
	m.cluster.tb.Helper()
	if err := m.TryTransact(operations); err != nil {
		m.cluster.tb.Fatal(err)
	}
}

// TryTransact works like Transact for a transaction that may fail.
func (m *Member) TryTransact(operations string) error {
	out, err := try([]string{"ovsdb-client", "--timeout=10", "--no-leader-only", "transact", m.Remote(), fmt.Sprintf("[%q,%s]", m.cluster.Database, operations)}, nil)
	if err == nil && strings.Contains(out, `"error"`) {
		err = fmt.Errorf("%s: %s", operations, out)
	}
	return err
}

// Content returns every row of a table, in a fixed order.
func (m *Member) Content(table string) string {
	m.cluster.tb.Helper()
	return Run(m.cluster.tb, "ovsdb-client", Timeout(), "--no-leader-only", "-f", "json", "--pretty", "dump", m.Remote(), m.cluster.Database, table)
}

// LimitFile lets a running server write only so many more bytes to its file. The kernel ends it when
// it writes more, after what still fits.
func (m *Member) LimitFile(bytes int64) {
	m.cluster.tb.Helper()
	stat, err := os.Stat(m.File)
	if err != nil {
		m.cluster.tb.Fatal(err)
	}
	limit := strconv.FormatInt(stat.Size()+bytes, 10)
	Run(m.cluster.tb, "prlimit", "--pid="+strconv.Itoa(m.server.daemon.cmd.Process.Pid), "--fsize="+limit)
}

// CutOff starts the server again so that it reaches no other server, and no other reaches it. Reconnect
// ends that.
func (m *Member) CutOff() {
	m.cluster.tb.Helper()
	m.Stop()
	m.moveSockets(func(path string) error { return os.Rename(path, path+".hidden") })
	if err := os.Mkdir(strings.TrimPrefix(m.Address, "unix:"), 0o700); err != nil { // the server cannot listen there
		m.cluster.tb.Fatal(err)
	}
	m.cut = true
	m.Start()
}

// Reconnect ends what CutOff began; it does nothing otherwise.
func (m *Member) Reconnect() {
	m.cluster.tb.Helper()
	if !m.cut {
		return
	}
	m.cut = false
	m.moveSockets(func(path string) error { return os.Rename(path+".hidden", path) })
	if err := os.Remove(strings.TrimPrefix(m.Address, "unix:")); err != nil {
		m.cluster.tb.Fatal(err)
	}
}

// moveSockets moves the sockets at which the other servers listen for servers.
func (m *Member) moveSockets(move func(path string) error) {
	m.cluster.tb.Helper()
	for _, other := range m.cluster.Members {
		if other == m {
			continue
		}
		if err := move(strings.TrimPrefix(other.Address, "unix:")); err != nil {
			m.cluster.tb.Fatal(err)
		}
	}
}
