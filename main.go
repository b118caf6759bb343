// Ovs-offline collects what an Open vSwitch or OVN node was, and replays it.
package main

import (
	"os"

	"ovs-offline/cmd"
	"ovs-offline/replica/runtime/process"
)

func main() {
	process.Main() // does not return where this program was run to start a daemon
	os.Exit(cmd.Main(os.Args[1:], cmd.System()))
}
