package drift

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

// compare compares the recorded state with the computed one.
func (c *comparison) compare(ctx context.Context, scratch *scratch.Scratch, computed flowdiff.State) (err error) {
	node, report := c.node, c.report
	diff := flowdiff.Compare(node.state, computed)
	unlearned := diff
	if unlearned.OnlyA, _ = withoutLearned(node.bridge, slices.Clone(diff.OnlyA), node.state, computed); !unlearned.Equal() {
		rest, moved, err := c.atRest(ctx, scratch, computed)
		if err != nil {
			return err
		}
		if moved {
			computed, diff = rest, flowdiff.Compare(node.state, rest)
		}
	}
	if c.recordedNames, err = flowdiff.NewNames(c.nb, c.sb, node.state.Flows); err != nil {
		return err
	}
	if c.computedNames, err = flowdiff.NewNames(c.nb, c.sb, computed.Flows); err != nil {
		return err
	}
	if a, b := c.recordedNames.Egress(), c.computedNames.Egress(); a != 0 && b != 0 && a != b {
		report.undetermined(fmt.Sprintf("the recorded flows have the egress pipeline from table %d on, and OVN %s puts it at table %d: the node's ovn-controller was of another release", a, report.Running.OVN, b))
		return nil
	}
	if err := c.leaveOut(ctx, &diff, computed); err != nil {
		return err
	}
	either, err := c.settleOrders(ctx, scratch, &diff)
	if err != nil {
		return err
	}
	ofRouterPorts, err := c.settleRouterPorts(&diff)
	if err != nil {
		return err
	}
	either = append(either, ofRouterPorts...)
	c.leaveOutUnprinted(&diff)
	if err := c.leaveOutFresh(&diff); err != nil {
		return err
	}
	changing, err := c.setChangingApart(&diff)
	if err != nil {
		return err
	}
	report.Compared, report.Same = Counts{len(node.state.Flows), len(node.state.Groups), len(node.state.Meters)}, diff.Same
	for _, l := range report.LeftOut {
		if l.Bridge == node.bridge {
			report.Compared.Flows -= l.Flows
		}
	}
	if err := c.report.fill(c, diff, either, changing); err != nil || report.Verdict != Found || c.options.Meaning == 0 {
		return err
	}
	return c.judge(ctx, scratch, computed, diff)
}

// mostDumps bounds how often a state is read until it no longer changes.
const mostDumps = 5

// atRest returns the computed state as it was read twice in a row, and whether it is another one than before: flows, groups
// and meters are read one after the other, and ovn-controller may give the meters of flows other numbers in between.
func (c *comparison) atRest(ctx context.Context, scratch *scratch.Scratch, computed flowdiff.State) (_ flowdiff.State, moved bool, err error) {
	for range mostDumps {
		again, err := c.computed(ctx, scratch)
		if err != nil {
			return computed, moved, err
		}
		if diff := flowdiff.Compare(computed, again); diff.Equal() {
			break
		}
		computed, moved = again, true
	}
	return computed, moved, nil
}

// fill names the differences.
func (r *Report) fill(comparison *comparison, diff flowdiff.Diff, either, changing []flowdiff.Change) error {
	for _, list := range []struct {
		changes []flowdiff.Change
		into    *[]Difference
	}{{diff.OnlyB, &r.Missing}, {diff.OnlyA, &r.Extra}, {diff.Changed, &r.Altered}, {either, &r.Either}, {changing, &r.Changing}} {
		groups, err := flowdiff.Name(list.changes, comparison.recordedNames, comparison.computedNames)
		if err != nil {
			return err
		}
		for _, g := range groups {
			*list.into = append(*list.into, flowdiff.DifferenceOf(g, entryOf))
		}
	}
	switch {
	case len(r.Missing)+len(r.Extra)+len(r.Altered) > 0:
		r.Verdict = Found
	case len(r.Changing) > 0:
		r.undetermined("ovn-controller was installing flows while the node was collected: collect it again")
	}
	return nil
}

// leaveOut removes from a difference what ovn-controller does not install, or what has no
// effect.
func (c *comparison) leaveOut(ctx context.Context, diff *flowdiff.Diff, computed flowdiff.State) error {
	report := c.report
	diff.OnlyA, report.LeftOut = withoutLearned(c.node.bridge, diff.OnlyA, c.node.state, computed)
	zones := 0
	diff.Changed = slices.DeleteFunc(diff.Changed, func(change flowdiff.Change) bool {
		idle := c.onlyIdleZones(change)
		if idle {
			zones++
		}
		return idle
	})
	if zones > 0 {
		report.LeftOut = append(report.LeftOut, LeftOut{Bridge: c.node.bridge, Flows: zones,
			Why: "of multicast groups that set the conntrack zone of a port to which they do not send, or do not set it: it has no effect"})
	}
	return c.leaveOutBridges(ctx)
}

// leaveOutUnprinted removes from a difference what a database that was made from its printed tables
// does not tell, because `ovn-sbctl lflow-list` prints neither the UUIDs nor the tags of logical flows.
func (c *comparison) leaveOutUnprinted(diff *flowdiff.Diff) {
	if c.node.manifest.FromPrinted(workdir.SB) == nil {
		return
	}
	changed, missing := len(diff.Changed), len(diff.OnlyB)
	diff.Changed = slices.DeleteFunc(diff.Changed, func(change flowdiff.Change) bool { return change.Cookie })
	if left := changed - len(diff.Changed); left > 0 {
		c.report.LeftOut = append(c.report.LeftOut, LeftOut{Bridge: c.node.bridge, Flows: left,
			Why: "of logical flows whose UUIDs were not printed: which of several for the same packets the node installed is not known"})
	}
	diff.OnlyB = slices.DeleteFunc(diff.OnlyB, func(change flowdiff.Change) bool {
		return change.Kind == flowdiff.KindFlow && ofPort.MatchString(change.B)
	})
	if left := missing - len(diff.OnlyB); left > 0 {
		c.report.Remarks = append(c.report.Remarks, phrase.Count(left, "flow")+" of single ports that the node lacks may be missing: a node has none for the ports of other nodes, and the tags that say so were not printed")
	}
}

// ofPort matches a flow for the packets from or to one logical port (MFF_LOG_INPORT, MFF_LOG_OUTPORT).
var ofPort = lazyregexp.New(`,reg1[45]=0x[0-9a-f]+,`)

// onlyIdleZones reports whether the flows of a multicast group differ in nothing but zones
// without effect. ovn-controller sets the zones of all ports of a group that have one, also
// of those to which this flow does not send (consider_mc_group() in controller/physical.c),
// and does not write the flow again when a port gets its zone later.
func (c *comparison) onlyIdleZones(change flowdiff.Change) bool {
	if change.Kind != flowdiff.KindFlow || change.Cookie {
		return false
	}
	var form openflow.Canonical
	a, b := form.Actions(openflow.Flow{Text: change.A}.Actions()), form.Actions(openflow.Flow{Text: change.B}.Actions())
	if !strings.Contains(a+b, zoneRegister) || withoutIdleZones(a) != withoutIdleZones(b) {
		return false
	}
	cause, _, err := c.computedNames.CauseOf(change.B)
	return err == nil && cause.Row == "Multicast_Group"
}

// zoneRegister ends an action that sets the conntrack zone of a logical port
// (MFF_LOG_CT_ZONE).
const zoneRegister = "->reg13"

// withoutIdleZones returns actions without those that set a zone which no resubmit follows
// before the next.
func withoutIdleZones(actions string) string {
	var kept []string
	used := false
	for _, action := range slices.Backward(strings.Split(actions, ",set_field:")) {
		if strings.HasSuffix(action, zoneRegister) && !used {
			continue
		}
		used = strings.Contains(action, "resubmit") || used && !strings.HasSuffix(action, zoneRegister)
		kept = append(kept, action)
	}
	return strings.Join(kept, ",set_field:")
}

// withoutUncollected leaves out of the computed state what was not recorded.
func (c *comparison) withoutUncollected(computed *flowdiff.State) {
	if slices.Contains(c.node.lacks, string(workdir.Groups)) {
		computed.Groups = nil
	}
	if slices.Contains(c.node.lacks, string(workdir.Meters)) {
		computed.Meters = nil
	}
}

// remarkUncollected remarks that groups or meters are not compared.
func (c *comparison) remarkUncollected() {
	for _, dump := range []workdir.Dump{workdir.Groups, workdir.Meters} {
		if slices.Contains(c.node.lacks, string(dump)) {
			c.report.Remarks = append(c.report.Remarks, fmt.Sprintf("the %s of %s were not collected, and are not compared", dump, c.node.bridge))
		}
	}
}

// leaveOutBridges names the bridges that are not compared.
func (c *comparison) leaveOutBridges(ctx context.Context) error {
	for _, bridge := range c.node.others {
		flows, err := c.node.countFlows(ctx, bridge)
		if err != nil {
			return err
		}
		c.report.LeftOut = append(c.report.LeftOut, LeftOut{Bridge: bridge, Flows: flows, Why: "ovn-controller installs flows only in " + c.node.bridge})
	}
	return nil
}

func entryOf(change flowdiff.Change) Entry {
	entry := Entry{Kind: change.Kind, Recorded: change.A, Computed: change.B, Line: change.LineA}
	switch {
	case change.Cookie && change.Actions:
		entry.Differs = "cookie and actions"
	case change.Cookie:
		entry.Differs = "cookie"
	case change.Actions && change.Kind == flowdiff.KindFlow:
		entry.Differs = "actions"
	case change.Actions:
		entry.Differs = "content"
	}
	return entry
}
