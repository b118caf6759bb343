// Package namespace turns a process of this program into a daemon inside its own
// user and network namespace: it raises the loopback interface, gives up all
// privileges and replaces the process by the daemon.
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

// Helper is the first argument of a process of this program that is to become a daemon.
// The daemon does not see it, because exec replaces the arguments.
const Helper = "ovs-offline-namespace"

// The second argument specifies the network of the process; the daemon's command line
// follows it. Without a command line, the process prints ProbeAnswer and exits.
const (
	OwnNetwork  = "own-network"  // a namespace whose loopback interface is down
	HostNetwork = "host-network" // the host's, which stays as it is
)

// ProbeAnswer is printed by a helper that has no daemon to become.
const ProbeAnswer = "isolated"

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
}

func init() {
	argv := arguments()
	if len(argv) < 2 || argv[0] != Helper {
		return
	}
	f := becomeDaemon(argv[1] == OwnNetwork, argv[2:])
	write(2, "preparing the daemon's namespace: "+f.what+": "+f.errno.Error()+"\n")
	syscall.Exit(exitFailed)
}

// arguments returns the command line of this process: os.Args is not set yet.
func arguments() []string {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	var text []byte
	for block := make([]byte, 4096); ; {
		n, err := syscall.Read(fd, block)
		if n <= 0 || err != nil {
			break
		}
		text = append(text, block[:n]...)
	}
	var argv []string
	begin := 0
	for i, c := range text {
		if c == 0 {
			argv = append(argv, string(text[begin:i]))
			begin = i + 1
		}
	}
	return argv
}

// becomeDaemon returns only if a step failed. Go runs initialisation on one thread.
// That matters because each thread has its own capabilities, and exec uses those of the
// calling thread.
func becomeDaemon(ownNetwork bool, argv []string) failure {
	if ownNetwork {
		if errno := raiseLoopback(); errno != 0 {
			return failure{"raising lo", errno}
		}
	}
	if f := dropPrivileges(); f.errno != 0 {
		return f
	}
	// The daemon gets neither the caller's umask nor its permission to dump core.
	syscall.Umask(0o077)
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return failure{"forbidding core dumps", errnoOf(err)}
	}
	if len(argv) == 0 {
		write(1, ProbeAnswer+"\n")
		syscall.Exit(0)
	}
	errno, _ := syscall.Exec(argv[0], argv, syscall.Environ()).(syscall.Errno)
	return failure{argv[0], errno}
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
		return failure{"clearing ambient capabilities", errno}
	}
	header := struct {
		version uint32
		pid     int32
	}{version: capabilityVersion3}
	var none [2]struct{ effective, permitted, inheritable uint32 }
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
		return failure{"dropping capabilities", errno}
	}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return failure{"setting no_new_privs", errno}
	}
	return failure{}
}

func errnoOf(err error) syscall.Errno {
	errno, _ := err.(syscall.Errno)
	return errno
}

func write(fd int, text string) { _, _ = syscall.Write(fd, []byte(text)) }
