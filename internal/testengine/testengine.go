// Package testengine brings up real, private container engines for tests,
// through scripts/engines.
package testengine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Names are the engines that there can be.
func Names() []string { return []string{"podman", "podman-rootless", "docker"} }

// cannot is the exit code of scripts/engines for an engine that can't run on
// this machine.
const cannot = 3

// Start starts an engine for a test, which it outlives by no moment, and
// returns its address. Where the machine can't run it the test skips and says
// why.
func Start(t testing.TB, engine string) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	script := filepath.Join(filepath.Dir(here), "../../scripts/engines")
	// Not t.TempDir, which has too long a path for sockets below it, and which
	// a user without privileges can't enter.
	dir, err := os.MkdirTemp("", "engines-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(script, "stop", dir).CombinedOutput(); err != nil {
			t.Errorf("ending %s: %v: %s", engine, err, out)
		}
		_ = os.Remove(dir)
	})
	var stderr strings.Builder
	c := exec.Command(script, "start", dir, engine)
	c.Stderr = &stderr
	out, err := c.Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == cannot:
		t.Skip(strings.TrimSpace(stderr.String()))
	case err != nil:
		t.Fatalf("starting %s: %v: %s", engine, err, &stderr)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), engine+"=")
}
