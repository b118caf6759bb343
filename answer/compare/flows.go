package compare

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// bridgeFlows are the flows of a bridge on one side.
type bridgeFlows struct {
	node    *capturedNode
	zone    *zone  // with a southbound database, if need be from the other side; nil for none
	path    string // of the dump
	numbers *numbers
	layout  rules.Layout // zero for a bridge without OVN
	// conjunctions reads the flows that match conj_id when it is first called.
	conjunctions func() (rules.Conjunctions, error)
	local        map[string]bool // the datapaths with flows
}

// flowDifference is a flow that differs: the flow before and after, one of which may be
// missing.
type flowDifference struct{ old, new *openflow.Flow }

// compareFlows compares the flows of the bridges of a node.
func (c *comparer) compareFlows(ctx context.Context, pair *nodePair) error {
	old, err := pair.old.bridges()
	if err != nil {
		return err
	}
	now, err := pair.new.bridges()
	if err != nil {
		return err
	}
	for _, bridge := range slices.Sorted(maps.Keys(old)) {
		if !now[bridge] {
			continue // a finding of the database
		}
		common := c.commonOf(pair, bridge)
		before, err := pair.old.flows(ctx, bridge, common)
		if err != nil {
			return fmt.Errorf("bridge %s: %w", bridge, err)
		}
		after, err := pair.new.flows(ctx, bridge, common)
		if err != nil {
			return fmt.Errorf("bridge %s: %w", bridge, err)
		}
		switch {
		case before == nil && after == nil:
		case before == nil || after == nil:
			c.missing(fmt.Sprintf("flows of bridge %s of node %s: only one side has them", bridge, pair.new.name))
		default:
			for _, side := range []*capturedNode{pair.old, pair.new} {
				if partial := side.partial(bridge); partial != nil {
					c.missing(fmt.Sprintf("flows of bridge %s of node %s: only a part was collected: %s", bridge, side.name, partial))
				}
			}
			if err := c.withoutKeys(pair, bridge, common, before, after); err != nil {
				return fmt.Errorf("bridge %s: %w", bridge, err)
			}
			if err := c.compareBridge(ctx, pair, bridge, before, after); err != nil {
				return fmt.Errorf("bridge %s: %w", bridge, err)
			}
		}
	}
	return nil
}

// withoutKeys reads the numbers of both sides anew where no southbound database knows the flows of one: the keys of its
// datapaths and ports are unknown then, and are left out of the flows of both. It says whose database names them else.
func (c *comparer) withoutKeys(pair *nodePair, bridge string, common common, before, after *bridgeFlows) (err error) {
	side, name := before, c.old.name
	if after.layout.Egress == 0 {
		side, name = after, c.new.name
	}
	if side.layout.Egress != 0 || before.layout.Egress == after.layout.Egress || before.zone == nil || after.zone == nil {
		if common.named != "" && side.layout.Egress != 0 {
			c.remark(common.named)
		}
		return nil
	}
	c.missing(fmt.Sprintf("keys of datapaths and ports in the flows of bridge %s of node %s, and what those of %s were made from: no OVN SB database has their cookies; the rest of these flows is compared", bridge, pair.new.name, name))
	common.keyless = true
	if before.numbers, err = before.node.readNumbers(bridge, before.zone.rules, common); err == nil {
		after.numbers, err = after.node.readNumbers(bridge, after.zone.rules, common)
	}
	return err
}

// partial returns why the flows that were collected of a bridge are only a part, nil if they are not.
func (n *capturedNode) partial(bridge string) *workdir.Partial {
	manifest, err := n.dir.Manifest()
	if err != nil {
		return nil
	}
	return manifest.Partial(n.dir.Relative(n.dir.DumpFile(bridge, workdir.Flows)))
}

// bridges returns the names of a node's bridges.
func (n *capturedNode) bridges() (map[string]bool, error) {
	found := map[string]bool{}
	manifest, err := n.dir.Manifest()
	if err != nil {
		return nil, err
	}
	if c := manifest.Collection(workdir.OVS); c != nil {
		for _, name := range c.Bridges {
			found[name] = true
		}
	}
	bridges, err := n.recorded()
	for _, b := range bridges {
		found[b.Name] = true
	}
	return found, err
}

// flows prepares the flows of a bridge; nil if they were not collected.
func (n *capturedNode) flows(ctx context.Context, bridge string, common common) (*bridgeFlows, error) {
	found := &bridgeFlows{node: n, zone: common.zone, path: existing(n.dir.DumpFile(bridge, workdir.Flows)), local: map[string]bool{}}
	if found.path == "" {
		return nil, nil
	}
	if n.zone != nil && n.zone.SB != nil {
		found.zone = n.zone
	}
	var err error
	var names *rules.Rules
	if found.zone != nil {
		if found.layout, err = found.zone.rules.ReadLayout(ctx, &n.dir.Data, found.path); err != nil {
			return nil, err
		}
		if found.layout != (rules.Layout{}) {
			names = found.zone.rules
		}
	}
	found.conjunctions = sync.OnceValues(func() (rules.Conjunctions, error) { return readConjunctions(ctx, n.dir, found.path) })
	found.numbers, err = n.readNumbers(bridge, names, common)
	return found, err
}

func readConjunctions(ctx context.Context, wd *workdir.Dir, path string) (rules.Conjunctions, error) {
	dump, ok, err := wd.Collected(path)
	if !ok {
		return nil, err
	}
	defer dump.Close()
	return rules.ReadConjunctions(interrupt.Reader(ctx, dump)), ctx.Err()
}

// all yields the flows of the dump. Lines that are no flows are left out.
func (f *bridgeFlows) all(ctx context.Context) iter.Seq2[openflow.Flow, error] {
	return func(yield func(openflow.Flow, error) bool) {
		dump, ok, err := f.node.dir.Collected(f.path)
		if !ok {
			yield(openflow.Flow{}, err)
			return
		}
		defer dump.Close()
		for flow, problem := range openflow.Flows(interrupt.Reader(ctx, dump)) {
			if problem == nil && !yield(flow, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(openflow.Flow{}, err)
		}
	}
}

// compareBridge compares the flows of a bridge. It reads a dump twice rather than keep all
// flows of a node with a million of them in memory.
func (c *comparer) compareBridge(ctx context.Context, pair *nodePair, bridge string, before, after *bridgeFlows) error {
	zone := c.zoneOf(pair.new.zone)
	if zone != nil && zone.upgrade != nil && (before.layout != rules.Layout{} || after.layout != rules.Layout{}) {
		return c.compareStages(ctx, zone, before, after)
	}
	if old, now := before.layout.Egress, after.layout.Egress; old != now && old != 0 && now != 0 {
		c.missing(fmt.Sprintf("flows of bridge %s of node %s: the pipelines of OVN begin at other tables", bridge, pair.new.name))
		return nil
	}
	seed := maphash.MakeSeed()
	counts := map[uint64]int{}
	key := func(side *bridgeFlows, flow openflow.Flow) uint64 {
		match, actions := side.inNames(flow)
		return maphash.String(seed, match+" "+actions)
	}
	for flow, err := range before.all(ctx) {
		if err != nil {
			return err
		}
		counts[key(before, flow)]++
	}
	var added, gone []openflow.Flow
	left := 0
	for _, n := range counts {
		left += n
	}
	for flow, err := range after.all(ctx) {
		if err != nil {
			return err
		}
		if k := key(after, flow); counts[k] > 0 {
			counts[k]--
			left--
		} else {
			added = append(added, flow)
		}
	}
	if left > 0 {
		for flow, err := range before.all(ctx) {
			if err != nil {
				return err
			}
			if k := key(before, flow); counts[k] > 0 {
				counts[k]--
				gone = append(gone, flow)
			}
		}
	}
	if lost := slices.Concat(before.numbers.spelling.LeftOut(), after.numbers.spelling.LeftOut()); len(lost) > 0 {
		slices.Sort(lost)
		c.missing(fmt.Sprintf("%s in the flows of bridge %s of node %s: a dump in %s does not have them", strings.Join(slices.Compact(lost), ", "), bridge, pair.new.name, before.numbers.spelling.Oldest))
	}
	e := &explainer{comparer: c, pair: pair, zone: zone, bridge: bridge, old: before, new: after}
	return e.explain(ctx, differencesOf(before, after, gone, added))
}

// inNames returns a flow in names, and remembers its datapath.
func (f *bridgeFlows) inNames(flow openflow.Flow) (match, actions string) {
	match, actions, datapath := f.numbers.flow(flow)
	if datapath != "" {
		f.local[datapath] = true
	}
	return match, actions
}

// gateway returns the stage of a flow of ovnkube-node on the bridge to the outside, and what it is for; ok is
// false for another flow.
func (f *bridgeFlows) gateway(flow openflow.Flow) (stage, words string, ok bool) {
	if f.zone == nil || f.layout != (rules.Layout{}) {
		return "", "", false
	}
	return f.zone.rules.Gateway(rules.GatewayFlow{Key: flow.Key(), Actions: flow.Actions(), Port: func(number string) string { return f.numbers.ports[number] }})
}

// differencesOf joins the flows that have the same match on both sides, and only other
// actions.
func differencesOf(before, after *bridgeFlows, gone, added []openflow.Flow) []flowDifference {
	byMatch := map[string][]int{}
	var all []flowDifference
	for i := range gone {
		match, _ := before.inNames(gone[i])
		byMatch[match] = append(byMatch[match], len(all))
		all = append(all, flowDifference{old: &gone[i]})
	}
	for i := range added {
		match, _ := after.inNames(added[i])
		if list := byMatch[match]; len(list) > 0 {
			all[list[0]].new = &added[i]
			byMatch[match] = list[1:]
			continue
		}
		all = append(all, flowDifference{new: &added[i]})
	}
	return all
}

// compareStages compares the numbers of flows in each stage, because another version of OVN
// writes other flows for the same network. The differences follow from the upgrade.
func (c *comparer) compareStages(ctx context.Context, zones *zonePair, older, newer *bridgeFlows) error {
	old, err := older.stages(ctx)
	if err != nil {
		return err
	}
	now, err := newer.stages(ctx)
	if err != nil {
		return err
	}
	all := map[string]bool{}
	for _, counts := range []map[string]int{old, now} {
		for stage := range counts {
			all[stage] = true
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(all)) {
		before, after := old[stage], now[stage]
		zones.upgrade.Flows.Added += max(0, after-before)
		zones.upgrade.Flows.Gone += max(0, before-after)
		if before != after {
			zones.upgrade.Follows = append(zones.upgrade.Follows, fmt.Sprintf("%s: stage %s has %s instead of %d", newer.node.name, stage, phrase.Count(after, "flow"), before))
		}
	}
	return nil
}

// stages counts the flows of each stage.
func (f *bridgeFlows) stages(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	for flow, err := range f.all(ctx) {
		if err != nil {
			return nil, err
		}
		rule, _, err := f.rule(flow)
		if err != nil {
			return nil, err
		}
		counts[rule.Stage]++
	}
	return counts, nil
}

// rule returns what a flow was made from; ok is false if that is not known. A clause of the
// conjunctions of several rules has only its stage and its datapath.
func (f *bridgeFlows) rule(flow openflow.Flow) (rule rules.Rule, ok bool, err error) {
	all, err := f.rules(flow)
	switch {
	case err != nil:
		return rule, false, err
	case len(all) == 1:
		return all[0], true, nil
	case len(all) > 1:
		return rules.Rule{Stage: all[0].Stage, Datapath: all[0].Datapath}, true, nil
	}
	rule.Stage = fmt.Sprintf("table %d", flow.Key().Table)
	return rule, false, nil
}

// rules returns what a flow was made from: several rules for a clause of their conjunctions, none
// if that is not known.
func (f *bridgeFlows) rules(flow openflow.Flow) (found []rules.Rule, err error) {
	if f.zone == nil || f.layout == (rules.Layout{}) {
		return nil, nil
	}
	var conjunctions rules.Conjunctions
	actions := flow.Actions()
	if openflow.IsClause(actions) {
		if conjunctions, err = f.conjunctions(); err != nil {
			return nil, err
		}
	}
	for deciding := range conjunctions.Deciding(rules.FlowOf(flow.Key(), f.layout), actions) {
		rule, ok, err := f.zone.rules.Find(deciding)
		if err != nil {
			return nil, err
		}
		known := slices.ContainsFunc(found, func(other rules.Rule) bool { return other.Row == rule.Row && other.UUID == rule.UUID })
		if ok && !known {
			found = append(found, rule)
		}
	}
	return found, nil
}

// hasRow reports whether a database has a row.
func hasRow(x *file.Index, table, uuid string) bool {
	_, ok, err := x.Row(table, uuid, "_uuid")
	return ok && err == nil
}
