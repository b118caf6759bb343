// Package namespace turns a process of this program, which has namespaces of its own,
// into a daemon, a tool, or a runner of tools: it raises the loopback interface, makes an
// image's root file system the process's, gives up all privileges and replaces the process
// by the program.
//
// It does this while packages are initialised, before main: docs/architecture.md
// gives the measured reason. Go initialises packages that are ready in the order of
// their import paths: because this package imports only syscall and unsafe, it comes
// before os. TestInitialisedFirst checks that.
package namespace

import (
	"syscall"
	"unsafe"
)

// Helper is the first argument of a process of this program that is to become another
// program. That program does not see it, because exec replaces the arguments.
const Helper = "ovs-offline-namespace"

// Request describes what a process of this program is to become.
type Request struct {
	Becomes    string   // Daemon, Tool or Runner
	OwnNetwork bool     // it has a network namespace, whose loopback interface is down
	Root       string   // the folder that becomes its root, read-only, in its mount namespace; "" to keep the host's
	Folders    []string // folders of the host that it sees at the same absolute paths below Root; missing ones are left out
	Argv       []string // the program, with an absolute path, and its arguments; a Daemon without one prints ProbeAnswer
}

// What a process of this program becomes.
const (
	Daemon = "daemon"
	Tool   = "tool"
	Runner = "runner" // it stays a process of this program, and runs the tools of RunnerRequests
)

// The other words of a request. End ends a list of words.
const (
	ownNetwork  = "own-network"
	hostNetwork = "host-network"
	End         = "--"
)

// Words returns the arguments of the process, beginning with Helper.
func (r Request) Words() []string {
	words := []string{Helper, r.Becomes, hostNetwork, r.Root}
	if r.OwnNetwork {
		words[2] = ownNetwork
	}
	words = append(words, r.Folders...)
	words = append(words, End)
	return append(words, r.Argv...)
}

// parseRequest returns the request in the arguments of a process, if it has one.
func parseRequest(words []string) (request Request, ok bool) {
	const head = 4
	if len(words) <= head || words[0] != Helper {
		return request, false
	}
	request = Request{Becomes: words[1], OwnNetwork: words[2] == ownNetwork, Root: words[3]}
	request.Folders, request.Argv, ok = cut(words[head:])
	return request, ok
}

// cut divides words at the first End.
func cut(words []string) (before, after []string, found bool) {
	for i, word := range words {
		if word == End {
			return words[:i], words[i+1:], true
		}
	}
	return words, nil, false
}

// ProbeAnswer is printed by a helper that has no program to become.
const ProbeAnswer = "isolated"

// Forbidden is the advice for a system that forbids the namespaces that a root file
// system needs.
const Forbidden = "a root file system of an image needs user and mount namespaces: where the system forbids them, use --runtime podman or docker"

// exitFailed is the exit code of a helper that failed, as of env(1) and nohup(1).
const exitFailed = 125

// Constants of the kernel's interface that package syscall lacks (linux/prctl.h,
// linux/capability.h).
const (
	prCapAmbient         = 47
	prCapAmbientClearAll = 4
	prSetNoNewPrivs      = 38
	capabilityVersion3   = 0x20080522
)

// failure is a step that failed.
type failure struct {
	what  string
	errno syscall.Errno
	exec  bool // of the program that the process should become
}

func init() {
	request, ok := parseRequest(arguments())
	if !ok {
		return
	}
	failure := request.become()
	text := "preparing the namespaces: " + failure.what + ": " + failure.errno.Error()
	if request.Root != "" && !failure.exec && (failure.errno == syscall.EPERM || failure.errno == syscall.EACCES) {
		text += " (" + Forbidden + ")"
	}
	write(2, text+"\n")
	syscall.Exit(exitFailed)
}

// arguments returns the command line of this process: os.Args is not set yet.
func arguments() []string {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	return readWords(fd)
}

// readWords reads words that each end with a NUL.
func readWords(fd int) (words []string) {
	var text []byte
	for block := make([]byte, 4096); ; {
		n, err := syscall.Read(fd, block)
		if n <= 0 || err != nil {
			break
		}
		text = append(text, block[:n]...)
	}
	begin := 0
	for i, char := range text {
		if char == 0 {
			words = append(words, string(text[begin:i]))
			begin = i + 1
		}
	}
	return words
}

// become returns only if a step failed. Go runs initialisation on one thread. That
// matters because each thread has its own capabilities, and exec uses the ones of the
// calling thread.
func (r Request) become() failure {
	if r.OwnNetwork {
		if errno := raiseLoopback(); errno != 0 {
			return failed("raising lo", errno)
		}
	}
	if r.Root != "" {
		if failure := enter(r.Root, r.Folders); failure.errno != 0 {
			return failure
		}
	}
	if failure := dropPrivileges(); failure.errno != 0 {
		return failure
	}
	if r.Becomes == Runner {
		return runTools()
	}
	if r.Becomes == Daemon {
		// It gets neither the caller's umask nor its permission to dump core.
		syscall.Umask(0o077)
		if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
			return failed("forbidding core dumps", err)
		}
	}
	if len(r.Argv) == 0 {
		write(1, ProbeAnswer+"\n")
		syscall.Exit(0)
	}
	return failure{r.Argv[0], errnoOf(syscall.Exec(r.Argv[0], r.Argv, syscall.Environ())), true}
}

// raiseLoopback sets lo up: without it ovs-vswitchd finds no route to a collector
// on 127.0.0.1 and leaves sFlow and IPFIX out of the datapath.
func raiseLoopback() syscall.Errno {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return errnoOf(err)
	}
	defer syscall.Close(fd)
	var request struct { // struct ifreq, netdevice(7)
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	if _, _, errno := syscall.RawSyscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCGIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	request.flags |= syscall.IFF_UP
	_, _, errno := syscall.RawSyscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request)))
	return errno
}

// dropPrivileges takes all capabilities from the thread, and every way to get one:
// without no_new_privs, root would get all of them back at exec.
func dropPrivileges() failure {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prCapAmbient, prCapAmbientClearAll, 0, 0, 0, 0); errno != 0 {
		return failed("clearing ambient capabilities", errno)
	}
	header := struct {
		version uint32
		pid     int32
	}{version: capabilityVersion3}
	var none [2]struct{ effective, permitted, inheritable uint32 }
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
		return failed("dropping capabilities", errno)
	}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return failed("setting no_new_privs", errno)
	}
	return failure{}
}

// failed returns the failure of a step, whose errno is 0 if err is nil.
func failed(what string, err error) failure { return failure{what: what, errno: errnoOf(err)} }

func errnoOf(err error) syscall.Errno {
	errno, _ := err.(syscall.Errno)
	return errno
}

func write(fd int, text string) { _, _ = syscall.Write(fd, []byte(text)) }
