package pods

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ovs-offline/test/daemons/ovs"
)

// waitOnly is the environment variable that makes the test program be the first process of
// a pod, to which the kernel gives processes without a parent.
const waitOnly = "PODS_TEST_WAIT_ONLY"

func TestMain(m *testing.M) {
	if os.Getenv(waitOnly) == "" {
		os.Exit(m.Run())
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	// The orphan prints its id, and ends once its parent has.
	orphan := exec.Command("sh", "-c", `sh -c 'echo $$; sleep 0.2' & exit 0`)
	orphan.Stdout = os.Stdout
	if err := orphan.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(Wait(ctx))
}

// TestFirstProcessOfAPod checks that it reaps a process whose parent has ended, and that it
// ends at SIGTERM with an exit code for which the pod is replaced.
func TestFirstProcessOfAPod(t *testing.T) {
	ovs.Need(t, "sh")
	first := exec.CommandContext(t.Context(), os.Args[0])
	first.Env = append(os.Environ(), waitOnly+"=1")
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	orphan := strings.TrimSpace(line)
	ovs.Await(t, "the end of process "+orphan, func() bool {
		_, err := os.Stat("/proc/" + orphan)
		return errors.Is(err, os.ErrNotExist)
	})
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exited *exec.ExitError
	if err := first.Wait(); !errors.As(err, &exited) || exited.ExitCode() != exitEnded {
		t.Errorf("it ended with %v, want exit status %d", err, exitEnded)
	}
}
