// Package namespace turns a process of this program, which has namespaces of its own,
// into a daemon, a tool, or a runner of tools: it raises the loopback interface, makes an
// image's root file system, or a root with some of this host's files, the process's, gives up all privileges,
// restricts what is left by Landlock and a seccomp filter, and replaces the process by the program.
//
// It does this while packages are initialised, before main: docs/architecture.md
// gives the measured reason. Go initialises packages that are ready in the order of
// their import paths: because this package and landlock import only syscall and unsafe, they come
// before os. TestInitialisedFirst checks that.
package namespace

import (
	"syscall"
	"unsafe"

	"ovs-offline/replica/runtime/process/landlock"
)

// Helper is the first argument of a process of this program that is to become another
// program. That program does not see it, because exec replaces the arguments.
const Helper = "ovs-offline-namespace"

// Request describes what a process of this program is to become.
type Request struct {
	Becomes    string   // Daemon, Tool or Runner
	OwnNetwork bool     // it has a network namespace, whose loopback interface is down
	Root       string   // the folder that becomes its root, read-only, in its mount namespace; "" for this host's files
	Folders    []string // folders of the host that it can write to, at the same absolute paths below Root; missing ones are left out
	Reads      []string // without Root: files and folders of the host that it can read and execute; none to keep all files
	Uses       []string // without Root or a mount namespace: folders in which it can use files, and not make any: see landlock.Rules
	Filter     []byte   // a seccomp filter, an array of struct sock_filter; nil for none
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
	words := []string{Helper, r.Becomes, hostNetwork, r.Root, encode(r.Filter)}
	if r.OwnNetwork {
		words[2] = ownNetwork
	}
	for _, list := range [][]string{r.Folders, r.Reads, r.Uses} {
		words = append(append(words, list...), End)
	}
	return append(words, r.Argv...)
}

// parseRequest returns the request in the arguments of a process, if it has one.
func parseRequest(words []string) (request Request, ok bool) {
	const head = 5
	if len(words) <= head || words[0] != Helper {
		return request, false
	}
	request = Request{Becomes: words[1], OwnNetwork: words[2] == ownNetwork, Root: words[3], Filter: decode(words[4])}
	rest := words[head:]
	for _, list := range []*[]string{&request.Folders, &request.Reads, &request.Uses} {
		if *list, rest, ok = cut(rest); !ok {
			return request, false
		}
	}
	request.Argv = rest
	return request, true
}

// encode returns bytes as text of the letters a to p, one for each half of a byte: an argument holds no NUL, and package
// encoding/hex is initialised too late.
func encode(raw []byte) string {
	text := make([]byte, 0, 2*len(raw))
	for _, b := range raw {
		text = append(text, 'a'+b>>4, 'a'+b&15)
	}
	return string(text)
}

func decode(text string) []byte {
	raw := make([]byte, len(text)/2)
	for i := range raw {
		raw[i] = (text[2*i]-'a')<<4 | (text[2*i+1] - 'a')
	}
	return raw
}

// OwnMounts reports whether the process needs a mount namespace of its own.
func (r Request) OwnMounts() bool { return r.Root != "" || r.OwnNetwork && len(r.Reads) > 0 }

// cut divides words at the first End.
func cut(words []string) (before, after []string, found bool) {
	for i, word := range words {
		if word == End {
			return words[:i:i], words[i+1:], true
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
	rules, f := r.enterRoot()
	if f.errno != 0 {
		return f
	}
	if failure := dropPrivileges(); failure.errno != 0 {
		return failure
	}
	if errno := landlock.Restrict(rules); errno != 0 {
		return failed("restricting files by Landlock", errno)
	}
	if errno := installFilter(r.Filter); errno != 0 && r.Becomes == Daemon && !r.OwnNetwork {
		return failed("installing the seccomp filter", errno) // else it is one layer of several, which a kernel may lack
	}
	if r.Becomes == Runner {
		return runTools()
	}
	if r.Becomes == Daemon {
		syscall.Umask(0o077) // not the caller's
		if failure := limit(r.OwnNetwork); failure.errno != 0 {
			return failure
		}
	}
	if len(r.Argv) == 0 {
		write(1, ProbeAnswer+"\n")
		syscall.Exit(0)
	}
	return failure{r.Argv[0], errnoOf(syscall.Exec(r.Argv[0], r.Argv, syscall.Environ())), true}
}

// installFilter gives the thread a seccomp filter.
func installFilter(code []byte) syscall.Errno {
	const prSetSeccomp, seccompModeFilter, instruction = 22, 2, 8 // linux/prctl.h, linux/seccomp.h; bytes of a struct sock_filter
	if len(code) == 0 {
		return 0
	}
	program := struct { // struct sock_fprog
		length uint16
		filter *byte
	}{uint16(len(code) / instruction), &code[0]}
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetSeccomp, seccompModeFilter, uintptr(unsafe.Pointer(&program)))
	return errno
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
