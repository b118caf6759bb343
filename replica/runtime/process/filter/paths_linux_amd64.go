package filter

import "golang.org/x/sys/unix"

// pathCalls are system calls that newer architectures do without: they change a file's mode, owner or times by its path.
var pathCalls = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
