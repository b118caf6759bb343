package restore

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
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

// hiddenFlows are those that a switch has.
type hiddenFlows struct {
	list []hiddenFlow // the first ones
	all  int
}

// mostHidden bounds the hidden flows that are compared, and longestHidden what
// is kept of one, in bytes. Each controller takes half a dozen, of 200 bytes.
const (
	mostHidden    = 10000
	longestHidden = 2000
)

// read takes a line of bridge/dump-flows, if it is one of them.
func (h *hiddenFlows) read(line string) {
	at := strings.Index(line, "priority=")
	if at < 0 || strings.HasPrefix(strings.TrimSpace(line), "table_id=254") {
		return // the tables' own last flows
	}
	rule := strings.TrimSpace(line[at:])
	digits, _, _ := strings.Cut(strings.TrimPrefix(rule, "priority="), ",")
	digits, _, _ = strings.Cut(digits, " ")
	if priority, err := strconv.Atoi(digits); err != nil || priority <= maxPriority {
		return
	} else if h.all++; h.all <= mostHidden {
		text := strings.ReplaceAll(openflow.Shorten(rule, longestHidden), ", ", ",")
		h.list = append(h.list, hiddenFlow{priority, strings.Clone(text)})
	}
}

// readAll takes the text of bridge/dump-flows.
func (h *hiddenFlows) readAll(text io.Reader) error {
	return eachLineOf(text, func(line string) error { h.read(line); return nil })
}

// recordedHidden are those of the live node; ok is false where they were not collected.
func (n *Node) recordedHidden(b *Bridge) (live hiddenFlows, ok bool, err error) {
	_, err = n.eachLine(n.Workdir.BridgeRecorded(b.Name, workdir.RecordedBridgeFlows), func(line string) error {
		ok = true
		live.read(line)
		return nil
	})
	return live, ok, err
}

// hidden are the replica's. All flows as one text can be more than memory is for.
func (n *Node) hidden(ctx context.Context, b *Bridge) (hiddenFlows, error) {
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := n.Runtime.ToolTo(ctx, n.runDir(), nil, in, "ovs-appctl", "bridge/dump-flows", b.Name)
		in.Close()
		ended <- err
	}()
	var have hiddenFlows
	err := have.readAll(out)
	out.Close() // whoever still writes is told
	return have, errors.Join(err, <-ended)
}

// compareHidden reads the hidden flows back.
func compareHidden(ctx context.Context, n *Node, o *report.Outcome) error {
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
				o.Note(report.Unknown, "%s: no %s was collected: its hidden flows can't be compared", b.Name, workdir.RecordedBridgeFlows)
			}
			continue
		}
		if !b.HasControl && !managed && live.all == 0 {
			continue // there is nothing to make any: the replica's flows need not be read through
		}
		var missing, extra []hiddenFlow
		err = n.until(ctx, func() (bool, error) {
			have, err := n.hidden(ctx, b)
			missing, extra = lacking(live.list, have.list), lacking(have.list, live.list)
			return attainable(missing) == 0 && len(extra) == 0, err
		})
		if err != nil {
			return err
		}
		if live.all > mostHidden {
			o.Note(report.Failed, "%s: %s has %d hidden flows: only the first %d are compared", b.Name, workdir.RecordedBridgeFlows, live.all, mostHidden)
		}
		n.noteHidden(b, missing, extra, o)
		if live.all > 0 && len(missing)+len(extra) == 0 {
			o.Note(report.Restored, "")
		}
	}
	return nil
}

func (n *Node) noteHidden(b *Bridge, missing, extra []hiddenFlow, o *report.Outcome) {
	differs := report.Failed
	if !n.Isolated {
		differs = report.Approximated // what managers instead of controllers can't give; the edit named them
	}
	for _, h := range missing {
		if h.nextHop() {
			o.Note(report.Approximated, "%s: hidden flow %s is missing: a replica can't look up the MAC address of a next hop", b.Name, h.text)
		} else {
			o.Note(differs, "%s: hidden flow %s is missing", b.Name, h.text)
		}
	}
	for _, h := range extra {
		o.Note(differs, "%s: hidden flow %s is there, and was not on the live node", b.Name, h.text)
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
