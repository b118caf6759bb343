package archive

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is how many bytes xz may be ahead of its reader.
const pipeSize = 1 << 20

// widen gives a pipe more room than the usual 64 KiB, which saves switches
// between the two processes. It leaves the pipe as it is if that fails.
func widen(pipe io.ReadCloser) {
	file, ok := pipe.(*os.File)
	if !ok {
		return
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
}
