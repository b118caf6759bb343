package cmd

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// forbidden is set in a test process that can make no namespaces.
const forbidden = "OVS_OFFLINE_TEST_FORBIDDEN"

// TestScriptsWhereNamespacesAreForbidden runs scripts in a user namespace in which no
// further one can be made, so that daemons run under the seccomp filter.
func TestScriptsWhereNamespacesAreForbidden(t *testing.T) {
	if os.Getenv(forbidden) != "" {
		runScripts(t, engines.Get(t, engines.Process),
			scripts(t, "testdata/filter/*.txtar", "testdata/everywhere/session.txtar", "testdata/everywhere/whatif.txtar"))
		return
	}
	ovs.Need(t, "ovs-vswitchd", "ovsdb-tool", "ovn-nbctl", "ovn-detrace", "ovn-controller", "ovn-northd")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "unshare", "-Ur", "sh", "-c",
		`echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec "$@"`,
		"sh", self, "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), forbidden+"=1")
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if c.ProcessState != nil && c.ProcessState.ExitCode() == 77 || errors.Is(err, exec.ErrNotFound) {
		t.Skipf("namespaces can't be forbidden here: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+"/filter") {
		t.Error(err)
	}
}
