// Ovs-offline collects what an Open vSwitch or OVN node was, and replays it.
package main

import (
	"os"
	"runtime/debug"

	"ovs-offline/cmd"
	"ovs-offline/replica/runtime/process"
)

// softLimit is where the garbage collector begins to work harder: what is read
// may be hostile, and large.
const softLimit = 160 << 20

func main() {
	process.Main() // does not return where this program was run to start a daemon
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
	os.Exit(cmd.Main(os.Args[1:], cmd.System()))
}
