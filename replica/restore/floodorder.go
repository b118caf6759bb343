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
	// reconfigured bounds one reconfiguration, in milliseconds.
	reconfigured = 10000
)

// editFloodOrder keeps back the ports of bridges that flood.
func editFloodOrder(ctx context.Context, n *Node, o *outcome) error {
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
			o.note(Approximated, "%s: it has %d ports: the order in which NORMAL floods to them is not restored", b.Name, len(b.Ports))
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
		o.note(Restored, "")
	}
	if err := n.expectMirrors(ctx); err != nil {
		return err
	}
	return n.DB.Transact(ctx, changes...)
}

// expectMirrors takes note that ovs-vswitchd will miss the output ports of
// mirrors until they are given back.
func (n *Node) expectMirrors(ctx context.Context) error {
	mirrors, err := n.DB.Select(ctx, "Mirror", "name", "output_port")
	if err != nil {
		return err
	}
	for _, b := range n.Bridges {
		for _, p := range b.withheld {
			for _, m := range mirrors {
				if slices.Contains(m.UUIDs("output_port"), p.UUID) {
					n.expect(fmt.Sprintf("bridge: bridge %s: mirror %s outputs to port not on bridge", b.Name, m.String("name")))
				}
			}
		}
	}
	return nil
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
	for flow, problem := range openflow.Flows(f) {
		if problem == nil && strings.Contains(flow.Actions(), "NORMAL") {
			return true, nil
		}
	}
	return false, nil
}

// restoreFloodOrder gives the ports back, the n-th of every bridge at once.
func restoreFloodOrder(ctx context.Context, n *Node, o *outcome) error {
	rows, err := n.DB.Select(ctx, "Open_vSwitch", "next_cfg")
	if err != nil || len(rows) != 1 {
		return err
	}
	next, _ := rows[0].Int("next_cfg")
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
			return nil
		}
		next++
		changes = append(changes, ovsdb.Update("Open_vSwitch", rows[0].UUID, ovsdb.Columns{"next_cfg": next}))
		if err := n.DB.Transact(ctx, changes...); err != nil {
			return err
		}
		// ovs-vswitchd says here that it has done what next_cfg asked (ovs-vswitchd.conf.db(5)).
		if err := n.DB.Transact(ctx, ovsdb.Await("Open_vSwitch", rows[0].UUID, "cur_cfg", next, reconfigured)); err != nil {
			return fmt.Errorf("waiting for ovs-vswitchd to add a port: %w", err)
		}
		o.note(Restored, "")
	}
}
