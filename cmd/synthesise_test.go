package cmd

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// TestSwitchesReplaceDatabasesAlone starts the databases, then the switches of all chassis
// below the same workdir: stop ends all of them.
func TestSwitchesReplaceDatabasesAlone(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-controller", "xz")
	r := engines.Get(t, engines.Process)
	r.Use(t)
	s := newSession(t, r)
	s.run("collect-sos-ovn", "../testdata/captures/ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz")
	s.run("start")
	s.run("start", "--chassis", "all")
	s.run("stop", "--purge")
	if out, err := exec.Command("pgrep", "-af", s.wd()).CombinedOutput(); err == nil {
		t.Errorf("processes are left: %s", out)
	}
	if _, err := os.Stat(s.wd()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the workdir is left: %v", err)
	}
}

// TestInterruptedSynthesisLeavesNothing ends a start while the programs run that compute
// flows: Ctrl-C ends them, and after SIGKILL the next stop does.
func TestInterruptedSynthesisLeavesNothing(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-controller", "xz")
	r := engines.Get(t, engines.Process)
	r.Use(t)
	s := newSession(t, r)
	s.run("collect-sos-ovn", "../testdata/captures/ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz")
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
		c := s.command("start", "--chassis", "all")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		awaitController(t, s.wd())
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		if signal == syscall.SIGKILL {
			s.run("stop")
		}
		if left := left(t, s.wd()); len(left) > 0 {
			t.Errorf("%v: processes are left: %v", signal, left)
		}
		for _, name := range []string{".scratch", "chassis", "run", "var-run"} {
			if _, err := os.Stat(filepath.Join(s.wd(), name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v: %s is left: %v", signal, name, err)
			}
		}
		if out := s.run("list"); strings.Contains(out, s.wd()) {
			t.Errorf("%v: list shows\n%s", signal, out)
		}
	}
	s.run("start", "--chassis", "ovn-worker")
	s.run("stop", "--purge")
}

// awaitController waits until an ovn-controller runs for a workdir.
func awaitController(t *testing.T, wd string) {
	t.Helper()
	ovs.Await(t, "an ovn-controller", func() bool {
		found, _ := filepath.Glob(filepath.Join(wd, ".scratch/var-run/node*/ovn-controller*.pid"))
		return len(found) > 0
	})
}
