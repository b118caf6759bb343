package daemon

import (
	"os"
	"path/filepath"
	"time"

	"ovs-offline/replica/runtime"
)

// Patience is how long a start of d may take: bound, and a second more for each
// MiB of a database that it loads. ovsdb-server loads tens of MiB a second, but
// not on a machine that has other things to do.
func Patience(bound time.Duration, d runtime.Daemon) time.Duration {
	if d.Program != "ovsdb-server" {
		return bound
	}
	var size int64
	for _, arg := range d.Args {
		if info, err := os.Stat(arg); err == nil && filepath.IsAbs(arg) {
			size += info.Size()
		}
	}
	return bound + time.Duration(size>>20)*time.Second
}
