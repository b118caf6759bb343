package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// session runs this test binary as ovs-offline, in one workdir and runtime.
type session struct {
	t   *testing.T
	r   engines.Runtime
	dir string
}

func newSession(t *testing.T, r engines.Runtime) session {
	t.Helper()
	s := session{t: t, r: r, dir: t.TempDir()}
	actAs(t, filepath.Join(s.dir, "ovs-offline"))
	return s
}

func (s session) wd() string { return filepath.Join(s.dir, "wd") }

func (s session) command(args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.dir, "ovs-offline"), args...)
	c.Env = append(os.Environ(), append(s.r.Env(), "OVS_DBG_WORKDIR="+s.wd())...)
	return c
}

func (s session) run(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// killAt starts a replica and kills ovs-offline as soon as it prints a line that contains
// a text.
func (s session) killAt(text string) {
	s.t.Helper()
	s.signalAt(text, os.Kill)
}

// signalAt starts a replica and sends a signal to ovs-offline as soon as it prints a line
// that contains a text. It returns when ovs-offline has ended, and reports whether the start was
// complete before the signal came.
func (s session) signalAt(text string, signal os.Signal) (complete bool) {
	s.t.Helper()
	c := s.command("start")
	read, write := io.Pipe()
	c.Stdout, c.Stderr = write, write
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	seen := make(chan bool, 1)
	go func() {
		found := false
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			if !found && strings.Contains(scanner.Text(), text) {
				found = true
				_ = c.Process.Signal(signal)
			}
		}
		seen <- found
	}()
	err := c.Wait()
	_ = write.Close()
	if !<-seen {
		s.t.Fatalf("start never printed %q: %v", text, err)
	}
	return err == nil
}

// clean checks that only the collected data is left.
func (s session) clean(when string) {
	s.t.Helper()
	for _, name := range []string{"run", "var-run", "bin", "replica.json", "report.json"} {
		err := filepath.WalkDir(filepath.Join(s.wd(), name), func(path string, _ os.DirEntry, err error) error {
			if err == nil {
				s.t.Errorf("%s: %s is left", when, path)
			}
			return err
		})
		if !errors.Is(err, os.ErrNotExist) {
			s.t.Errorf("%s: %v", when, err)
		}
	}
	if containers := s.containers(); len(containers) > 0 {
		s.t.Errorf("%s: containers are left: %v", when, containers)
	}
	if left := left(s.t, s.wd()); len(left) > 0 {
		s.t.Errorf("%s: processes are left: %v", when, left)
	}
}

// containers returns the containers of the workdir.
func (s session) containers() []string {
	s.t.Helper()
	if s.r.Name == engines.Process {
		return nil
	}
	e, err := engine.Connect(s.t.Context(), s.r.Name)
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := e.List(context.Background(), container.LabelWorkdir, s.wd())
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, c := range list {
		names = append(names, fmt.Sprintf("%s (running: %v)", c.Name, c.Running))
	}
	return names
}

// TestStopAndStartAfterKilledStart kills ovs-offline at different moments of a start:
// stop removes everything, and another start succeeds. Outside of a sweep, one engine has the stop, and the other the
// start.
func TestStopAndStartAfterKilledStart(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server")
	engines.Each(t, func(t *testing.T, r engines.Runtime) {
		r.Use(t)
		s := newSession(t, r)
		s.run("collect-sos", "../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz")
		t.Cleanup(func() { s.run("stop") })
		moments := []string{"runtime: ", "Starting ovsdb-server-ovs", "Starting ovs-vswitchd"}
		for _, moment := range sweep.Rows(moments, func(m string) bool {
			return r.Label == engines.Process && m != "Starting ovsdb-server-ovs" || r.Label == engines.Docker &&
				m == "Starting ovs-vswitchd"
		}) {
			s.killAt(moment)
			s.run("stop")
			s.clean("killed at " + moment + ", then stop")
		}
		if r.Label == engines.Docker && !sweep.Whole() {
			return
		}
		s.killAt("Starting ovs-vswitchd")
		if out := s.run("start"); !strings.Contains(out, "Offline OVS Debugging started") {
			t.Errorf("start after a killed start: %s", out)
		}
		out, err := exec.Command(filepath.Join(s.wd(), "bin/ovs-appctl"), "ofproto/trace", "br-int",
			"in_port=3,ip").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Datapath actions: ") {
			t.Errorf("a trace on the replica of the second start: %v %s", err, out)
		}
		s.run("stop")
		s.clean("after the second start")
	})
}

// TestNothingIsLeftOfAKilledWhatIf kills a what-if while its daemons and replicas run:
// stop, start and another what-if end them.
func TestNothingIsLeftOfAKilledWhatIf(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-controller", "ovn-northd", "ovn-nbctl")
	r := engines.Get(t, engines.Process)
	s := newSession(t, r)
	s.run("collect-sos", "../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz")
	t.Cleanup(func() { s.run("stop") })
	whatIf := []string{"what-if", "--trace", "p-vm1 p-vm2:22", "--", "ovn-nbctl", "acl-add", "neutron-b2b2b2b2-0002",
		"to-lport", "1500", "ip4", "drop"}
	clean := func(when string) {
		t.Helper()
		if _, err := os.Lstat(filepath.Join(s.wd(), ".scratch")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: .scratch: %v", when, err)
		}
		if left := left(t, filepath.Join(s.wd(), ".scratch")); len(left) > 0 {
			t.Errorf("%s: processes are left: %v", when, left)
		}
	}
	const controller, replica = "node0/ovn-controller.pid", "replicas/node0/var-run/ovs/ovs-vswitchd.pid"
	for i, next := range [][]string{{"stop"}, {"start"}, {"what-if", "--", "ovn-nbctl", "ls-add", "new"}} {
		for _, program := range sweep.Rows([]string{controller, replica},
			func(p string) bool { return (i == 0) == (p == replica) }) {
			s.killOnce(whatIf, program)
			s.run(next...)
			clean(fmt.Sprintf("killed after %s, then %s", program, next[0]))
		}
	}
	s.interruptOnce(whatIf, controller)
	clean("after Ctrl-C")
}

// killOnce runs a command, and kills it once a file whose path has that end is in the
// folder of its daemons.
func (s session) killOnce(args []string, file string) {
	s.t.Helper()
	s.signalOnce(args, file, os.Kill)
}

func (s session) interruptOnce(args []string, file string) {
	s.t.Helper()
	s.signalOnce(args, file, os.Interrupt)
}

func (s session) signalOnce(args []string, file string, signal os.Signal) {
	s.t.Helper()
	c := s.command(args...)
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var over error
	ovs.Await(s.t, file, func() bool {
		select {
		case err := <-ended:
			over = fmt.Errorf("%v ended before there was %s: %w", args, file, err)
		default:
		}
		found := false
		_ = filepath.WalkDir(filepath.Join(s.wd(), ".scratch"), func(path string, _ os.DirEntry, err error) error {
			found = found || err == nil && strings.HasSuffix(path, file)
			return nil
		})
		return found || over != nil
	})
	if over != nil {
		s.t.Fatal(over)
	}
	_ = c.Process.Signal(signal)
	<-ended
}
