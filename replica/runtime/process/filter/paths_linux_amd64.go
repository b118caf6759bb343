package filter

import "golang.org/x/sys/unix"

// pathCalls are system calls that newer architectures do without: they change a file's mode, owner or times by its path.
var pathCalls = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}

// openCalls are the system calls that open a file, with the offset of their flags.
var openCalls = map[uint32]uint32{unix.SYS_OPEN: secondArgument, unix.SYS_OPENAT: thirdArgument}
