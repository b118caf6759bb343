package appctl

import (
	"iter"
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/internal/packet"
)

// Tree is a section of stp/show (ofproto/ofproto-dpif.c, stp_unixctl_show) or
// rstp/show (lib/rstp.c, rstp_print_details).
type Tree struct {
	Bridge string
	Times  packet.TreeTimes // of the root
	Ports  []TreePort
}

// TreePort is a port of a spanning tree. Role and State are in lower case.
type TreePort struct {
	Name  string
	Role  string // root, designated, alternate, backup, disabled; "" unknown
	State string // forwarding, learning, listening, blocking, discarding, disabled
}

var (
	// treePort matches a port's name, role, state, cost and "priority.number".
	treePort = regexp.MustCompile(`^  (.*\S) +([A-Za-z]+) +([A-Za-z]+) +\d+ +\d+\.\d+$`)
	// treeTime matches "  stp-max-age     20s".
	treeTime = regexp.MustCompile(`^  stp-(hello-time|max-age|fwd-delay)\s+(\d+)s$`)
)

// SpanningTrees yields the bridges of stp/show or rstp/show. Timers that are not
// printed have their defaults.
func SpanningTrees(text string) iter.Seq[Tree] { return each(text, readTree) }

func readTree(bridge, body string) Tree {
	t := Tree{Bridge: bridge, Times: packet.DefaultTreeTimes()}
	inRoot := false
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, " \r\n")
		switch line {
		case "Root ID:":
			inRoot = true
		case "Bridge ID:":
			inRoot = false
		}
		if found := treeTime.FindStringSubmatch(line); found != nil && inRoot {
			readTreeTime(&t.Times, found[1], found[2])
		}
		if found := treePort.FindStringSubmatch(line); found != nil {
			t.Ports = append(t.Ports, TreePort{found[1], strings.ToLower(found[2]), strings.ToLower(found[3])})
		}
	}
	return t
}

func readTreeTime(t *packet.TreeTimes, name, value string) {
	seconds, err := strconv.ParseUint(value, 10, 8)
	if err != nil {
		return
	}
	switch name {
	case "hello-time":
		t.Hello = uint16(seconds)
	case "max-age":
		t.MaxAge = uint16(seconds)
	case "fwd-delay":
		t.ForwardDelay = uint16(seconds)
	}
}
