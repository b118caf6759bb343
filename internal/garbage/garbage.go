// Package garbage keeps Go's garbage collector from running while a short command starts.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
)

// percent lets the collector run first when the heap has 16 MB, 4 MB for each 100. The
// packages of the program alone allocate 5 MB, none of which is garbage.
const percent = 400

// This can't wait for main, before which all packages are initialised. The import path of
// this package and the few that it imports make Go initialise it before most of them.
func init() {
	if os.Getenv("GOGC") != "" {
		return
	}
	before := debug.SetGCPercent(percent)
	// The first run finds the sentinel unused. Heaps of this size grow as usual.
	sentinel := new(*int)
	runtime.AddCleanup(sentinel, func(percent int) { debug.SetGCPercent(percent) }, before)
}
