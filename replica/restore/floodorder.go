package restore

import (
	"context"
	"fmt"
	"slices"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/ovsdb"
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
func editFloodOrder(ctx context.Context, n *Node, o *report.Outcome) error {
	flooding, err := n.floodingBridges(ctx, o)
	if err != nil {
		return err
	}
	shown, err := recordedFloods(&n.Recorded, n.Bridges, flooding)
	if err != nil {
		return err
	}
	var changes []ovsdb.Change
	for _, b := range flooding {
		order := shown[b].arrange(b)
		shown[b].noteFloodOrder(b, order, o)
		if order[0].Name == b.Name {
			order = order[1:]
		}
		b.withheld = order
		changes = append(changes, withhold(b)...)
	}
	mirrors, err := n.withholdMirrors(ctx)
	if err != nil {
		return err
	}
	return n.DB.Transact(ctx, append(changes, mirrors...)...)
}

// withhold returns the changes that withhold the ports of a bridge. The local port comes
// with the bridge: ovs-vswitchd ignores its type.
func withhold(b *Bridge) []ovsdb.Change {
	var changes []ovsdb.Change
	for _, p := range b.withheld {
		if p.Name == b.Name {
			continue
		}
		for _, i := range p.Interfaces {
			changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"type": withheldType}))
		}
	}
	return changes
}

// floodingBridges returns the bridges whose flood order is restored.
func (n *Node) floodingBridges(ctx context.Context, o *report.Outcome) ([]*Bridge, error) {
	var flooding []*Bridge
	for _, b := range n.Bridges {
		if len(b.Ports) < 3 {
			continue // a flood has a single output then
		}
		floods, err := n.Facts.Flood(ctx, b.Name)
		switch {
		case err != nil:
			return nil, err
		case !floods:
		case len(b.Ports) > maxOrdered:
			o.Note(report.Approximated, "%s: it has %d ports: the order in which NORMAL floods to them is not restored", b.Name, len(b.Ports))
		default:
			flooding = append(flooding, b)
		}
	}
	return flooding, nil
}

// withholdMirrors returns the changes that remove the outputs of the mirrors of bridges
// whose ports are withheld. Otherwise ovs-vswitchd would set up mirrors to a VLAN
// before mirrors to a port, an order in which it never sets them up when it starts.
func (n *Node) withholdMirrors(ctx context.Context) ([]ovsdb.Change, error) {
	rows, err := n.DB.Select(ctx, "Mirror", "name", "output_port", "output_vlan")
	if err != nil {
		return nil, err
	}
	var changes []ovsdb.Change
	for _, r := range rows {
		for _, b := range n.Bridges {
			if len(b.withheld) == 0 || !slices.Contains(b.mirrors, r.UUID) {
				continue
			}
			output := ovsdb.Columns{}
			if port := r.UUIDs("output_port"); len(port) > 0 {
				output["output_port"] = ovsdb.Ref{UUID: port[0]}
			} else {
				output["output_vlan"], _ = r.Int("output_vlan")
			}
			n.mirrors = append(n.mirrors, ovsdb.Update("Mirror", r.UUID, output))
			changes = append(changes, ovsdb.Update("Mirror", r.UUID, ovsdb.Columns{"output_port": nil, "output_vlan": nil}))
			n.expect(fmt.Sprintf("bridge: bridge %s: mirror %s does not specify output; ignoring", b.Name, r.String("name")))
		}
	}
	return changes, nil
}

// restoreFloodOrder adds the withheld ports, the n-th port of all bridges at the
// same time, and then the mirrors.
func restoreFloodOrder(ctx context.Context, n *Node, o *report.Outcome) error {
	for round := 0; ; round++ {
		var changes []ovsdb.Change
		added := 0
		for _, b := range n.Bridges {
			if round >= len(b.withheld) {
				continue
			}
			added++
			p := b.withheld[round]
			if p.Name == b.Name {
				if err := n.removeLocalPort(ctx, b, o); err != nil {
					return err
				}
				continue
			}
			for _, i := range p.Interfaces {
				changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"type": i.Type}))
			}
		}
		if added == 0 {
			break
		}
		if err := n.reconfigure(ctx, changes); err != nil {
			return err
		}
		o.Note(report.Restored, "")
	}
	if len(n.mirrors) == 0 {
		return nil
	}
	if len(n.mirrors) > 1 {
		o.Note(report.Approximated, "a packet goes through several mirrors in the order in which ovs-vswitchd sets them up when it starts: which one came first on the live node is not recorded")
	}
	return n.reconfigure(ctx, n.mirrors)
}

// removeLocalPort removes a bridge's local port from the datapath. At its next
// reconfiguration ovs-vswitchd adds the port again, as the bridge's last one.
func (n *Node) removeLocalPort(ctx context.Context, b *Bridge, o *report.Outcome) error {
	out, err := n.appctl(ctx, "dpctl/show")
	if err != nil {
		return err
	}
	for p := range appctl.DatapathPorts(out) {
		if p.Name != b.Name {
			continue
		}
		if _, err := n.appctl(ctx, "dpctl/del-if", p.Datapath, b.Name); err != nil {
			o.Note(report.Approximated, "%s: NORMAL floods to its local port first: the node flooded to other ports before it: %v", b.Name, err)
		}
		return ctx.Err()
	}
	return nil
}
