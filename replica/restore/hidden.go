package restore

import (
	"context"
	"strconv"
	"strings"

	"ovs-offline/internal/workdir"
)

// Hidden flows
//
// Cause: in-band control gives a bridge flows above all that OpenFlow can name:
// its own DHCP and ARP, and the traffic with controllers and managers, go to
// NORMAL whatever its flows say. No OpenFlow command shows or adds them.
//
// Remedy: the Controller and Manager rows stay (edit_controllers.go); with the
// bridge's own MAC address (identity) ovs-vswitchd makes the same flows of
// them. Where the daemons share the host's network, and controllers had to go,
// managers of the same addresses stand in for them. Here they are compared with those that bridge/dump-flows had shown.
//
// Source: measured, OVS 3.1. Two flows for each next hop towards a controller
// name its MAC address, which ovs-vswitchd asks the kernel for; a dummy has no
// route to tell ("Operation not supported"), whatever addresses it is given.

// The priorities of the hidden flows that name the MAC address of a next hop.
const (
	toNextHop   = 180003
	fromNextHop = 180004
	maxPriority = 65535 // of OpenFlow
)

// hiddenFlow is a flow that OpenFlow can't name.
type hiddenFlow struct {
	priority int
	text     string // match and actions
}

// hiddenFlows reads those of bridge/dump-flows.
func hiddenFlows(text string) []hiddenFlow {
	var list []hiddenFlow
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.Index(line, "priority=")
		if at < 0 || strings.HasPrefix(line, "table_id=254") {
			continue // the tables' own last flows
		}
		rule := line[at:]
		digits, _, _ := strings.Cut(strings.TrimPrefix(rule, "priority="), ",")
		digits, _, _ = strings.Cut(digits, " ")
		if priority, err := strconv.Atoi(digits); err == nil && priority > maxPriority {
			list = append(list, hiddenFlow{priority: priority, text: strings.ReplaceAll(rule, ", ", ",")})
		}
	}
	return list
}

// recordedHidden are those of the live node; ok is false where they were not collected.
func (n *Node) recordedHidden(b *Bridge) (list []hiddenFlow, ok bool, err error) {
	told := false
	_, err = n.eachLine(n.Workdir.BridgeRecorded(b.Name, workdir.RecordedBridgeFlows), func(line string) error {
		told = true
		list = append(list, hiddenFlows(line)...)
		return nil
	})
	return list, told, err
}

// hidden are the replica's.
func (n *Node) hidden(ctx context.Context, b *Bridge) ([]hiddenFlow, error) {
	// As text of a program: all flows as one JSON string would be held several times.
	out, err := n.Runtime.Tool(ctx, n.runDir(), nil, "ovs-appctl", "bridge/dump-flows", b.Name)
	return hiddenFlows(string(out)), err
}

// compareHidden reads the hidden flows back.
func compareHidden(ctx context.Context, n *Node, o *outcome) error {
	managers, err := n.DB.Select(ctx, "Manager", "target")
	if err != nil {
		return err
	}
	managed := len(managers) > 0
	for _, b := range n.Bridges {
		live, known, err := n.recordedHidden(b)
		if err != nil {
			return err
		}
		if !known {
			if b.HasControl {
				o.note(Unknown, "%s: no %s was collected: its hidden flows can't be compared", b.Name, workdir.RecordedBridgeFlows)
			}
			continue
		}
		if !b.HasControl && !managed && len(live) == 0 {
			continue // there is nothing to make any: the replica's flows need not be read through
		}
		var missing, extra []hiddenFlow
		err = n.until(ctx, func() (bool, error) {
			have, err := n.hidden(ctx, b)
			missing, extra = lacking(live, have), lacking(have, live)
			return attainable(missing) == 0 && len(extra) == 0, err
		})
		if err != nil {
			return err
		}
		n.noteHidden(b, missing, extra, o)
		if len(live) > 0 && len(missing)+len(extra) == 0 {
			o.note(Restored, "")
		}
	}
	return nil
}

func (n *Node) noteHidden(b *Bridge, missing, extra []hiddenFlow, o *outcome) {
	differs := Failed
	if !n.Isolated {
		differs = Approximated // what managers instead of controllers can't give; the edit named them
	}
	for _, h := range missing {
		if h.nextHop() {
			o.note(Approximated, "%s: hidden flow %s is missing: a replica can't look up the MAC address of a next hop", b.Name, h.text)
		} else {
			o.note(differs, "%s: hidden flow %s is missing", b.Name, h.text)
		}
	}
	for _, h := range extra {
		o.note(differs, "%s: hidden flow %s is there, and was not on the live node", b.Name, h.text)
	}
}

// nextHop tells the flows that name a next hop's MAC address.
func (h hiddenFlow) nextHop() bool { return h.priority == toNextHop || h.priority == fromNextHop }

// attainable counts those that a replica can have.
func attainable(list []hiddenFlow) int {
	count := 0
	for _, h := range list {
		if !h.nextHop() {
			count++
		}
	}
	return count
}

// lacking returns what the other list lacks.
func lacking(list, other []hiddenFlow) []hiddenFlow {
	there := map[hiddenFlow]bool{}
	for _, h := range other {
		there[h] = true
	}
	var missing []hiddenFlow
	for _, h := range list {
		if !there[h] {
			missing = append(missing, h)
		}
	}
	return missing
}
