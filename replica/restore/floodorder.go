package restore

import (
	"context"
	"fmt"
	"slices"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

// NORMAL floods to ports in the order in which they were added, and what the flows
// of one output port do to the packet carries over to the next. When ovs-vswitchd
// starts, or when several ports are added in one transaction, it adds them in an order
// of its own. Recorded datapath flows show the order on the live node; what they do not
// show follows the OpenFlow numbers, which have the order in which the ports were added
// one by one. So ports of bridges that flood are first withheld, by a type that no OVS
// supports, and then added one by one.

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
		// The local port comes with the bridge: ovs-vswitchd ignores its type.
		b.withheld = slices.DeleteFunc(order, func(p *Port) bool { return p.Name == b.Name })
		for _, p := range b.withheld {
			for _, i := range p.Interfaces {
				changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"type": withheldType}))
			}
		}
	}
	mirrors, err := n.withholdMirrors(ctx)
	if err != nil {
		return err
	}
	return n.DB.Transact(ctx, append(changes, mirrors...)...)
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
		for _, b := range n.Bridges {
			if round < len(b.withheld) {
				for _, i := range b.withheld[round].Interfaces {
					changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"type": i.Type}))
				}
			}
		}
		if len(changes) == 0 {
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
