package filter

import (
	"runtime"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (seccomp(2)). An argument is a register of 64 bits, and of each
// below the kernel uses the lower half; all architectures below are little-endian.
const (
	number         = 0
	architecture   = 4
	firstArgument  = 16
	secondArgument = 24
	thirdArgument  = 32
)

// x32 is set in the numbers of system calls of amd64's x32 ABI, which reach the same
// system calls by other numbers. No number of another architecture is as large.
const x32 = 0x40000000

// audited returns the kernel's name for the architecture of this program; 0 for one that
// package filter does not know.
func audited() uint32 {
	return map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
}

// Sockets are the families of sockets that a program can open.
type Sockets int

const (
	// Unix leaves unix sockets. Netlink sockets are refused as well: no daemon of a replica needs one, and they
	// would show ovs-vswitchd the routes, interfaces and datapaths of this host.
	Unix Sockets = iota
	// OwnNetwork leaves what a daemon can use in a network namespace of its own.
	OwnNetwork
)

func (s Sockets) families() []uint32 {
	if s == OwnNetwork {
		return []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	}
	return []uint32{unix.AF_UNIX}
}

// The types of namespaces that clone(2) can make.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// refused are the system calls that fail whatever their arguments are. No daemon or tool of OVS and OVN uses one. What
// needs a capability is not here: they have none.
var refused = []struct {
	errno unix.Errno
	calls []uint32
}{
	// As in a kernel that lacks them. clone3 and openat2 have their flags in memory, which no filter can read: libc then
	// uses clone and openat.
	{unix.ENOSYS, []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3,
		unix.SYS_OPENAT2}},
	// They reach other processes: their sockets, their memory, their namespaces.
	{unix.EPERM, []uint32{unix.SYS_PIDFD_GETFD, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
		unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP, unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET}},
	// They reach parts of the kernel in which defects are found often.
	{unix.EPERM, []uint32{unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
		unix.SYS_USERFAULTFD, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_FANOTIFY_INIT, unix.SYS_OPEN_BY_HANDLE_AT}},
	{unix.EPERM, []uint32{unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT,
		unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR}},
	// Landlock does not know them (truncate before version 3), and the owner of a file needs no capability for them.
	{unix.EPERM, append([]uint32{unix.SYS_TRUNCATE, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR,
		unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
		unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT, unix.SYS_UTIMENSAT}, pathCalls...)},
	// OVS changes the mode of each socket before it binds it, and gives up if it can't (bind_unix_socket of
	// lib/socket-util-unix.c). The umask gives the socket its mode, so nothing is lost if fchmod only says that it did.
	{0, []uint32{unix.SYS_FCHMOD}},
}

// program returns the filter. A system call of another architecture kills the process: its
// numbers mean something else, and i386's socketcall(2) has its arguments in memory, which
// no filter can read.
func program(wanted uint32, sockets Sockets) []bpf.Instruction {
	list := []bpf.Instruction{
		bpf.LoadAbsolute{Off: architecture, Size: 4},
		bpf.JumpIf{Val: wanted, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},

		bpf.LoadAbsolute{Off: number, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32, SkipFalse: 1},
		refuse(unix.ENOSYS),
	}
	for _, group := range refused {
		for _, call := range group.calls {
			list = append(list, bpf.JumpIf{Val: call, SkipFalse: 1}, refuse(group.errno))
		}
	}
	// A program of the user's terminal would read what TIOCSTI and TIOCLINUX put into it. The limits and the priority
	// of another process of the user are not a daemon's.
	list = append(list, when(unix.SYS_CLONE, bpf.LoadAbsolute{Off: firstArgument, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: namespaces, SkipFalse: 1}, refuse(unix.EPERM), allow)...)
	const tioclinux = 0x541c
	list = append(list, when(unix.SYS_IOCTL, bpf.LoadAbsolute{Off: secondArgument, Size: 4},
		bpf.JumpIf{Val: unix.TIOCSTI, SkipTrue: 1}, bpf.JumpIf{Val: tioclinux, SkipFalse: 1}, refuse(unix.EPERM), allow)...)
	list = append(list, when(unix.SYS_PRLIMIT64, bpf.LoadAbsolute{Off: firstArgument, Size: 4},
		bpf.JumpIf{Val: 0, SkipTrue: 1}, refuse(unix.EPERM), allow)...)
	// Before version 3, Landlock lets a file be emptied that may only be read. OVS opens none to read and to empty it.
	for call, flags := range openCalls {
		list = append(list, when(call, bpf.LoadAbsolute{Off: flags, Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.O_ACCMODE | unix.O_TRUNC},
			bpf.JumpIf{Val: unix.O_TRUNC, SkipFalse: 1}, refuse(unix.EPERM), allow)...)
	}
	opens := []bpf.Instruction{bpf.LoadAbsolute{Off: firstArgument, Size: 4}}
	for _, family := range sockets.families() {
		opens = append(opens, bpf.JumpIf{Val: family, SkipFalse: 1}, allow)
	}
	opens = append(opens, refuse(unix.EAFNOSUPPORT))
	list = append(list, when(unix.SYS_SOCKET, opens...)...)
	list = append(list, when(unix.SYS_SOCKETPAIR, opens...)...)
	return append(list, allow)
}

var allow = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}

// when returns instructions for one system call, which all end with a return.
func when(call uint32, instructions ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Val: call, SkipFalse: uint8(len(instructions))}}, instructions...)
}

// refuse returns the instruction that makes a system call fail; with 0 it does nothing and returns 0.
func refuse(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}
