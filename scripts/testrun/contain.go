package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// stage is the environment variable that says what this program is: nothing at first, then the first process of a process
// namespace, and then its child, which runs the tests.
const stage = "OVS_OFFLINE_TESTRUN"

// contain runs the program again in a process namespace and a mount namespace of its own, and returns its exit code.
// All that is in them ends with their first process, and that ends with this one. It reports false where the
// program is contained already, or cannot be.
func contain() (code int, contained bool) {
	switch os.Getenv(stage) {
	case "first":
		return first(), true
	case "contained":
		return 0, false
	}
	if os.Getuid() != 0 {
		return 0, false
	}
	runtime.LockOSThread() // Pdeathsig is about the thread that starts the process
	cmd := again("first")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "testrun: without namespaces of its own:", err)
		signal.Stop(signals)
		return 0, false
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may have ended
		}
	}()
	_ = cmd.Wait() // its exit code says how it ended
	return exitCode(syscall.WaitStatus(cmd.ProcessState.Sys().(syscall.WaitStatus))), true
}

// again returns a command that runs this program with its arguments, as the named stage.
func again(name string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), stage+"="+name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

// first is the first process of the namespaces. It mounts what they need, starts the stage that runs the tests, and
// returns its exit code. Processes whose parents have ended are its children, so it waits for each.
func first() int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := mounts(); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return 1
	}
	child := again("contained")
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = syscall.Kill(child.Process.Pid, s.(syscall.Signal)) // it may have ended
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if pid == child.Process.Pid {
			return exitCode(status)
		}
		if err != nil && err != syscall.EINTR {
			fmt.Fprintln(os.Stderr, "testrun:", err)
			return 1
		}
	}
}

// mounts mounts /proc of the process namespace, and a /tmp in memory where that has room.
func mounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	top, err := os.Getwd()
	if err != nil || strings.HasPrefix(top+"/", "/tmp/") || os.TempDir() != "/tmp" || availableGigabytes() < 10 {
		return err
	}
	if err := unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777"); err != nil {
		return fmt.Errorf("mounting /tmp: %w", err)
	}
	return nil
}

// availableGigabytes returns MemAvailable of proc(5), 0 if it is unknown.
func availableGigabytes() int {
	text, _ := os.ReadFile("/proc/meminfo") // without it, nothing is known
	_, rest, _ := strings.Cut(string(text), "\nMemAvailable:")
	kilobytes := 0
	fmt.Sscan(rest, &kilobytes)
	return kilobytes >> 20
}

// exitCode returns the exit code of a process as a shell has it.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
