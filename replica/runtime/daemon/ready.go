package daemon

import (
	"bufio"
	"io"
	"os"
	"strings"

	"ovs-offline/replica/runtime"
)

// Ready tells whether d, started in the foreground by somebody else, is as far
// as its own --detach would wait: it answers at its sockets and, if it is
// ovs-vswitchd, has set up the bridges of its database. before is how long its
// log was when it was started.
func Ready(d runtime.Daemon, before int64) bool {
	answers := false
	for _, path := range ControlSockets(d) {
		_, listening := Listener(path)
		answers = answers || listening
	}
	if !answers {
		return false
	}
	for _, path := range Listens(d) {
		if _, listening := Listener(path); !listening {
			return false
		}
	}
	return d.Program != "ovs-vswitchd" || configured(d.Log, before)
}

// configured looks for the line that ovs-vswitchd writes in the same moment in
// which it would detach (bridge_run in vswitchd/bridge.c).
func configured(log string, before int64) bool {
	f, err := os.Open(log)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	scanner := bufio.NewScanner(io.NewSectionReader(f, before, 1<<62))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if strings.Contains(scanner.Text(), "|bridge|INFO|ovs-vswitchd (Open vSwitch) ") {
			return true
		}
	}
	return false
}
