package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// makeUnnamed makes a file in a folder that never has a name (O_TMPFILE of open(2)), where the
// file system can.
func makeUnnamed(folder string) (*os.File, error) {
	file, err := os.OpenFile(folder, unix.O_TMPFILE|os.O_RDWR, 0o600)
	if err != nil {
		return removeNamed(folder)
	}
	return file, nil
}
