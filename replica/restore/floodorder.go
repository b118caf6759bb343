package restore

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// NORMAL floods to ports in the order in which they were made, and what one
// port's flows do to the packet goes on to the next. ovs-vswitchd makes all the
// ports that it finds when it starts in an order of its own; a live node's
// ports came one after the other, and their OpenFlow numbers with them. So the
// ports of bridges that flood are kept back, by a type that no OVS knows, and
// given back in that order.

const (
	withheldType = "ovs-offline-later"
	// maxOrdered bounds the ports of a bridge that are made one by one: each
	// costs a reconfiguration, whose time grows with their number.
	maxOrdered = 300
)

// editFloodOrder keeps back the ports of bridges that flood.
func editFloodOrder(ctx context.Context, n *Node, o *report.Outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		floods, err := n.floods(b)
		if err != nil {
			return err
		}
		if !floods || len(b.Ports) < 3 {
			continue // nothing is flooded, or to one port only
		}
		if len(b.Ports) > maxOrdered {
			o.Note(report.Approximated, "%s: it has %d ports: the order in which NORMAL floods to them is not restored", b.Name, len(b.Ports))
			continue
		}
		for _, p := range b.Ports {
			if p.Name == b.Name {
				continue
			}
			b.withheld = append(b.withheld, p)
			for _, i := range p.Interfaces {
				changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"type": withheldType}))
			}
		}
		sort.SliceStable(b.withheld, func(i, j int) bool { return number(b.withheld[i]) < number(b.withheld[j]) })
		o.Note(report.Restored, "")
	}
	mirrors, err := n.withholdMirrors(ctx)
	if err != nil {
		return err
	}
	return n.DB.Transact(ctx, append(changes, mirrors...)...)
}

// mirror is a mirror whose output was taken away until all ports are there.
type mirror struct {
	uuid string
	port []string
	vlan int
}

// withholdMirrors takes their outputs from the mirrors of bridges whose ports
// come later. Else those to a port would be set up after those to a VLAN, and
// a packet go through them in an order that no start of ovs-vswitchd gives.
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
			vlan, _ := r.Int("output_vlan")
			n.mirrors = append(n.mirrors, mirror{uuid: r.UUID, port: r.UUIDs("output_port"), vlan: vlan})
			changes = append(changes, ovsdb.Update("Mirror", r.UUID, ovsdb.Columns{"output_port": nil, "output_vlan": nil}))
			n.expect(fmt.Sprintf("bridge: bridge %s: mirror %s does not specify output; ignoring", b.Name, r.String("name")))
		}
	}
	return changes, nil
}

// mirrorChanges give the outputs back.
func (n *Node) mirrorChanges() []ovsdb.Change {
	var changes []ovsdb.Change
	for _, m := range n.mirrors {
		columns := ovsdb.Columns{}
		if len(m.port) > 0 {
			columns["output_port"] = ovsdb.Ref{UUID: m.port[0]}
		} else {
			columns["output_vlan"] = m.vlan
		}
		changes = append(changes, ovsdb.Update("Mirror", m.uuid, columns))
	}
	return changes
}

// number is the lowest OpenFlow port number of a port's interfaces.
func number(p *Port) int {
	lowest := 0
	for _, i := range p.Interfaces {
		if lowest == 0 || i.OfPort < lowest {
			lowest = i.OfPort
		}
	}
	return lowest
}

// floods tells whether any flow of a bridge is NORMAL; a bridge whose flows are
// not known may flood.
func (n *Node) floods(b *Bridge) (bool, error) {
	f, ok, err := n.recorded(n.Workdir.DumpFile(b.Name, workdir.Flows))
	if !ok {
		return err == nil, err
	}
	defer f.Close()
	for flow, problem := range openflow.FlowsWith(f, "NORMAL") {
		if problem == nil && strings.Contains(flow.Actions(), "NORMAL") {
			return true, nil
		}
	}
	return false, nil
}

// restoreFloodOrder gives the ports back, the n-th of every bridge at once, and
// then the mirrors.
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
	return n.reconfigure(ctx, n.mirrorChanges())
}
