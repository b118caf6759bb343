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

// rival is an altered flow, with the logical flows that it may be made from.
type rival struct {
	change             flowdiff.Change
	recorded, computed string // UUIDs
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
	for range maxRounds {
		if len(open) == 0 {
			break
		}
		without := independent(open)
		now, err := c.without(ctx, s, sb, without)
		if err != nil {
			return nil, err
		}
		differs := map[string]bool{}
		for _, change := range append(now.Changed, now.OnlyA...) {
			differs[change.A] = true
		}
		open = slices.DeleteFunc(open, func(r rival) bool {
			if slices.Contains(without, r.computed) && !differs[r.change.A] {
				either = append(either, r.change)
			}
			return slices.Contains(without, r.computed)
		})
	}
	d.Changed = slices.DeleteFunc(d.Changed, func(change flowdiff.Change) bool { return slices.Contains(either, change) })
	d.Same += len(either)
	d.Flows += len(either)
	return either, nil
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
			found = append(found, rival{change, a.UUID, b.UUID})
		}
	}
	return found, nil
}

const logicalFlow = "Logical_Flow"

// independent returns computed logical flows of which none is a recorded one: without all of
// them at once, each recorded one can still be installed.
func independent(open []rival) (uuids []string) {
	recorded := map[string]bool{}
	for _, r := range open {
		if slices.Contains(uuids, r.recorded) || recorded[r.computed] {
			continue
		}
		recorded[r.recorded] = true
		uuids = append(uuids, r.computed)
	}
	slices.Sort(uuids)
	return slices.Compact(uuids)
}

// without compares with what ovn-controller computes while some logical flows are of no
// datapath. Their matches can't be changed instead: ovn-controller keeps what it has parsed,
// because ovn-northd never changes a match.
func (c *comparison) without(ctx context.Context, s *scratch.Scratch, sb *ovsdb.Client, uuids []string) (d flowdiff.Diff, err error) {
	var remove, restore []ovsdb.Change
	for _, uuid := range uuids {
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
