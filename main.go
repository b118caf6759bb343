// Ovs-offline collects the state of an Open vSwitch or OVN node and starts a
// replica of it.
package main

import (
	"os"
	"runtime/debug"

	"ovs-offline/cmd"
	_ "ovs-offline/internal/garbage" // initialised before most packages that they import
)

// softLimit is the heap size in bytes above which the garbage collector runs more
// often, because input may be hostile and large.
const softLimit = 160 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
	os.Exit(cmd.Main(os.Args[1:], cmd.System()))
}
