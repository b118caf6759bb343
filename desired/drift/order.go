package drift

import (
	"context"
	"errors"
	"slices"

	"ovs-offline/desired/flowdiff"
	"ovs-offline/desired/scratch"
	"ovs-offline/internal/ovsdb"
)

// Logical flows of one stage and priority may match the same packets: two ACLs, or the
// session affinity of two load balancers with a common backend. ovn-controller then installs
// the flow of the one that it saw first, which differs from run to run. To find out whether
// a recorded flow is that of the other logical flow, ovn-controller computes once more
// without the one that it has installed.

// maxRounds bounds how often ovn-controller computes again. Each round decides for as many
// flows as do not depend on each other.
const maxRounds = 8

// rival is an altered flow that may be of another logical flow than the computed one.
type rival struct {
	change   flowdiff.Change
	recorded string   // the UUID of the logical flow that it may be of
	without  []string // those that ovn-controller has installed in its place so far
}

// orders removes from a difference the altered flows that depend on the order of logical
// flows, and returns them.
func (c *comparison) orders(ctx context.Context, s *scratch.Scratch, d *flowdiff.Diff) (either []flowdiff.Change, err error) {
	open, err := c.rivals(d.Changed)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	sb, err := ovsdb.Connect(ctx, s.SBSocket(), ovsdb.SB)
	if err != nil {
		return nil, err
	}
	defer sb.Close()
	for round := 0; round < maxRounds && len(open) > 0; round++ {
		chosen, later := independent(open)
		now, err := c.without(ctx, s, sb, chosen)
		if err != nil {
			return nil, err
		}
		open = later
		for _, r := range chosen {
			next, differs, err := c.next(r, now)
			if err != nil {
				return nil, err
			}
			if !differs {
				either = append(either, r.change)
			} else if next != "" {
				r.without = append(r.without, next)
				open = append(open, r)
			}
		}
	}
	accept(d, either)
	return either, nil
}

// accept counts altered flows of a difference as the same.
func accept(d *flowdiff.Diff, either []flowdiff.Change) {
	d.Changed = slices.DeleteFunc(d.Changed, func(change flowdiff.Change) bool { return slices.Contains(either, change) })
	d.Same += len(either)
	d.Flows += len(either)
}

// next returns whether the recorded flow of a rival still differs, and the logical flow that
// ovn-controller has installed in its place now; "" if it can't be without that one.
func (c *comparison) next(r rival, now flowdiff.Diff) (uuid string, differs bool, err error) {
	if slices.ContainsFunc(now.OnlyA, func(change flowdiff.Change) bool { return change.A == r.change.A }) {
		return "", true, nil
	}
	i := slices.IndexFunc(now.Changed, func(change flowdiff.Change) bool { return change.A == r.change.A })
	if i < 0 {
		return "", false, nil
	}
	found, err := c.rivals(now.Changed[i : i+1])
	if err != nil || len(found) == 0 || slices.Contains(r.without, found[0].without[0]) {
		return "", true, err
	}
	return found[0].without[0], true, nil
}

// rivals returns the altered flows whose recorded cookie is that of another logical flow of
// the same stage, which still exists.
func (c *comparison) rivals(changes []flowdiff.Change) (found []rival, err error) {
	for _, change := range changes {
		if change.Kind != flowdiff.KindFlow || !change.Cookie {
			continue
		}
		a, _, errA := c.recordedNames.Of(change.A)
		b, _, errB := c.computedNames.Of(change.B)
		if err := errors.Join(errA, errB); err != nil {
			return nil, err
		}
		if a.Row == logicalFlow && b.Row == logicalFlow && a.Stage == b.Stage {
			found = append(found, rival{change, a.UUID, []string{b.UUID}})
		}
	}
	return found, nil
}

const logicalFlow = "Logical_Flow"

// independent chooses rivals that can be decided in one round: the logical flow of none is
// one that another has to be without.
func independent(open []rival) (chosen, later []rival) {
	recorded, without := map[string]bool{}, map[string]bool{}
	for _, r := range open {
		if without[r.recorded] || slices.ContainsFunc(r.without, func(uuid string) bool { return recorded[uuid] }) {
			later = append(later, r)
			continue
		}
		chosen = append(chosen, r)
		recorded[r.recorded] = true
		for _, uuid := range r.without {
			without[uuid] = true
		}
	}
	return chosen, later
}

// without compares with what ovn-controller computes while the logical flows that rivals have
// to be without are of no datapath. Their matches can't be changed instead: ovn-controller keeps what it has parsed,
// because ovn-northd never changes a match.
func (c *comparison) without(ctx context.Context, s *scratch.Scratch, sb *ovsdb.Client, rivals []rival) (d flowdiff.Diff, err error) {
	var uuids []string
	for _, r := range rivals {
		uuids = append(uuids, r.without...)
	}
	slices.Sort(uuids)
	var remove, restore []ovsdb.Change
	for _, uuid := range slices.Compact(uuids) {
		row, _, err := c.sb.Row(logicalFlow, uuid, datapathColumns()...)
		if err != nil {
			return d, err
		}
		removed, restored := ovsdb.Columns{}, ovsdb.Columns{}
		for _, column := range datapathColumns() {
			for _, datapath := range row.UUIDs(column) {
				removed[column], restored[column] = nil, ovsdb.Ref{UUID: datapath}
			}
		}
		remove, restore = append(remove, ovsdb.Update(logicalFlow, uuid, removed)), append(restore, ovsdb.Update(logicalFlow, uuid, restored))
	}
	if err := sb.Transact(ctx, remove...); err != nil {
		return d, err
	}
	if err := s.Wait(ctx); err != nil {
		return d, err
	}
	computed, err := c.computed(ctx, s)
	if err != nil {
		return d, err
	}
	return flowdiff.Compare(c.node.state, computed), sb.Transact(ctx, restore...)
}

// datapathColumns are the columns of a logical flow that name its datapaths.
func datapathColumns() []string { return []string{"logical_datapath", "logical_dp_group"} }
