package cmd

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// collectTwo collects two nodes, whose OVN databases are the same, and returns their names.
func (s session) collectTwo() []string {
	s.t.Helper()
	const capture = "../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz"
	paths := []string{filepath.Join(s.dir, "a.tar.xz"), filepath.Join(s.dir, "b.tar.xz")}
	for _, path := range paths {
		copyFile(s.t, capture, path)
	}
	s.run(append([]string{"collect"}, paths...)...)
	s.t.Cleanup(func() { s.run("stop") })
	return []string{"compute1-a", "compute1-b"}
}

// files returns all files of the set but locks, which hold a pid.
func (s session) files() []string {
	s.t.Helper()
	var found []string
	err := filepath.WalkDir(s.wd(), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() != ".lock" {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// processes returns the daemons of the set.
func (s session) processes() string {
	out, _ := exec.Command("pgrep", "-af", "pidfile="+s.wd()).Output() // it fails if there are none
	return string(out)
}

// checkServers checks how many servers of the OVN SB database run.
func (s session) checkServers(want int) {
	s.t.Helper()
	if n := strings.Count(s.processes(), "ovnsb_db.db "); n != want {
		s.t.Errorf("%d servers of the OVN SB database, not %d: %s", n, want, s.processes())
	}
}

func (s session) onlyData(when string, data []string) {
	s.t.Helper()
	if left := s.processes(); left != "" {
		s.t.Errorf("%s, processes are left: %s", when, left)
	}
	for _, path := range s.files() {
		if !slices.Contains(data, path) {
			s.t.Errorf("%s, %s is left", when, path)
		}
	}
}

// TestStopAfterKilledStartOfASet kills the start of a set at different moments: stop ends
// all daemons, that of a server that no replica uses yet too.
func TestStopAfterKilledStartOfASet(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-nbctl")
	for _, label := range sweep.Rows([]string{engines.Process, engines.ProcessRoot},
		func(label string) bool { return label == engines.Process }) {
		t.Run(label, func(t *testing.T) {
			r := engines.Get(t, label)
			r.Use(t)
			s := newSession(t, r)
			nodes := s.collectTwo()
			data := s.files()
			moments := []string{"runtime: ", "Starting ovs-vswitchd", "Starting ovsdb-server-ovn_nb",
				"Starting ovsdb-server-ovn_sb"}
			for _, moment := range sweep.Rows(moments, func(m string) bool { return m == "Starting ovs-vswitchd" }) {
				s.killAt(moment)
				s.run("stop")
				s.onlyData("killed at "+moment+", then stop", data)
			}
			// A stop of any node of the set suffices for servers that no replica uses.
			s.killAt("Starting ovsdb-server-ovn_sb")
			s.run("-w", filepath.Join(s.wd(), nodes[1]), "stop")
			s.run("-w", filepath.Join(s.wd(), nodes[0]), "stop")
			s.onlyData("killed, then stop of each node", data)
			s.killAt("Starting ovsdb-server-ovn_sb")
			s.run("start")
			s.run("status")
			s.checkServers(1)
			s.run("stop")
			s.onlyData("killed, started and stopped", data)
		})
	}
}

// TestInterruptedStartOfASetLeavesNothing interrupts the start of a set, as Ctrl-C does,
// also when a replica is already complete.
func TestInterruptedStartOfASetLeavesNothing(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-nbctl")
	s := newSession(t, engines.Get(t, engines.Process))
	s.collectTwo()
	data := s.files()
	const tries = 10 // a busy machine may complete a start before the signal comes
	for _, moment := range []string{"Starting ovs-vswitchd", "Starting ovsdb-server-ovn_sb",
		"Starting ovsdb-server-recorded"} {
		for try := 1; s.signalAt(moment, os.Interrupt); try++ {
			if try == tries {
				t.Fatalf("%d starts were complete although they were interrupted at %s", tries, moment)
			}
			s.run("stop")
		}
		s.onlyData("interrupted at "+moment, data)
	}
}

// TestNodesOfASetStartAndStopAtOnce starts and stops the nodes of a set by commands that
// run at the same time: both use one server while one of them runs, and none is left.
func TestNodesOfASetStartAndStopAtOnce(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-nbctl")
	s := newSession(t, engines.Get(t, engines.Process))
	nodes := s.collectTwo()
	data := s.files()
	for range sweep.Count(5, 1) {
		s.together([]string{"start", "--node", nodes[0]}, []string{"start", "--node", nodes[1]})
		s.checkServers(1)
		s.run("status")
		s.together([]string{"stop", "--node", nodes[0]}, []string{"stop", "--node", nodes[1]})
		s.onlyData("after stop", data)
		s.run("start", "--node", nodes[0])
		s.together([]string{"stop", "--node", nodes[0]}, []string{"start", "--node", nodes[1]})
		s.run("status", "--node", nodes[1])
		s.run("stop", "--node", nodes[1])
		s.onlyData("after stop beside start", data)
	}
}

// together runs commands at the same time.
func (s session) together(commands ...[]string) {
	s.t.Helper()
	var wg sync.WaitGroup
	for _, args := range commands {
		wg.Go(func() {
			if out, err := s.command(args...).CombinedOutput(); err != nil {
				s.t.Errorf("%v: %v\n%s", args, err, out)
			}
		})
	}
	wg.Wait()
}
