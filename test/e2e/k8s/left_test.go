package k8s

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/machine"
)

// endless is the environment variable that makes TestEndless run, which
// TestNothingIsLeftOfAbortedRuns aborts.
const endless = "OVS_OFFLINE_K8S_ENDLESS"

// TestEndless starts a node with pods and does not end by itself. It panics at SIGUSR1, as
// the package testing does at a test's timeout.
func TestEndless(t *testing.T) {
	if os.Getenv(endless) == "" {
		t.Skip("only for TestNothingIsLeftOfAbortedRuns")
	}
	c, n := sharedNode(t)
	deploy(t, c, n, openshift())
	abort := make(chan os.Signal, 1)
	signal.Notify(abort, syscall.SIGUSR1)
	fmt.Println("up", scratch())
	<-abort
	panic("aborted")
}

// TestNothingIsLeftOfAbortedRuns aborts runs of these tests while they have a node, and
// checks that nothing of it is left on the machine.
func TestNothingIsLeftOfAbortedRuns(t *testing.T) {
	t.Parallel()
	needRig(t)
	type abort struct {
		how string
		sig os.Signal
	}
	all := []abort{{"Ctrl-C", os.Interrupt}, {"SIGTERM", syscall.SIGTERM}, {"SIGKILL", os.Kill},
		{"timeout", syscall.SIGUSR1}}
	// SIGTERM is handled as Ctrl-C is, and after a panic as after SIGKILL the second process does all.
	for _, abort := range sweep.Rows(all, func(a abort) bool { return a.sig == os.Interrupt || a.sig == os.Kill }) {
		t.Run(abort.how, func(t *testing.T) {
			t.Parallel()
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			command := exec.Command(program, "-test.run=^TestEndless$")
			command.Env = append(os.Environ(), endless+"=yes")
			out, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			line, _ := lines.ReadString('\n')
			dir, up := strings.CutPrefix(strings.TrimSpace(line), "up ")
			if !up {
				t.Fatalf("%q", line)
			}
			group := machine.CgroupOf(dir)
			if have := len(group.Processes()); have < 10 {
				t.Errorf("%d processes, which can't be a cluster", have)
			}
			command.Process.Signal(abort.sig)
			io.Copy(io.Discard, lines)
			var exit *exec.ExitError
			if err := command.Wait(); !errors.As(err, &exit) {
				t.Errorf("it ended with %v", err)
			}
			ovs.Await(t, "everything of the run to go", func() bool {
				_, err := os.Stat(dir)
				return os.IsNotExist(err) && !group.Exists()
			})
			mounts, err := os.ReadFile("/proc/self/mountinfo")
			if err != nil || strings.Contains(string(mounts), filepath.Base(dir)) {
				t.Errorf("left a mount: %v\n%s", err, mounts)
			}
		})
	}
}
