package tables

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// Hidden flows
//
// Cause: in-band control gives a bridge flows with priorities above those of
// OpenFlow: its own DHCP and ARP, and the traffic with controllers and managers,
// go to NORMAL whatever its other flows do. No OpenFlow command shows or adds them.
//
// Remedy: the Controller and Manager rows stay in the database (step
// "controllers" before the start); with the bridge's own MAC address (step
// "identity") ovs-vswitchd makes the same flows from them. If the daemons share
// the host's network, managers of the same addresses replace the controllers.
// Here the result is compared with the recorded bridge/dump-flows.
//
// Source: measured, OVS 3.1. Two flows for each next hop towards a controller
// match its MAC address, which ovs-vswitchd asks the kernel for; a dummy device
// has no route to look up ("Operation not supported"), whatever its addresses.

// Priorities of hidden flows.
const (
	maxPriority      = 65535 // of OpenFlow; hidden flows have a higher one
	toNextHop        = 180003
	fromNextHop      = 180004
	failOpenPriority = 15790320 // the flow that sends all packets to NORMAL in fail-open
)

// hiddenFlow is a flow that OpenFlow cannot address.
type hiddenFlow struct {
	priority int
	text     string // match and actions
}

// hasNextHop reports whether the flow matches the MAC address of a next hop.
func (h hiddenFlow) hasNextHop() bool { return h.priority == toNextHop || h.priority == fromNextHop }

// hiddenFlows are the hidden flows of a bridge.
type hiddenFlows struct {
	list  []hiddenFlow // the first maxHidden
	count int          // of all
}

// Limits for what is kept of a hostile text. A controller makes half a dozen hidden
// flows of 200 bytes.
const (
	maxHidden     = 10000
	maxHiddenText = 2000
)

// isHidden reports whether a line of bridge/dump-flows may be a hidden flow.
func isHidden(line string) bool {
	_, text, ok := strings.Cut(line, "priority=")
	return ok && priorityOf(text) > maxPriority
}

// priorityOf returns the number at the start of a text, 0 for none.
func priorityOf(text string) int {
	end := strings.IndexFunc(text, func(char rune) bool { return char < '0' || char > '9' })
	if end < 0 {
		end = len(text)
	}
	n, err := strconv.Atoi(text[:end])
	if err != nil {
		return 0
	}
	return n
}

// add adds a flow of bridge/dump-flows if it is hidden.
func (h *hiddenFlows) add(flow openflow.Flow) {
	if strings.HasPrefix(flow.Text, "table_id=254") {
		return // the table for internal use
	}
	_, text, _ := strings.Cut(flow.Text, "priority=")
	priority := priorityOf(text)
	if priority <= maxPriority {
		return
	}
	if h.count++; h.count <= maxHidden {
		text := strings.Replace(flow.Text, " actions=", ",actions=", 1) // as bridge/dump-flows prints it
		h.list = append(h.list, hiddenFlow{priority, strings.Clone(phrase.Shorten(text, maxHiddenText))})
	}
}

func (h hiddenFlows) failOpen() bool {
	return slices.ContainsFunc(h.list, func(flow hiddenFlow) bool { return flow.priority == failOpenPriority })
}

// FailedOpen reports whether a bridge of the live node was in fail-open. known is
// false if its bridge/dump-flows was not recorded.
func (f *Facts) FailedOpen(ctx context.Context, bridge string) (failedOpen, known bool, err error) {
	held, err := f.held(ctx, bridge)
	return held.hidden.failOpen(), held.collected, err
}

// InBand reports whether a bridge of the live node had flows of in-band control.
// known is false if its bridge/dump-flows was not recorded.
func (f *Facts) InBand(ctx context.Context, bridge string) (inBand, known bool, err error) {
	held, err := f.held(ctx, bridge)
	isInBand := func(flow hiddenFlow) bool { return flow.priority != failOpenPriority }
	return slices.ContainsFunc(held.hidden.list, isInBand), held.collected, err
}

// FailsOpen reports whether a bridge of the replica is in fail-open.
func FailsOpen(ctx context.Context, sw Switch, bridge string) (bool, error) {
	flows, err := hiddenOf(ctx, sw, bridge)
	return flows.failOpen(), err
}

// hiddenOf returns the hidden flows of a bridge of the replica. It reads the flows as a
// stream, because all of them can exceed the memory.
func hiddenOf(ctx context.Context, sw Switch, bridge string) (hiddenFlows, error) {
	var flows hiddenFlows
	err := readOutput(func(w io.Writer) error { return sw.BridgeFlows(ctx, bridge, w) }, func(out io.Reader) {
		for flow, problem := range openflow.FlowsIn(out, isHidden) {
			if problem == nil {
				flows.add(flow)
			}
		}
	})
	return flows, err
}

// readOutput reads the output of run while run writes it.
func readOutput(run func(io.Writer) error, read func(io.Reader)) error {
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(in)
		in.Close()
		ended <- err
	}()
	read(out)
	out.Close()
	return <-ended
}

// CompareHidden compares the hidden flows with the live node's.
func (t *Tables) CompareHidden(ctx context.Context, outcome *report.Outcome) error {
	managed, err := t.Switch.IsManaged(ctx)
	if err != nil {
		return err
	}
	for _, bridge := range t.Bridges {
		live, err := t.Facts.held(ctx, bridge.Name)
		if err != nil {
			return err
		}
		if !live.collected {
			if bridge.HasControllers {
				outcome.Note(report.Unknown, "%s: no %s was collected: its hidden flows can't be compared", bridge.Name, workdir.RecordedBridgeFlows)
			}
			continue
		}
		if !bridge.HasControllers && !managed && live.hidden.count == 0 {
			continue // hidden flows have no cause here, so the flows of the replica need not be read
		}
		missing, extra, err := t.awaitHidden(ctx, bridge, live.hidden)
		if err != nil {
			return err
		}
		if live.hidden.count > maxHidden {
			outcome.Note(report.Failed, "%s: %s has %d hidden flows: only the first %d are compared", bridge.Name, workdir.RecordedBridgeFlows, live.hidden.count, maxHidden)
		}
		t.noteHidden(bridge, missing, extra, outcome)
		if live.hidden.count > 0 && len(missing)+len(extra) == 0 {
			outcome.Note(report.Restored, "")
		}
	}
	return nil
}

// awaitHidden waits at most a second until a bridge has the hidden flows that it can
// have, and returns the differences.
func (t *Tables) awaitHidden(ctx context.Context, bridge Bridge, live hiddenFlows) (missing, extra []hiddenFlow, err error) {
	const bound, pause = time.Second, 2 * time.Millisecond
	for deadline := time.Now().Add(bound); ; {
		have, err := hiddenOf(ctx, t.Switch, bridge.Name)
		missing, extra = flowsNotIn(live.list, have.list), flowsNotIn(have.list, live.list)
		attainable := func(flow hiddenFlow) bool { return !flow.hasNextHop() }
		if err != nil || len(extra) == 0 && !slices.ContainsFunc(missing, attainable) || time.Now().After(deadline) {
			return missing, extra, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (t *Tables) noteHidden(bridge Bridge, missing, extra []hiddenFlow, outcome *report.Outcome) {
	status := report.Failed
	if !t.Isolated {
		status = report.Approximated // managers in place of controllers cannot make all of them
	}
	for _, flow := range missing {
		if flow.hasNextHop() {
			outcome.Note(report.Approximated, "%s: hidden flow %s is missing: a replica can't look up the MAC address of a next hop", bridge.Name, flow.text)
		} else {
			outcome.Note(status, "%s: hidden flow %s is missing", bridge.Name, flow.text)
		}
	}
	for _, flow := range extra {
		outcome.Note(status, "%s: hidden flow %s exists, and did not exist on the live node", bridge.Name, flow.text)
	}
}

// flowsNotIn returns the flows of list that other does not have.
func flowsNotIn(list, other []hiddenFlow) []hiddenFlow {
	have := map[hiddenFlow]bool{}
	for _, flow := range other {
		have[flow] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(flow hiddenFlow) bool { return have[flow] })
}
