//go:build linux

package process

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestInitialisedFirst: a process that becomes a daemon does so before package os
// is initialised, and so before all packages that take time.
func TestInitialisedFirst(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, "-test.run=^$")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
	ours := strings.Index(string(trace), "init ovs-offline/replica/runtime/process/namespace @")
	others := strings.Index(string(trace), "init os @")
	if ours < 0 || others < 0 || ours > others {
		t.Errorf("the namespace helper is not initialised before package os:\n%s", trace)
	}
}
