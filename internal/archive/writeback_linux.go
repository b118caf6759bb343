package archive

import (
	"os"

	"golang.org/x/sys/unix"
)

// beginWriteback starts writing a file to disk without waiting for it, so that a later sync
// has less to wait for. An error has no meaning: the sync reports it again.
func beginWriteback(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}
