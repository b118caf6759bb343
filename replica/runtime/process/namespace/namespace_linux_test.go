package namespace

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCloseOnExec: on a kernel without CLOSE_RANGE_CLOEXEC, inherited files are
// closed on exec as well.
func TestCloseOnExec(t *testing.T) {
	fd, err := syscall.Dup(int(os.Stdin.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if f := closeOnExec(); f.errno != 0 {
		t.Fatalf("%s: %v", f.what, f.errno)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
}
