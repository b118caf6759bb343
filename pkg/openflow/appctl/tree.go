package appctl

import (
	"iter"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow/packet"
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
	treePort = lazyregexp.New(`^(.*\S) +([A-Za-z]+) +([A-Za-z]+) +\d+ +\d+\.\d+$`)
	// treeTime matches "stp-max-age     20s".
	treeTime = lazyregexp.New(`^stp-(hello-time|max-age|fwd-delay)\s+(\d+)s$`)
)

// SpanningTrees yields the bridges of stp/show or rstp/show. Timers that are not
// printed have their defaults.
func SpanningTrees(text string) iter.Seq[Tree] { return each(text, section, readTree) }

func readTree(found []string, body string) Tree {
	tree := Tree{Bridge: found[1], Times: packet.DefaultTreeTimes()}
	times := map[string]*uint16{"hello-time": &tree.Times.Hello, "max-age": &tree.Times.MaxAge, "fwd-delay": &tree.Times.ForwardDelay}
	root, _, _ := strings.Cut(body, "Bridge ID:")
	for found := range parts(root, treeTime) {
		if seconds, err := strconv.ParseUint(found[2], 10, 8); err == nil {
			*times[found[1]] = uint16(seconds)
		}
	}
	for found := range parts(body, treePort) {
		tree.Ports = append(tree.Ports, TreePort{found[1], strings.ToLower(found[2]), strings.ToLower(found[3])})
	}
	return tree
}
