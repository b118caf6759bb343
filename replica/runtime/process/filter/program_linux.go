package filter

import (
	"runtime"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (seccomp(2)). The first argument is a register of 64
// bits, and the kernel uses their lower half for an address family; all architectures
// below are little-endian.
const (
	number        = 0
	architecture  = 4
	firstArgument = 16
)

// x32 is set in the numbers of system calls of amd64's x32 ABI, which reach the same
// system calls by other numbers. No number of another architecture is as large.
const x32 = 0x40000000

// audited returns the kernel's name for the architecture of this program; 0 for one that
// package filter does not know.
func audited() uint32 {
	return map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
}

// program returns the filter. A system call of another architecture kills the process: its
// numbers mean something else, and i386's socketcall(2) has its arguments in memory, which
// no filter can read.
//
// Netlink sockets are refused as well. No daemon of a replica needs one, and they would show
// ovs-vswitchd the routes, interfaces and datapaths of this host.
func program(wanted uint32) []bpf.Instruction {
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: architecture, Size: 4},
		bpf.JumpIf{Val: wanted, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},

		bpf.LoadAbsolute{Off: number, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32, SkipFalse: 1},
		refuse(unix.ENOSYS),
		bpf.JumpIf{Val: unix.SYS_IO_URING_SETUP, SkipFalse: 1}, // it opens sockets without a system call
		refuse(unix.ENOSYS),
		bpf.JumpIf{Val: unix.SYS_PIDFD_GETFD, SkipFalse: 1}, // it copies a socket of another process
		refuse(unix.EPERM),
		bpf.JumpIf{Val: unix.SYS_SOCKET, SkipTrue: 2},
		bpf.JumpIf{Val: unix.SYS_SOCKETPAIR, SkipTrue: 1},
		allow,

		bpf.LoadAbsolute{Off: firstArgument, Size: 4},
		bpf.JumpIf{Val: unix.AF_UNIX, SkipFalse: 1},
		allow,
		refuse(unix.EAFNOSUPPORT),
	}
}

// refuse returns the instruction that makes a system call fail.
func refuse(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}
