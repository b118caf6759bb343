package cmd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// hidden is set in a test process for which this machine has no tools.
const hidden = "OVS_OFFLINE_TEST_HIDDEN"

// TestRootNeedsNoToolsOnThisHost runs a script in a mount namespace in which the tools of
// this machine can't be run.
func TestRootNeedsNoToolsOnThisHost(t *testing.T) {
	if os.Getenv(hidden) != "" {
		if err := process.Missing("ovs-vsctl"); err == nil {
			t.Fatal("ovs-vsctl was not hidden")
		}
		runScripts(t, engines.Get(t, engines.ProcessRoot), scripts(t, "testdata/root/*.txtar"))
		return
	}
	ovs.Need(t)
	r := engines.Get(t, engines.ProcessRoot)
	const script = `mount -t tmpfs none /mnt && : >/mnt/empty || exit 77; for path in $` + hidden +
		`; do mount --bind /mnt/empty $path || exit 77; done; exec "$@"`
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "unshare", "-Urm", "sh", "-c", script, "sh", self, "-test.run=^"+t.Name()+"$",
		"-test.v")
	c.Env = append(append(os.Environ(), r.Env()...), hidden+"="+strings.Join(installed(t), " "))
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if c.ProcessState != nil && c.ProcessState.ExitCode() == 77 || errors.Is(err, exec.ErrNotFound) {
		t.Skipf("programs can't be hidden here: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+"/notools") {
		t.Error(err)
	}
}

// installed returns the paths of the programs of Open vSwitch and OVN on this machine.
func installed(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), process.SystemPath()...) {
		for _, pattern := range []string{"ovs-*", "ovsdb-*", "ovn-*"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range found {
				if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Base(path) != "ovs-offline" {
					list = append(list, real)
				}
			}
		}
	}
	return list
}
