package k8s

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
)

var background = context.Background()

// result is the exit code and output of a run of the program.
type result struct {
	code            int
	out, complaints string
}

// program returns a command that runs ovs-offline.
func program(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	path, err := filepath.Abs(ovsOffline)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command
}

// hang is the time after which a run counts as hanging: a run may wait for several things in turn.
var hang = 3 * ovs.Patience()

func ovsOfflineRun(t testing.TB, args ...string) result {
	t.Helper()
	return finish(t, program(t, args...))
}

func finish(t testing.TB, command *exec.Cmd) result {
	t.Helper()
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	err := command.Start()
	if err != nil {
		t.Fatal(err)
	}
	hangs := time.AfterFunc(hang, func() { command.Process.Signal(syscall.SIGQUIT) }) // Go then prints all stacks
	err = command.Wait()
	if !hangs.Stop() {
		t.Errorf("%q had not ended after %s", command.Args, hang)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{command.ProcessState.ExitCode(), out.String(), complaints.String()}
}

// collect runs collect-k8s as the cluster's administrator.
func collect(t testing.TB, c *cluster.Cluster, args ...string) result {
	t.Helper()
	return collectAs(t, c, cluster.Admin, "", args...)
}

// collectAs runs collect-k8s as a user, through the proxy of the API server at address.
func collectAs(t testing.TB, c *cluster.Cluster, user, address string, args ...string) result {
	t.Helper()
	return finish(t, program(t, collectArgs(t, c, user, address, args...)...))
}

func collectArgs(t testing.TB, c *cluster.Cluster, user, address string, args ...string) []string {
	t.Helper()
	path, err := c.Kubeconfig(user, address)
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"collect-k8s", "--kubeconfig", path}, args...)
}
