package ovs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// stopTimeout is how long stop waits before it kills a daemon: one that SIGSTOP holds does not end by itself.
const stopTimeout = 5 * time.Second

// daemon is a running program. It has its pid file, control socket and log file
// under their default names in one folder.
type daemon struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
}

// startDaemon starts a program, and ends it when the test ends.
func startDaemon(tb testing.TB, dir, program string, args ...string) *daemon {
	tb.Helper()
	path, err := find(program)
	if err != nil {
		tb.Fatal(err)
	}
	d := &daemon{log: filepath.Join(dir, program+".log"), exited: make(chan struct{})}
	args = append([]string{path, "--pidfile", "--log-file=" + d.log, "-vconsole:off", "-vsyslog:off", "--no-chdir"}, args...)
	started := make(chan error)
	go func() {
		// The thread that starts the daemon must not end before it: see Pdeathsig.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		d.cmd, err = start(args, environment(dir))
		started <- err
		if err == nil {
			_ = d.cmd.Wait() // how it ended does not matter
			close(d.exited)
		}
	}()
	if err := <-started; err != nil {
		tb.Fatalf("%s: %v", program, err)
	}
	tb.Cleanup(d.stop)
	return d
}

// start starts a program in user and network namespaces of its own, whose only
// device is a loopback. If namespaces are forbidden, it starts the program without
// them.
func start(argv, env []string) (*exec.Cmd, error) {
	const loopback = `ip link set lo up 2>/dev/null || true; exec "$@"`
	isolated := exec.Command("sh", append([]string{"-c", loopback, "sh"}, argv...)...)
	isolated.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig:   syscall.SIGKILL,
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	isolated.Env = append(os.Environ(), env...)
	err := isolated.Start()
	if err == nil {
		return isolated, nil
	}
	plain := exec.Command(argv[0], argv[1:]...)
	plain.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	plain.Env = isolated.Env
	return plain, plain.Start()
}

// waitFor returns once ready reports true, and fails the test if the daemon
// exits before that or takes longer than Patience.
func (d *daemon) waitFor(tb testing.TB, ready func() bool) {
	tb.Helper()
	hasExited := func() bool {
		select {
		case <-d.exited:
			return true
		default:
			return false
		}
	}
	logged := func() string { return string(d.logged(0)) }
	isReady := false
	Await(tb, fmt.Sprint(d.cmd.Args), func() bool {
		isReady = ready()
		return isReady || hasExited()
	}, logged)
	if !isReady {
		tb.Fatalf("%s: %v\n%s", d.cmd.Args, d.cmd.ProcessState, logged())
	}
}

// logged returns the log from an offset on.
func (d *daemon) logged(offset int) []byte {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return nil // not written yet
	}
	return bytes.Clone(text[min(offset, len(text)):])
}

// stop ends the daemon and waits until it has exited.
func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have exited
	select {
	case <-d.exited:
	case <-time.After(stopTimeout):
		_ = d.cmd.Process.Kill()
		<-d.exited
	}
}
