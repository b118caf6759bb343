package trace

import (
	"cmp"
	"slices"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/host"
	"ovs-offline/trace/names"
	"ovs-offline/trace/rules"
)

func (w *writer) place(node, bridge string, p *host.Port) answer.Place {
	a := answer.Place{Node: node, Bridge: bridge}
	if p != nil {
		a.Bridge, a.Port, a.LogicalPort = p.Bridge, p.Name, p.IfaceID
	}
	if a.LogicalPort != "" {
		if e, err := w.names.Find(a.LogicalPort, names.Filter{}); err == nil && e.Name != a.LogicalPort {
			a.Endpoint = e.Name
		}
	}
	return a
}

// drop describes where a packet was dropped, and why.
func (w *writer) drop(h *follow.Hop, b follow.Branch) answer.Drop {
	d := answer.Drop{Place: w.place(h.Node, h.Bridge, h.Port), Reason: string(rules.Explicit)}
	switch {
	case b.Port != nil: // a packet that is too large for the port's device
		d.Place, d.Reason = w.place(h.Node, h.Bridge, b.Port), string(rules.MTU)
		return d
	case b.Tunnel != nil:
		d.Reason = string(rules.NoSuchPort)
		return d
	case b.Stage == nil:
		return d
	}
	if err := w.nodes[h.Node].explain(&d, h, b); err != nil {
		w.err = cmp.Or(w.err, err)
	}
	return d
}

// explain adds the stage where a packet was dropped, the reason and the rule.
func (n *node) explain(d *answer.Drop, h *follow.Hop, b follow.Branch) error {
	stage, _, err := n.stage(*b.Stage)
	if err != nil {
		return err
	}
	d.Stage, d.Place.Bridge = stage, b.Stage.Bridge
	if failure := cmp.Or(b.Failure, h.Pass.Failed()); failure != "" {
		d.Reason, d.Rule, d.Row = string(rules.Failed), failure, ""
		return nil
	}
	p, err := n.pipelines()
	if err != nil {
		return err
	}
	if layout, ovn := p.layouts[b.Stage.Bridge]; ovn {
		return n.explainOVN(d, h, b, layout)
	}
	switch {
	case p.agents[b.Stage.Bridge] == rules.AgentIntegration:
		d.Reason = string(rules.AgentReason(tablesOf(h, b.Stage.Bridge)...))
	case b.Stage.Miss:
		d.Reason = string(rules.MissingFlow)
	}
	return nil
}

// explainOVN adds the reason and the rule of a drop on OVN's integration bridge.
func (n *node) explainOVN(d *answer.Drop, h *follow.Hop, b follow.Branch, layout rules.Layout) error {
	end, err := n.zone.rules.End(h.Pass, b.Stage, b.Stage.Bridge, layout)
	if err != nil {
		return err
	}
	why, err := n.zone.rules.Drop(end)
	if err != nil {
		return err
	}
	d.Reason, d.Rule, d.Row, d.RuleName = string(why.Reason), why.Rule.Words, why.Rule.Cause.Table, why.Rule.Cause.Name
	d.Name = cmp.Or(why.Stage, d.Name)
	if d.Datapath == "" && why.Rule.Datapath.Name != "" {
		d.Datapath, d.Pipeline = why.Rule.Datapath.String(), why.Rule.Pipeline
	}
	return nil
}

// tablesOf returns the tables of a bridge that a packet went through in a pass.
func tablesOf(h *follow.Hop, bridge string) []int {
	var tables []int
	for _, s := range h.Pass.Stages {
		if s.Bridge == bridge {
			tables = append(tables, s.Table)
		}
	}
	return tables
}

// deciding returns the drop that explains best why the packet did not arrive: the one that
// is furthest on the way, and of several one in a logical network, or else of no flooded
// copy.
func (w *writer) deciding() *answer.Drop {
	if len(w.drops) == 0 {
		return nil
	}
	best := slices.MaxFunc(w.drops, func(a, b drop) int {
		return cmp.Or(a.depth-b.depth, a.weight()-b.weight())
	})
	return &best.Drop
}

// weight is larger for a drop that explains more than another one as far on the way.
func (d drop) weight() int {
	weight := 0
	if d.Datapath != "" {
		weight += 2
	}
	if !d.flooded {
		weight++
	}
	return weight
}
