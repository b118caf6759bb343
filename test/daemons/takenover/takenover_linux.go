//go:build linux

// Package takenover has what a program that a replica starts would try once an attacker has taken it over.
package takenover

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// World is what stands around a daemon that is taken over.
type World struct {
	Own      string // the folder of the replica
	Outside  string // a folder of the same user, with the files "secret" and "victim"
	Socket   string // a path at which a program of the user listens
	Abstract string // an abstract unix socket at which it listens
	TCP, UDP int    // the ports at which it listens on 127.0.0.1
	Process  int    // a process of the same user
	Network  string // the network namespace of all these
}

// Probe is something that a daemon should not do, but for those that must succeed.
type Probe struct {
	Name string
	// May has a letter for each place where it may succeed: n for a daemon in namespaces, f for one under the filter
	// alone, i for one in an image, k for a program of a keeper (replica/linux/keeper), t for a tool, which may all that
	// a daemon under the filter may. With ! a daemon has to.
	May string
	// Since is the version of Landlock without which it may succeed as well; 0 if others stop it.
	Since int
	// System is set if it would change this machine where nothing stops it: the control leaves it out.
	System bool
	Try    func(w World) error
}

func (w World) secret() string { return filepath.Join(w.Outside, "secret") }
func (w World) victim() string { return filepath.Join(w.Outside, "victim") }
func (w World) proc(name string) string {
	return fmt.Sprintf("/proc/%d/%s", w.Process, name)
}

// opened opens and closes a file.
func opened(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0o600)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// opens returns a probe that opens a file.
func opens(path string, flags int) func(World) error {
	return func(World) error { return opened(path, flags) }
}

// lists returns a probe that lists a folder.
func lists(path string) func(World) error {
	return func(World) error { _, err := os.ReadDir(path); return err }
}

// creates returns a probe that makes a file in a folder and removes it.
func creates(folder string) func(World) error {
	return func(World) error {
		path := filepath.Join(folder, fmt.Sprintf("ovs-offline-probe-%d", os.Getpid()))
		defer os.Remove(path)
		return opened(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
	}
}

// socket returns a probe that makes a socket.
func socket(family, kind, protocol int) func(World) error {
	return func(World) error {
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
}

// calls returns a probe that makes a system call. A bad address or argument shows that the kernel began with it.
func calls(number uintptr, args ...uintptr) func(World) error {
	return func(World) error {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno == 0 || errno == unix.EFAULT || errno == unix.EINVAL || errno == unix.EBADF {
			return nil
		}
		return errno
	}
}

// dials returns an error unless a connection can be made.
func dials(network, address string) error {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// probesOfFiles tries the files of the user and of the system.
var probesOfFiles = []Probe{
	{"write into the replica's folder", "nfi!", 0, false, func(w World) error { return creates(w.Own)(w) }},
	{"rename in the replica's folder", "nfi!", 0, false, func(w World) error {
		return errors.Join(os.WriteFile(w.Own+"/a", nil, 0o600), os.Mkdir(w.Own+"/d", 0o700),
			os.Rename(w.Own+"/a", w.Own+"/d/b"))
	}},
	{"listen at a socket in the replica's folder", "nfi!", 0, false, func(w World) error {
		l, err := net.Listen("unix", w.Own+"/s")
		if err == nil {
			err = errors.Join(dials("unix", w.Own+"/s"), l.Close())
		}
		return err
	}},
	{"read a program", "nfik!", 0, false, opens("/bin/sh", unix.O_RDONLY)},
	{"write to /dev/null", "nfik!", 0, false, opens("/dev/null", unix.O_RDWR)},
	{"read a file of the user", "", 1, false, func(w World) error { return opened(w.secret(), unix.O_RDONLY) }},
	{"read a file of the user in /tmp", "", 1, false, func(w World) error {
		return opened(filepath.Dir(w.Own)+"/beside", unix.O_RDONLY)
	}},
	{"list a folder of the user", "", 1, false, func(w World) error { return lists(w.Outside)(w) }},
	{"make a file of the user", "", 1, false, func(w World) error { return creates(w.Outside)(w) }},
	{"append to a file of the user", "", 1, false, func(w World) error {
		return opened(w.victim(), unix.O_WRONLY|unix.O_APPEND)
	}},
	{"truncate a file of the user", "", 0, false, func(w World) error { return unix.Truncate(w.victim(), 1) }},
	{"make a folder of the user", "", 1, false, func(w World) error { return os.Mkdir(w.Outside+"/folder", 0o700) }},
	{"make a link of the user", "", 1, false, func(w World) error { return os.Symlink("/", w.Outside+"/link") }},
	{"make a pipe of the user", "", 1, false, func(w World) error { return unix.Mkfifo(w.Outside+"/pipe", 0o600) }},
	{"listen at a socket in the user's folder", "", 1, false, func(w World) error {
		l, err := net.Listen("unix", w.Outside+"/listen")
		if err == nil {
			err = l.Close()
		}
		return err
	}},
	{"link a file of the user into the replica's folder", "", 1, false, func(w World) error {
		return os.Link(w.victim(), w.Own+"/linked")
	}},
	{"change the mode of a file of the user", "", 0, false, func(w World) error { return unix.Chmod(w.victim(), 0o640) }},
	{"change the owner of a file of the user", "", 0, false, func(w World) error {
		return unix.Lchown(w.victim(), os.Getuid(), os.Getgid())
	}},
	{"change the times of a file of the user", "", 0, false, func(w World) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, w.victim(), []unix.Timespec{{}, {}}, 0)
	}},
	{"set an attribute of a file of the user", "", 0, false, func(w World) error {
		return unix.Setxattr(w.victim(), "user.probe", []byte("x"), 0)
	}},
	{"change the mode of an open file", "", 0, false, func(w World) error {
		path := filepath.Join(w.Own, "mode")
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err == nil {
			err = errors.Join(file.Chmod(0o755|os.ModeSetuid), file.Close())
		}
		if info, _ := os.Stat(path); err == nil && info.Mode()&os.ModeSetuid == 0 {
			err = errors.New("the mode has not changed")
		}
		return err
	}},
	{"empty a file that it only reads", "", 0, false, func(w World) error {
		path := filepath.Join(w.Own, "full")
		err := errors.Join(os.WriteFile(path, []byte("x"), 0o600), opened(path, unix.O_RDONLY|unix.O_TRUNC))
		if info, _ := os.Stat(path); err == nil && info.Size() > 0 {
			err = errors.New("it is as it was")
		}
		return err
	}},
	{"open a file of the user by its handle", "", 0, false, func(w World) error {
		handle, mount, err := unix.NameToHandleAt(unix.AT_FDCWD, w.secret(), 0)
		if err == nil {
			_, err = unix.OpenByHandleAt(mount, handle, 0)
		}
		return err
	}},
	{"open a file of the user through /proc", "", 1, false, func(w World) error {
		fd, err := unix.Open(w.secret(), unix.O_PATH, 0)
		if err == nil {
			err = opened(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY)
		}
		return err
	}},
	{"rename a file of the user", "", 1, false, func(w World) error { return os.Rename(w.victim(), w.Outside+"/other") }},
	{"remove a file of the user", "", 1, false, func(w World) error {
		if os.Remove(w.victim()) == nil {
			return nil
		}
		return os.Remove(w.Outside + "/other")
	}},
	{"write to /etc", "", 1, true, creates("/etc")},
	{"write to /etc/cron.d", "", 1, true, creates("/etc/cron.d")},
	{"write to /usr/bin", "", 1, true, creates("/usr/bin")},
	{"write to /usr/lib", "", 1, true, creates("/usr/lib")},
	{"change a program", "", 1, true, opens("/usr/bin/env", unix.O_WRONLY)},
	{"change the libraries' cache", "", 1, true, opens("/etc/ld.so.cache", unix.O_WRONLY)},
	{"read /etc/shadow", "i", 1, false, opens("/etc/shadow", unix.O_RDONLY)},
	{"read /etc/ssh", "i", 1, false, lists("/etc/ssh")},
	{"list /root", "i", 1, false, lists("/root")},
	{"list /home", "i", 1, false, lists("/home")},
	{"list /run", "i", 1, false, lists("/run")},
	{"list /var/lib", "i", 1, false, lists("/var/lib")},
	{"list /sys/class/net", "f", 1, false, lists("/sys/class/net")},
	{"write to /var/tmp", "", 1, true, creates("/var/tmp")},
	{"write to /run", "", 1, true, creates("/run")},
	{"write to /dev/shm", "", 1, true, creates("/dev/shm")},
	{"write to the host's /tmp", "", 1, true, func(w World) error {
		if _, err := os.Lstat(filepath.Dir(w.Own) + "/beside"); err != nil {
			return err // its /tmp is its own
		}
		return creates("/tmp")(w)
	}},
}

// probesOfSystem tries devices and settings of the system.
var probesOfSystem = []Probe{
	{"set the core pattern", "", 1, true, opens("/proc/sys/kernel/core_pattern", unix.O_WRONLY)},
	{"set the program for modules", "", 1, true, opens("/proc/sys/kernel/modprobe", unix.O_WRONLY)},
	{"write a setting of its network", "k", 1, true, opens("/proc/sys/net/ipv4/ip_forward", unix.O_WRONLY)},
	{"pull sysrq", "", 1, true, opens("/proc/sysrq-trigger", unix.O_WRONLY)},
	{"read the kernel's memory", "", 0, false, opens("/proc/kcore", unix.O_RDONLY)},
	{"write to /sys", "", 1, true, opens("/sys/kernel/mm/transparent_hugepage/enabled", unix.O_WRONLY)},
	{"make a control group", "", 1, true, func(World) error {
		return os.Mkdir("/sys/fs/cgroup/ovs-offline-probe", 0o700)
	}},
	{"open /dev/kvm", "", 1, true, opens("/dev/kvm", unix.O_RDWR)},
	{"open /dev/mem", "", 1, true, opens("/dev/mem", unix.O_RDONLY)},
	{"open /dev/fuse", "", 1, true, opens("/dev/fuse", unix.O_RDWR)},
	{"open /dev/net/tun", "k", 1, true, opens("/dev/net/tun", unix.O_RDWR)},
	{"open /dev/tty", "", 1, true, opens("/dev/tty", unix.O_RDWR)},
	{"open /dev/ptmx", "", 1, true, opens("/dev/ptmx", unix.O_RDWR)},
	{"open /dev/loop-control", "", 1, true, opens("/dev/loop-control", unix.O_RDWR)},
	{"open /dev/vda", "", 1, true, opens("/dev/vda", unix.O_RDONLY)},
	{"open /dev/sda", "", 1, true, opens("/dev/sda", unix.O_RDONLY)},
	{"make a device", "", 0, true, func(w World) error { return unix.Mknod(w.Own+"/device", unix.S_IFBLK|0o600, 7<<8) }},
	{"mount", "", 0, true, func(w World) error { return unix.Mount("none", w.Own, "tmpfs", 0, "") }},
	{"bind a folder", "", 0, true, func(w World) error { return unix.Mount("/", w.Own, "", unix.MS_BIND, "") }},
	{"unmount", "", 0, true, func(w World) error { return unix.Unmount("/proc/sys", 0) }},
	{"mount by fsopen", "", 0, true, calls(unix.SYS_FSOPEN)},
	{"mount by open_tree", "", 0, true, calls(unix.SYS_OPEN_TREE)},
	{"change the root", "", 0, true, func(w World) error { return unix.Chroot(w.Own) }},
	{"pivot the root", "", 0, true, calls(unix.SYS_PIVOT_ROOT)},
	{"load a module", "", 0, true, calls(unix.SYS_INIT_MODULE)},
	{"load a module from a file", "", 0, true, calls(unix.SYS_FINIT_MODULE, ^uintptr(0))},
	{"load a kernel", "", 0, true, calls(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0)},
	{"use bpf", "", 0, true, calls(unix.SYS_BPF, 0, 0, 0)},
	{"use io_uring", "", 0, false, calls(unix.SYS_IO_URING_SETUP, 1, 0)},
	{"use perf", "", 0, true, calls(unix.SYS_PERF_EVENT_OPEN, 0)},
	{"use userfaultfd", "", 0, true, calls(unix.SYS_USERFAULTFD, 1)},
	// The session keyring: KEY_SPEC_SESSION_KEYRING.
	{"read keys", "", 0, false, calls(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 0)},
	{"add a key", "", 0, false, calls(unix.SYS_ADD_KEY)},
	{"request a key", "", 0, false, calls(unix.SYS_REQUEST_KEY)},
	{"watch files", "", 0, true, calls(unix.SYS_FANOTIFY_INIT, 0, 0)},
	{"make a user namespace", "", 0, false, func(World) error { return cloned(unix.CLONE_NEWUSER) }},
	{"make a network namespace", "", 0, true, func(World) error { return cloned(unix.CLONE_NEWNET) }},
	{"enter a user namespace by unshare", "", 0, false, func(World) error {
		_, _, errno := unix.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0)
		if errno == 0 || errno == unix.EINVAL { // it has several threads
			return nil
		}
		return errno
	}},
	{"make a user namespace by clone3", "", 0, false, calls(unix.SYS_CLONE3, 0, 64)},
}

// cloned starts a program in a namespace of its own.
func cloned(flags uintptr) error {
	cmd := exec.Command("/bin/sh", "-c", ":")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	return cmd.Run()
}

// probesOfOthers tries sockets and processes of the user.
var probesOfOthers = []Probe{
	{"connect to a unix socket of the user", "f", 0, false, func(w World) error { return dials("unix", w.Socket) }},
	{"connect to it through a link", "f", 0, false, func(w World) error {
		return errors.Join(os.Symlink(w.Socket, w.Own+"/to"), dials("unix", w.Own+"/to"))
	}},
	{"connect to it through /proc", "", 1, false, func(w World) error { return dials("unix", w.proc("root")+w.Socket) }},
	{"connect to an abstract unix socket", "", 6, false, func(w World) error { return dials("unix", w.Abstract) }},
	{"connect by TCP", "", 0, false, func(w World) error { return dials("tcp", fmt.Sprintf("127.0.0.1:%d", w.TCP)) }},
	{"send by UDP", "", 0, false, func(w World) error {
		conn, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", w.UDP))
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		for range 2 { // in a network of its own, the second call gets the answer that nobody listens
			if err == nil {
				_, err = conn.Write([]byte("x"))
			}
		}
		return err
	}},
	{"listen for TCP beside the host's programs", "", 0, false, func(w World) error {
		if name, err := os.Readlink("/proc/self/ns/net"); err == nil && name != w.Network {
			return errors.New("its network is its own")
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			err = l.Close()
		}
		return err
	}},
	{"a socket of AF_INET", "nik", 0, false, socket(unix.AF_INET, unix.SOCK_DGRAM, 0)},
	{"a socket of AF_NETLINK", "nik", 0, false, socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)},
	{"a socket of AF_VSOCK", "", 0, false, socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
	{"a socket of AF_PACKET", "", 0, false, socket(unix.AF_PACKET, unix.SOCK_RAW, 0)},
	{"a raw socket", "k", 0, false, socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
	{"a socket of AF_ALG", "", 0, false, socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
	{"a socket of AF_KEY", "", 0, false, socket(unix.AF_KEY, unix.SOCK_RAW, 2)},
	{"a socket of AF_XDP", "", 0, false, socket(unix.AF_XDP, unix.SOCK_RAW, 0)},
	{"a socket of AF_BLUETOOTH", "", 0, false, socket(unix.AF_BLUETOOTH, unix.SOCK_RAW, 0)},
	{"a socket of AF_CAN", "", 0, false, socket(unix.AF_CAN, unix.SOCK_RAW, 1)},
	{"a socket of AF_TIPC", "", 0, false, socket(unix.AF_TIPC, unix.SOCK_RDM, 0)},
	{"signal a process", "", 6, false, func(w World) error { return unix.Kill(w.Process, 0) }},
	{"signal a process by its descriptor", "", 6, false, func(w World) error {
		fd, err := unix.PidfdOpen(w.Process, 0)
		if err == nil {
			err = unix.PidfdSendSignal(fd, 0, nil, 0)
		}
		return err
	}},
	{"trace a process", "", 0, false, func(w World) error {
		return unix.PtraceSeize(w.Process)
	}},
	{"copy a process's descriptor", "", 0, false, func(w World) error {
		fd, err := unix.PidfdOpen(w.Process, 0)
		if err == nil {
			_, err = unix.PidfdGetfd(fd, 0, 0)
		}
		return err
	}},
	{"read a process's memory", "", 1, false, func(w World) error { return opened(w.proc("mem"), unix.O_RDONLY) }},
	{"read a process's memory by a call", "", 0, false, func(w World) error {
		local := make([]byte, 1)
		_, err := unix.ProcessVMReadv(w.Process, []unix.Iovec{{Base: &local[0], Len: 1}},
			[]unix.RemoteIovec{{Base: 0x400000, Len: 1}}, 0)
		if errors.Is(err, unix.EFAULT) {
			err = nil
		}
		return err
	}},
	{"read a process's environment", "", 1, false, func(w World) error {
		_, err := os.ReadFile(w.proc("environ"))
		return err
	}},
	{"list a process's descriptors", "nfi", 1, false, func(w World) error { return lists(w.proc("fd"))(w) }},
	{"read files through a process's root", "", 1, false, func(w World) error {
		return opened(w.proc("root")+w.secret(), unix.O_RDONLY)
	}},
	{"read files through a process's folder", "", 1, false, func(w World) error {
		return opened(w.proc("cwd")+"/secret", unix.O_RDONLY)
	}},
	{"read a process's command line", "nfi", 0, false, func(w World) error {
		return opened(w.proc("cmdline"), unix.O_RDONLY)
	}},
	{"enter a process's network", "", 0, false, func(w World) error {
		fd, err := unix.Open(w.proc("ns/net"), unix.O_RDONLY, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
		}
		return err
	}},
	{"limit a process", "", 0, false, func(w World) error {
		var limit unix.Rlimit
		return unix.Prlimit(w.Process, unix.RLIMIT_NOFILE, nil, &limit)
	}},
	{"lower a process's priority", "", 0, false, func(w World) error {
		return unix.Setpriority(unix.PRIO_PROCESS, w.Process, 19)
	}},
	{"bind a process to a core", "nfi", 0, false, func(w World) error {
		var set unix.CPUSet
		return errors.Join(unix.SchedGetaffinity(w.Process, &set), unix.SchedSetaffinity(w.Process, &set))
	}},
	{"raise the limit of core dumps", "t", 0, false, func(World) error { return raises(unix.RLIMIT_CORE) }},
	{"raise the limit of files", "t", 0, false, func(World) error { return raises(unix.RLIMIT_FSIZE) }},
	{"raise the limit of memory", "tk", 0, false, func(World) error { return raises(unix.RLIMIT_DATA) }},
	{"write a file of 20 GiB", "t", 0, false, func(w World) error {
		signal.Ignore(unix.SIGXFSZ)
		file, err := os.Create(w.Own + "/large")
		if err == nil {
			err = errors.Join(file.Truncate(20<<30), file.Close())
		}
		return err
	}},
	{"map more memory than the machine has", "tk", 0, false, func(World) error {
		var machine unix.Sysinfo_t
		err := unix.Sysinfo(&machine)
		length := uintptr(max(machine.Totalram, 8<<30))
		address, _, errno := unix.Syscall6(unix.SYS_MMAP, 0, length, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE, ^uintptr(0), 0)
		if errno != 0 {
			return errno
		}
		_, _, _ = unix.Syscall(unix.SYS_MUNMAP, address, length, 0)
		return err
	}},
}

// raises makes a limit higher than it is.
func raises(kind int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(kind, &limit); err != nil {
		return err
	}
	if limit.Max == unix.RLIM_INFINITY {
		return nil // there is none
	}
	limit.Max++
	return unix.Setrlimit(kind, &limit)
}

// All returns all probes, those that change files last.
func All() []Probe { return slices.Concat(probesOfOthers, probesOfSystem, probesOfFiles) }

// Had is the outcome of a probe that succeeded.
const Had = "had"

// TryAll tries every probe, and returns Had or the reason why it failed by its name. The control leaves out what would
// change this machine.
func TryAll(w World, control bool) map[string]string {
	got := map[string]string{}
	for _, p := range All() {
		if control && p.System {
			continue
		}
		got[p.Name] = Had
		if err := p.Try(w); err != nil {
			got[p.Name] = err.Error()
		}
	}
	return got
}

// file is the file in the replica's folder that describes the world.
const file = "world"

// TryIn tries all that the World in a folder has, and writes the outcomes there: see Surround.
func TryIn(folder string, control bool) error {
	w, err := Read(folder)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(TryAll(w, control))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "outcomes"), raw, 0o600)
}

// Read returns the World that Surround wrote to a folder.
func Read(folder string) (w World, err error) {
	raw, err := os.ReadFile(filepath.Join(folder, file))
	if err == nil {
		err = json.Unmarshal(raw, &w)
	}
	return w, err
}

// Outcomes returns what TryIn wrote.
func Outcomes(t *testing.T, folder string) (got map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(folder, "outcomes"))
	if err == nil {
		err = json.Unmarshal(raw, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Surround makes a folder of the user beside the one of a replica, starts the programs of the user that a World names,
// and writes the World into the replica's folder. All ends with the test.
func Surround(t *testing.T, own string) World {
	t.Helper()
	outside, err := os.MkdirTemp("/var/tmp", "ovs-offline-outside") // /tmp is another matter
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(outside) })
	w := World{Own: own, Outside: outside, Socket: outside + "/socket",
		Abstract: "@ovs-offline-probe-" + filepath.Base(outside)}
	for _, path := range []string{w.secret(), w.victim(), filepath.Dir(own) + "/beside"} {
		err = errors.Join(err, os.WriteFile(path, []byte("of the user"), 0o600))
	}
	for _, address := range []string{w.Socket, w.Abstract} {
		l, listenErr := net.Listen("unix", address)
		if err = errors.Join(err, listenErr); listenErr == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
	}
	tcp, tcpErr := net.Listen("tcp", "127.0.0.1:0")
	udp, udpErr := net.ListenPacket("udp", "127.0.0.1:0")
	process := exec.Command("sleep", "1000")
	process.Dir = w.Outside
	if err = errors.Join(err, tcpErr, udpErr, process.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = process.Process.Kill(), process.Wait()
		_, _ = tcp.Close(), udp.Close()
	})
	w.TCP, w.UDP = tcp.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port
	w.Process = process.Process.Pid
	w.Network, err = os.Readlink("/proc/self/ns/net")
	raw, jsonErr := json.Marshal(w)
	if err = errors.Join(err, jsonErr, os.WriteFile(filepath.Join(own, file), raw, 0o600)); err != nil {
		t.Fatal(err)
	}
	return w
}
