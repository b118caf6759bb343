package restore

import (
	"context"
	"fmt"
	"slices"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
)

// NORMAL floods to ports in the order in which they were added, and what the flows
// of one output port do to the packet carries over to the next. When ovs-vswitchd
// starts, or when several ports are added in one transaction, it adds them in an order
// of its own. Recorded datapath flows show the order on the live node; what they do not
// show follows the OpenFlow numbers, which have the order in which the ports were added
// one by one. So ports of bridges that flood are first withheld, by a type that no OVS
// supports, and then added one by one. The local port can't be withheld: where it is not
// the first, it is removed from the datapath at its turn, and ovs-vswitchd adds it again.

const (
	withheldType = "ovs-offline-later"
	// maxOrdered bounds the ports of a bridge that are added one by one: each
	// takes a reconfiguration, whose time grows with their number.
	maxOrdered = 300
)

// editFloodOrder withholds the ports of bridges that flood.
func editFloodOrder(ctx context.Context, replica *Replica, outcome *report.Outcome) error {
	flooding, err := replica.floodingBridges(ctx, outcome)
	if err != nil {
		return err
	}
	shown, err := recordedFloods(&replica.Recorded, replica.Bridges, flooding)
	if err != nil {
		return err
	}
	var changes []ovsdb.Change
	for _, bridge := range flooding {
		order := shown[bridge].arrange(bridge)
		shown[bridge].noteFloodOrder(bridge, order, outcome)
		if order[0].Name == bridge.Name {
			order = order[1:]
		}
		bridge.withheld = order
		changes = append(changes, withhold(bridge)...)
	}
	mirrors, err := replica.withholdMirrors(ctx)
	if err != nil {
		return err
	}
	return replica.DB.Transact(ctx, append(changes, mirrors...)...)
}

// withhold returns the changes that withhold the ports of a bridge. The local port comes
// with the bridge: ovs-vswitchd ignores its type.
func withhold(bridge *Bridge) []ovsdb.Change {
	var changes []ovsdb.Change
	for _, port := range bridge.withheld {
		if port.Name == bridge.Name {
			continue
		}
		for _, iface := range port.Interfaces {
			changes = append(changes, ovsdb.Update("Interface", iface.UUID, ovsdb.Columns{"type": withheldType}))
		}
	}
	return changes
}

// floodingBridges returns the bridges whose flood order is restored.
func (n *Replica) floodingBridges(ctx context.Context, outcome *report.Outcome) ([]*Bridge, error) {
	var flooding []*Bridge
	for _, bridge := range n.Bridges {
		if len(bridge.Ports) < 3 {
			continue // a flood has a single output then
		}
		floods, err := n.Facts.Flood(ctx, bridge.Name)
		switch {
		case err != nil:
			return nil, err
		case !floods:
		case len(bridge.Ports) > maxOrdered:
			outcome.Note(report.Approximated, "%s: it has %d ports: the order in which NORMAL floods to them is not restored", bridge.Name, len(bridge.Ports))
		default:
			flooding = append(flooding, bridge)
		}
	}
	return flooding, nil
}

// withholdMirrors returns the changes that remove the outputs of the mirrors of bridges
// whose ports are withheld. Otherwise ovs-vswitchd would set up mirrors to a VLAN
// before mirrors to a port, an order in which it never sets them up when it starts.
func (n *Replica) withholdMirrors(ctx context.Context) ([]ovsdb.Change, error) {
	rows, err := n.DB.Select(ctx, "Mirror", "name", "output_port", "output_vlan")
	if err != nil {
		return nil, err
	}
	var changes []ovsdb.Change
	for _, row := range rows {
		for _, bridge := range n.Bridges {
			if len(bridge.withheld) == 0 || !slices.Contains(bridge.mirrors, row.UUID) {
				continue
			}
			output := ovsdb.Columns{}
			if port := row.UUIDs("output_port"); len(port) > 0 {
				output["output_port"] = ovsdb.Ref{UUID: port[0]}
			} else {
				output["output_vlan"], _ = row.Int("output_vlan")
			}
			n.mirrors = append(n.mirrors, ovsdb.Update("Mirror", row.UUID, output))
			changes = append(changes, ovsdb.Update("Mirror", row.UUID, ovsdb.Columns{"output_port": nil, "output_vlan": nil}))
			n.expect(fmt.Sprintf("bridge: bridge %s: mirror %s does not specify output; ignoring", bridge.Name, row.String("name")))
		}
	}
	return changes, nil
}

// restoreFloodOrder adds the withheld ports, the n-th port of all bridges at the
// same time, and then the mirrors.
func restoreFloodOrder(ctx context.Context, replica *Replica, outcome *report.Outcome) error {
	for round := 0; ; round++ {
		var changes []ovsdb.Change
		added := 0
		for _, bridge := range replica.Bridges {
			if round >= len(bridge.withheld) {
				continue
			}
			added++
			port := bridge.withheld[round]
			if port.Name == bridge.Name {
				if err := replica.removeLocalPort(ctx, bridge, outcome); err != nil {
					return err
				}
				continue
			}
			for _, iface := range port.Interfaces {
				changes = append(changes, ovsdb.Update("Interface", iface.UUID, ovsdb.Columns{"type": iface.Type}))
			}
		}
		if added == 0 && round == 0 {
			return nil
		}
		if added == 0 {
			break
		}
		if err := replica.reconfigure(ctx, changes); err != nil {
			return err
		}
		outcome.Note(report.Restored, "")
	}
	if len(replica.mirrors) > 1 {
		outcome.Note(report.Approximated, "a packet goes through several mirrors in the order in which ovs-vswitchd sets them up when it starts: which one came first on the live node is not recorded")
	}
	// ovs-vswitchd may write that a patch port lacks its peer after the round in which the peer was added. Its next
	// reconfiguration removes such an error.
	return replica.reconfigure(ctx, replica.mirrors)
}

// removeLocalPort removes a bridge's local port from the datapath. At its next
// reconfiguration ovs-vswitchd adds the port again, as the bridge's last one.
func (n *Replica) removeLocalPort(ctx context.Context, bridge *Bridge, outcome *report.Outcome) error {
	out, err := n.appctl(ctx, "dpctl/show")
	if err != nil {
		return err
	}
	for port := range appctl.DatapathPorts(out) {
		if port.Name != bridge.Name {
			continue
		}
		if _, err := n.appctl(ctx, "dpctl/del-if", port.Datapath, bridge.Name); err != nil {
			outcome.Note(report.Approximated, "%s: NORMAL floods to its local port first: the node flooded to other ports before it: %v", bridge.Name, err)
		}
		return ctx.Err()
	}
	return nil
}
