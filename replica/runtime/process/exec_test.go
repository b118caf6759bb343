//go:build linux

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

// TestProcessIsRecognisedDuringAnExec examines a process that becomes another program all the
// time. It has the same arguments and the same environment each time, which the kernel shows
// neither of during an exec.
func TestProcessIsRecognisedDuringAnExec(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\" word\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), script, "word")
	c.Env = []string{"MARK=1"}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Wait() })
	for range 2000 {
		if !has(c.Process.Pid, "cmdline", "word") || !has(c.Process.Pid, "environ", "MARK=1") {
			t.Fatal("the process was not recognised")
		}
	}
	expect.Equal(t, has(c.Process.Pid, "cmdline", "other"), false, "another word")
}

// TestProcessWithoutEnvironmentIsRecognised checks that has does not wait for an environment that
// will not come. Start returns while the kernel is still in the middle of the exec.
func TestProcessWithoutEnvironmentIsRecognised(t *testing.T) {
	c := exec.CommandContext(t.Context(), "sleep", "1000")
	c.Env = []string{}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Wait() })
	ovs.Await(t, "a program without an environment", func() bool { return staysEmpty(c.Process.Pid, "environ") })
	expect.Equal(t, staysEmpty(c.Process.Pid, "cmdline"), false, "without arguments")
	expect.Equal(t, staysEmpty(os.Getpid(), "environ"), false, "this process has no environment")
}
