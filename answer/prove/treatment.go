package prove

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
)

// Trace asks a real switch about a packet in the first or the second of two states, and returns what ofproto/trace --names prints. The switch has a
// bridge for each state, whose ports are "old" or "new" and their number. Tunnels lead to addresses of two networks.
type Trace func(ctx context.Context, second bool, packet string) (string, error)

// The networks to whose addresses tunnels of the first and the second state lead (RFC 2544).
const (
	tunnelsOfOld = "198.18."
	tunnelsOfNew = "198.19."
)

// treatments lists what the switch does with a packet, by the output of ofproto/trace: each port with the packet that it gets, once.
func treatments(trace string) (list []string, err error) {
	passes, err := pass.Parse(trace)
	if err != nil {
		return nil, err
	}
	did := map[string]bool{}
	for _, p := range passes {
		if p.Failure != "" {
			did[p.Failure] = true
		}
		treat(p.Actions, p.Flow.Clone(), "", did)
	}
	for text := range did {
		list = append(list, text)
	}
	slices.Sort(list)
	return list, nil
}

// treat executes datapath actions on a packet, and notes what they do.
func treat(actions []odp.Action, packet flow.Packet, tunnel string, did map[string]bool) {
	note := func(what string) { did[what+" "+packet.Headers().String()] = true }
	for _, action := range actions {
		switch a := action.(type) {
		case odp.HeaderChange:
			if err := a.Apply(&packet); err != nil {
				did[fmt.Sprint(a.Name, a.Key, a.Args)] = true
			}
		case odp.DecrementTTL:
			a.Apply(&packet)
		case odp.SetTunnel:
			tunnel = strings.Replace(fmt.Sprint(a.Tunnel), tunnelsOfNew, tunnelsOfOld, 1)
		case odp.Clone:
			treat(a.Actions, packet.Clone(), tunnel, did)
		case odp.Output:
			if port, ok := portNumber(a.Port); ok {
				note("port " + port)
			} else {
				note(a.Port + " " + tunnel)
			}
		case odp.Userspace:
			note(fmt.Sprint("controller ", a.Controller, a.Reason))
		case odp.Track:
			note(fmt.Sprintf("ct %v %v %v %v %v %+v", a.Commit, a.Force, a.Zone, a.Mark, a.Label, a.NAT))
		case odp.Drop, odp.Recirculate, odp.Hash, odp.Untrack:
		default:
			note(fmt.Sprintf("%T %v", a, a))
		}
	}
}

// portNumber returns the OpenFlow number of a port by its name; ok is false for a tunnel.
func portNumber(name string) (number string, ok bool) {
	for _, state := range []string{oldState, newState} {
		if number, ok := strings.CutPrefix(name, state); ok {
			return number, true
		}
	}
	return "", false
}
