package sets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Upcalls of the kernel's datapath, and packets for ovn-controller, are the work of threads of
// their own, which the turns of the main loops do not wait for: handler threads of
// ovs-vswitchd, and one of ovn-controller. On a slow machine one can get its turn long after
// the packet was counted.
var workers = map[string]string{"ovs-vswitchd": "handler", "ovn-controller": "ovn_pinctrl"}

// working reports whether a thread of a node's daemon that works on packets has something to
// do, and how many times the threads have waited for some.
func (w *wire) working(node, daemon string) (busy bool, turns string, err error) {
	folder := map[string]string{"ovs-vswitchd": "ovs", "ovn-controller": "ovn"}[daemon]
	number, err := os.ReadFile(filepath.Join(w.home(node), folder, daemon+".pid"))
	if err != nil {
		return false, "", err
	}
	process := filepath.Join("/proc", strings.TrimSpace(string(number)))
	threads, err := filepath.Glob(filepath.Join(process, "task/*"))
	if err != nil {
		return false, "", err
	}
	for _, thread := range threads {
		name, err := os.ReadFile(filepath.Join(thread, "comm"))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return false, "", err
		}
		if !strings.HasPrefix(string(name), workers[daemon]) {
			continue
		}
		// Where the kernel has put the thread to sleep: in poll(2) if nothing is to do.
		asleep, err := os.ReadFile(filepath.Join(thread, "wchan"))
		if err != nil {
			return false, "", err
		}
		status, err := os.ReadFile(filepath.Join(thread, "status"))
		if err != nil {
			return false, "", err
		}
		busy = busy || !strings.Contains(string(asleep), "poll")
		turns += switches.FindString(string(status))
	}
	if turns == "" {
		return false, "", fmt.Errorf("%s of %s has no thread %q", daemon, node, workers[daemon])
	}
	if daemon == "ovs-vswitchd" && !busy {
		busy, err = upcallsWait(filepath.Join(process, "net/netlink"))
	}
	return busy, turns, err
}

var switches = regexp.MustCompile(`(?m)^voluntary_ctxt_switches:.*`)

// upcallsWait reports whether a datapath has upcalls that ovs-vswitchd has not read, by the
// kernel's list of the netlink sockets of a network namespace.
func upcallsWait(list string) (bool, error) {
	const protocol, received, generic = 1, 4, "16" // NETLINK_GENERIC of linux/netlink.h
	text, err := os.ReadFile(list)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) <= received || fields[protocol] != generic {
			continue
		}
		size, err := strconv.Atoi(fields[received])
		if err != nil {
			return false, fmt.Errorf("%s: line %q: %w", list, line, err)
		}
		if size > 0 {
			return true, nil
		}
	}
	return false, nil
}
