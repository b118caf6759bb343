// Package tickets makes the texts of tickets from what the tools of Open vSwitch printed about a node, in the forms in which
// people paste them. The same node gives the same text.
package tickets

import (
	"slices"
	"strings"
)

// The kinds of outputs, each named for its subcommand.
const (
	SwitchShow = "show" // of ovs-vsctl
	Show       = "ovs-ofctl show"
	Flows      = "dump-flows"
	Groups     = "dump-groups"
	Meters     = "dump-meters"
	TLVMap     = "dump-tlv-map"
	FDB        = "fdb/show"
	Conntrack  = "dpctl/dump-conntrack"
)

// Output is what one command printed.
type Output struct {
	Kind    string
	Bridge  string // "" for an output of the whole switch
	Command string // the command line
	Text    string
}

// Node is a node as its tools print it.
type Node struct {
	Name    string
	Version string   // of OpenFlow, as -O takes it
	Outputs []Output // all that a ticket has, in their order
	// Named are the flows of each bridge with the names of ports, as ovs-ofctl prints them on a terminal.
	Named []Output
	// Peer is a bridge without which a packet of the node can't be followed: a patch port leads there. It is "" for none.
	Peer string
}

// outputs returns the outputs of some kinds.
func (n *Node) outputs(kinds ...string) []Output {
	return slices.DeleteFunc(slices.Clone(n.Outputs), func(o Output) bool { return !slices.Contains(kinds, o.Kind) })
}

// without returns the outputs but those of some kinds.
func (n *Node) without(kinds ...string) []Output {
	return slices.DeleteFunc(slices.Clone(n.Outputs), func(o Output) bool { return slices.Contains(kinds, o.Kind) })
}

// changed returns the outputs with the text of each changed.
func changed(outputs []Output, change func(Output) string) []Output {
	list := slices.Clone(outputs)
	for i, o := range outputs {
		list[i].Text = change(o)
	}
	return list
}

// changedFlows works like changed, for the flows alone.
func changedFlows(outputs []Output, change func(string) string) []Output {
	return changed(outputs, func(o Output) string {
		if o.Kind != Flows {
			return o.Text
		}
		return change(o.Text)
	})
}

// eachLine returns a text with each line changed. The lines come with their index and without their ends.
func eachLine(text string, change func(i int, line string) string) string {
	var b strings.Builder
	i := 0
	for line := range strings.Lines(text) {
		b.WriteString(change(i, strings.TrimSuffix(line, "\n")))
		b.WriteByte('\n')
		i++
	}
	return b.String()
}

// keptLines returns the lines of a text that keep reports to be kept.
func keptLines(text string, keep func(i int, line string) bool) string {
	var b strings.Builder
	i := 0
	for line := range strings.Lines(text) {
		if keep(i, strings.TrimSuffix(line, "\n")) {
			b.WriteString(line)
		}
		i++
	}
	return b.String()
}

// isHeader reports whether a line begins a reply of ovs-ofctl.
func isHeader(line string) bool { return strings.Contains(line, " reply (") }

// middle returns the index of a line in the middle of a text, behind the first.
func middle(text string) int { return max(1, strings.Count(text, "\n")/2) }
