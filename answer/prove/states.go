package prove

import (
	"context"
	"slices"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/answer/prove/symbolic"
	"ovs-offline/pkg/openflow"
)

// BridgePort is a port of a bridge whose states are compared.
type BridgePort struct {
	Number int
	Name   string   // as users know it
	Own    []string // the addresses of what is behind it, which are not named
	Tunnel bool
}

// The bridges of a fabric of states.
const (
	oldState = "old"
	newState = "new"
	// bothStates has the flows that both states have, and of those that one of them has the matches, with the action symbolic.Stop. Packets that do
	// not stop there are treated alike by both states.
	bothStates = "both"
)

// states is a fabric of one bridge in two states, whose ports are ends.
type states struct {
	bridges map[string]symbolic.Bridge
	ports   []BridgePort
}

// newStates returns the fabric of two states, and the flows that only one of them has.
func newStates(older, newer flowdiff.State, ports []BridgePort) (*states, []flowdiff.Line) {
	before, after := flowdiff.Shared(older, newer)
	s := &states{bridges: map[string]symbolic.Bridge{oldState: bridgeOf(before.Flows, before.Groups), newState: bridgeOf(after.Flows, after.Groups)}, ports: ports}
	left := map[flowdiff.Line]int{}
	for _, line := range after.Flows {
		left[line]++
	}
	var both, differing []flowdiff.Line
	for _, line := range before.Flows {
		if left[line] == 0 {
			differing = append(differing, line)
			continue
		}
		left[line]--
		both = append(both, line)
	}
	for _, line := range after.Flows {
		if left[line] > 0 {
			left[line]--
			differing = append(differing, line)
		}
	}
	for _, line := range differing {
		if !openflow.IsClause(line.Actions) {
			line.Actions = symbolic.Stop
		}
		both = append(both, line)
	}
	s.bridges[bothStates] = bridgeOf(both, before.Groups)
	return s, differing
}

func bridgeOf(lines []flowdiff.Line, groups []openflow.Entry) symbolic.Bridge {
	return symbolic.Bridge{Groups: groups, Flows: func(yield func(openflow.Flow, error) bool) {
		for _, line := range lines {
			if !yield(openflow.Flow{Text: line.Text()}, nil) {
				return
			}
		}
	}}
}

// Bridge implements symbolic.Fabric.
func (s *states) Bridge(_ context.Context, at symbolic.Place) (symbolic.Bridge, error) {
	return s.bridges[at.Node], nil
}

// Ports implements symbolic.Fabric.
func (s *states) Ports(symbolic.Place) (list []symbolic.Port) {
	for _, port := range s.ports {
		list = append(list, symbolic.Port{Number: port.Number})
	}
	return list
}

// Links implements symbolic.Fabric. Open vSwitch drops what is sent to a port that does not exist.
func (s *states) Links(_ symbolic.Place, number int, _ func(string) (uint64, bool)) ([]symbolic.Link, error) {
	i := slices.IndexFunc(s.ports, func(port BridgePort) bool { return port.Number == number })
	if i < 0 {
		return nil, nil
	}
	link := symbolic.Link{End: s.ports[i].Name}
	if s.ports[i].Tunnel {
		link.Kept = []string{"tun_*"}
	}
	return []symbolic.Link{link}, nil
}
