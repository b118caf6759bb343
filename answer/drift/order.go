package drift

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/scratch"
)

// Logical flows of one stage and priority may match the same packets: two ACLs, or the
// session affinity of two load balancers with a common backend. ovn-controller then installs
// the flow of the one that it saw first, which differs from run to run. To find out whether
// the other logical flow explains a recorded flow, ovn-controller computes once more
// without the one that it has installed.

// maxRounds bounds how often ovn-controller computes again. Each round decides for as many
// flows as do not depend on each other.
const maxRounds = 8

// rival is an altered flow that another logical flow than the computed flow's may explain.
type rival struct {
	change   flowdiff.Change
	recorded string   // the UUID of the logical flow that may explain it
	without  []string // the flows that ovn-controller has installed in its place so far
}

// settleOrders removes from a difference the altered flows that depend on the order of logical
// flows, and returns them.
func (c *comparison) settleOrders(ctx context.Context, scratch *scratch.Scratch, diff *flowdiff.Diff) (either []flowdiff.Change, err error) {
	if either, err = c.balancers(diff.Changed); err != nil {
		return nil, err
	}
	accept(diff, either)
	open, err := c.rivals(diff.Changed)
	if err != nil || len(open) == 0 {
		return either, err
	}
	sb, err := ovsdb.Connect(ctx, scratch.SBSocket(), ovsdb.SB)
	if err != nil {
		return nil, err
	}
	defer sb.Close()
	var settled []flowdiff.Change
	for round := 0; round < maxRounds && len(open) > 0; round++ {
		chosen, later := independent(open)
		now, err := c.compareWithout(ctx, scratch, sb, chosen)
		if err != nil {
			return nil, err
		}
		open = later
		for _, rival := range chosen {
			next, differs, err := c.next(rival, now)
			if err != nil {
				return nil, err
			}
			if !differs {
				settled = append(settled, rival.change)
			} else if next != "" {
				rival.without = append(rival.without, next)
				open = append(open, rival)
			}
		}
	}
	accept(diff, settled)
	return append(either, settled...), nil
}

// balancers returns the altered flows that two load balancers with the same VIP and backend need alike, as
// of a service with externalTrafficPolicy Local: only their cookies differ, also in the action learn.
// ovn-controller installs either (lflow.c, add_lb_vip_hairpin_flows).
func (c *comparison) balancers(changes []flowdiff.Change) (found []flowdiff.Change, err error) {
	err = c.eachOtherCookie(changes, func(change flowdiff.Change, was, is flowdiff.Cause) {
		if was.Row == loadBalancer && is.Row == loadBalancer && withCookie(change.A, is.UUID) == withCookie(change.B, is.UUID) {
			found = append(found, change)
		}
	})
	return found, err
}

const loadBalancer = "Load_Balancer"

// withCookie returns a flow with the cookie of a row in place of its own.
func withCookie(flow, uuid string) string {
	key, err := openflow.ParseKey(flow)
	if err != nil {
		return flow
	}
	return strings.ReplaceAll(flow, fmt.Sprintf("cookie=%#x", key.Cookie), "cookie="+uuid)
}

// accept moves flows for which OVN leaves the winner open from the altered flows to the same ones.
func accept(d *flowdiff.Diff, either []flowdiff.Change) {
	d.Changed = slices.DeleteFunc(d.Changed, func(change flowdiff.Change) bool { return slices.Contains(either, change) })
	d.Same += len(either)
	d.Flows += len(either)
}

// next reports whether the recorded flow of a rival still differs, and returns the logical flow
// whose flow ovn-controller has installed in its place now; "" if a round without that one is of no use.
func (c *comparison) next(rival rival, now flowdiff.Diff) (uuid string, differs bool, err error) {
	if slices.ContainsFunc(now.OnlyA, func(change flowdiff.Change) bool { return change.A == rival.change.A }) {
		return "", true, nil
	}
	i := slices.IndexFunc(now.Changed, func(change flowdiff.Change) bool { return change.A == rival.change.A })
	if i < 0 {
		return "", false, nil
	}
	found, err := c.rivals(now.Changed[i : i+1])
	if err != nil || len(found) == 0 || slices.Contains(rival.without, found[0].without[0]) {
		return "", true, err
	}
	return found[0].without[0], true, nil
}

// rivals returns the altered flows whose recorded cookie belongs to another logical flow of the same
// stage, which still exists.
func (c *comparison) rivals(changes []flowdiff.Change) (found []rival, err error) {
	err = c.eachOtherCookie(changes, func(change flowdiff.Change, was, is flowdiff.Cause) {
		if was.Row == ovn.LogicalFlowTable && is.Row == ovn.LogicalFlowTable && was.Stage == is.Stage {
			found = append(found, rival{change, was.UUID, []string{is.UUID}})
		}
	})
	return found, err
}

// eachOtherCookie calls use with the altered flows whose cookies differ, and the rules of both.
func (c *comparison) eachOtherCookie(changes []flowdiff.Change, use func(change flowdiff.Change, was, is flowdiff.Cause)) error {
	for _, change := range changes {
		if change.Kind != flowdiff.KindFlow || !change.Cookie {
			continue
		}
		was, _, errA := c.recordedNames.CauseOf(change.A)
		is, _, errB := c.computedNames.CauseOf(change.B)
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		use(change, was, is)
	}
	return nil
}

// independent chooses rivals that can be decided in one round: no rival needs a logical flow that
// another has to be without.
func independent(open []rival) (chosen, later []rival) {
	recorded, without := map[string]bool{}, map[string]bool{}
	for _, undecided := range open {
		if without[undecided.recorded] || slices.ContainsFunc(undecided.without, func(uuid string) bool { return recorded[uuid] }) {
			later = append(later, undecided)
			continue
		}
		chosen = append(chosen, undecided)
		recorded[undecided.recorded] = true
		for _, uuid := range undecided.without {
			without[uuid] = true
		}
	}
	return chosen, later
}

// compareWithout compares with what ovn-controller computes while the logical flows that rivals have
// to be without belong to no datapath. Their matches can't be changed instead: ovn-controller keeps what it has parsed,
// because ovn-northd never changes a match.
func (c *comparison) compareWithout(ctx context.Context, scratch *scratch.Scratch, sb *ovsdb.Client, rivals []rival) (diff flowdiff.Diff, err error) {
	var uuids []string
	for _, r := range rivals {
		uuids = append(uuids, r.without...)
	}
	slices.Sort(uuids)
	var remove, restore []ovsdb.Change
	for _, uuid := range slices.Compact(uuids) {
		row, _, err := c.sb.Row(ovn.LogicalFlowTable, uuid, datapathColumns()...)
		if err != nil {
			return diff, err
		}
		removed, restored := ovsdb.Columns{}, ovsdb.Columns{}
		for _, column := range datapathColumns() {
			for _, datapath := range row.UUIDs(column) {
				removed[column], restored[column] = nil, ovsdb.Ref{UUID: datapath}
			}
		}
		remove, restore = append(remove, ovsdb.Update(ovn.LogicalFlowTable, uuid, removed)), append(restore, ovsdb.Update(ovn.LogicalFlowTable, uuid, restored))
	}
	if err := sb.Transact(ctx, remove...); err != nil {
		return diff, err
	}
	if err := scratch.Wait(ctx); err != nil {
		return diff, err
	}
	computed, err := c.computed(ctx, scratch)
	if err != nil {
		return diff, err
	}
	return flowdiff.Compare(c.node.state, computed), sb.Transact(ctx, restore...)
}

// datapathColumns are the columns of a logical flow that name its datapaths.
func datapathColumns() []string { return []string{"logical_datapath", "logical_dp_group"} }
