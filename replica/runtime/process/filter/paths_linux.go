//go:build linux && !amd64

package filter

import "golang.org/x/sys/unix"

// pathCalls are system calls that only older architectures have.
var pathCalls []uint32

// openCalls are the system calls that open a file, with the offset of their flags.
var openCalls = map[uint32]uint32{unix.SYS_OPENAT: thirdArgument}
