//go:build linux

package process

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInitialisedFirst checks that a process becomes a daemon before package os is
// initialised, and so before all packages whose initialisation takes time.
func TestInitialisedFirst(t *testing.T) {
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^$")
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

// TestCloseOnExec checks that inherited files are closed on exec.
func TestCloseOnExec(t *testing.T) {
	fd, err := syscall.Dup(int(os.Stdin.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := closeOnExec(); err != nil {
		t.Fatal(err)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
}
