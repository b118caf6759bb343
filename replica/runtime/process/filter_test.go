//go:build linux

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/daemons/takenover"
)

// The arguments with which the test binary is a program that tries to get sockets. The next
// argument is the file for the outcomes.
const (
	triesSockets = "ovs-offline-test-tries-sockets"
	enters32     = "ovs-offline-test-enters-32" // with another system call interface, which may kill it
	triesAll     = "ovs-offline-test-tries-all" // the next argument is a folder: see package takenover
)

func TestMain(m *testing.M) {
	if i := slices.Index(os.Args, triesAll); i > 0 && i+1 < len(os.Args) {
		if err := takenover.TryIn(os.Args[i+1], os.Getenv("control") != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if i := slices.Index(os.Args, triesSockets); i > 0 && i+1 < len(os.Args) {
		raw, err := json.Marshal(trySockets())
		if err == nil {
			err = os.WriteFile(os.Args[i+1], raw, 0o600)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if slices.Contains(os.Args, enters32) {
		fmt.Println(socket32())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// outcomes are what a program got, by what it tried: "had", or the reason why not.
type outcomes map[string]string

const had = "had"

// trySockets tries every way to a socket.
func trySockets() outcomes {
	got := outcomes{}
	note := func(what string, errno syscall.Errno) {
		got[what] = had
		if errno != 0 {
			got[what] = errno.Error()
		}
	}
	for family := range unix.AF_MAX {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
			what := fmt.Sprintf("socket of family %d", family)
			_, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(family), uintptr(kind), 0)
			if got[what] != had {
				note(what, errno)
			}
			what = fmt.Sprintf("pair of sockets of family %d", family)
			var pair [2]int32
			_, _, errno = unix.RawSyscall6(unix.SYS_SOCKETPAIR, uintptr(family), uintptr(kind), 0,
				uintptr(unsafe.Pointer(&pair)), 0, 0)
			if got[what] != had {
				note(what, errno)
			}
		}
	}
	// The kernel uses the lower half of the register only.
	_, _, errno := unix.RawSyscall(unix.SYS_SOCKET, 1<<32|unix.AF_INET, unix.SOCK_DGRAM, 0)
	note("a family of 64 bits", errno)
	var parameters [120]byte // struct io_uring_params
	_, _, errno = unix.RawSyscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0)
	note("io_uring", errno)
	own, _ := unix.PidfdOpen(os.Getpid(), 0)
	_, _, errno = unix.RawSyscall(unix.SYS_PIDFD_GETFD, uintptr(own), 0, 0)
	note("pidfd_getfd", errno)
	const x32 = 0x40000000
	_, _, errno = unix.RawSyscall(x32|unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0)
	note("the x32 entry", errno)
	if goruntime.GOARCH == "amd64" {
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // the kernel may kill it
		out, err := exec.Command("/proc/self/exe", enters32).Output()
		got["the 32-bit entry"] = strings.TrimSpace(string(out))
		if err != nil {
			got["the 32-bit entry"] = err.Error()
		}
	}
	return got
}

// socket32 makes a UDP socket through the entry of 32-bit programs, which a program of 64
// bits can use as well.
func socket32() string {
	const socket = 359 // of i386
	code := []byte{
		0xb8, socket & 0xff, socket >> 8, 0, 0, // mov eax, socket
		0xbb, unix.AF_INET, 0, 0, 0, // mov ebx, AF_INET
		0xb9, unix.SOCK_DGRAM, 0, 0, 0, // mov ecx, SOCK_DGRAM
		0x31, 0xd2, // xor edx, edx
		0xcd, 0x80, // int 0x80
		0x48, 0x98, // cdqe
		0xc3, // ret
	}
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC,
		unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err.Error()
	}
	copy(page, code)
	entry := &page[0]
	closure := &entry // a Go function is a pointer to a pointer to code
	enter := *(*func() int)(unsafe.Pointer(&closure))
	if n := enter(); n < 0 {
		return syscall.Errno(-n).Error()
	}
	return had
}

// try starts the program that tries sockets as a daemon, or runs it as a tool.
func try(t *testing.T, options Options, asDaemon bool) outcomes {
	t.Helper()
	dir := t.TempDir()
	file, self := filepath.Join(dir, "outcomes"), filepath.Join(dir, "program")
	raw, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(self, raw, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := New(options)
	if asDaemon {
		err = r.Start(t.Context(), runtime.Daemon{Role: "program", Program: self, RunDir: dir, Log: filepath.Join(dir, "log"),
			Args: []string{triesSockets, file}})
		if err == nil || !strings.Contains(err.Error(), "it detached, but does not hold") {
			t.Fatalf("the program has not ended: %v", err)
		}
	} else if _, err = r.Tool(t.Context(), dir, nil, self, triesSockets, file); err != nil {
		t.Fatal(err)
	}
	raw, err = os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got outcomes
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestFilterLeavesNoSocketsButUnix checks what a program gets that is started under the
// filter, and that the same program gets more without.
func TestFilterLeavesNoSocketsButUnix(t *testing.T) {
	free := try(t, Options{NoNamespaces: true, NoFilter: true}, true)
	for _, family := range []int{unix.AF_UNIX, unix.AF_INET, unix.AF_NETLINK} {
		if what := fmt.Sprintf("socket of family %d", family); free[what] != had {
			t.Fatalf("a program without the filter does not get a %s: %s", what, free[what])
		}
	}
	t.Logf("without the filter: io_uring: %s, pidfd_getfd: %s, 32-bit entry: %s", free["io_uring"], free["pidfd_getfd"],
		free["the 32-bit entry"])
	allowed := []string{fmt.Sprintf("pair of sockets of family %d", unix.AF_UNIX),
		fmt.Sprintf("socket of family %d", unix.AF_UNIX)}
	for _, kind := range []struct {
		asDaemon bool
		options  Options
	}{{true, Options{NoNamespaces: true}}, {false, Options{NoNamespaces: true}}, {false, Options{}}} {
		got := try(t, kind.options, kind.asDaemon)
		if len(got) != len(free) {
			t.Errorf("it tried %d ways, want %d", len(got), len(free))
		}
		for what, outcome := range got {
			want := outcome
			switch {
			case slices.Contains(allowed, what):
				want = had
			case strings.Contains(what, " of family "), what == "a family of 64 bits":
				want = unix.EAFNOSUPPORT.Error()
			case what == "io_uring", what == "the x32 entry":
				want = unix.ENOSYS.Error()
			case what == "pidfd_getfd":
				want = unix.EPERM.Error()
			case what == "the 32-bit entry" && strings.HasPrefix(free[what], "exit status "):
				want = free[what] // this kernel has no such entry, so that the program faults
			case what == "the 32-bit entry":
				want = "signal: bad system call"
			}
			if !strings.HasPrefix(outcome, want) {
				t.Errorf("%+v: %s: %s, want %s", kind, what, outcome, want)
			}
		}
	}
}

// TestFilterStaysWithTheProgram checks that this process can open sockets as before.
func TestFilterStaysWithTheProgram(t *testing.T) {
	if _, err := New(Options{}).Tool(t.Context(), t.TempDir(), nil, "/bin/true"); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
	}
}

// TestFilteredDaemonsInheritNoSocket leaves a socket open for each program that is started.
func TestFilteredDaemonsInheritNoSocket(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0) // without SOCK_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	n := newNode(t, Options{NoNamespaces: true}, "")
	n.start(t)
	inode, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []runtime.Daemon{n.server, n.vswd} {
		open := fmt.Sprintf("/proc/%d/fd", n.pid(t, d))
		files, err := os.ReadDir(open)
		if err != nil || len(files) < 3 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, f := range files {
			if target, err := os.Readlink(filepath.Join(open, f.Name())); target == inode || err != nil &&
				!errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s has file %s: %s, %v", d.Role, f.Name(), target, err)
			}
		}
	}
}

// checkFilter checks that daemons run under the filter and without privileges.
func checkFilter(t *testing.T, n *node) {
	t.Helper()
	ok, why := n.r.Isolated(t.Context())
	if !ok || !strings.Contains(why, "by a seccomp filter") || n.r.HasLoopback(t.Context()) {
		t.Fatalf("isolated: %v, %q", ok, why)
	}
	t.Log(why)
	n.start(t)
	for _, d := range []runtime.Daemon{n.server, n.vswd} {
		checkUnprivileged(t, n.pid(t, d))
		const filtered = "2"
		if got := status(t, n.pid(t, d), "Seccomp"); got != filtered {
			t.Errorf("%s: seccomp mode %s", d.Role, got)
		}
	}
	if remarks := n.remarks(); len(remarks) != 0 {
		t.Errorf("remarks: %q", remarks)
	}
}

func TestFilterReplacesNamespaces(t *testing.T) {
	checkFilter(t, newNode(t, Options{NoNamespaces: true}, ""))
}
