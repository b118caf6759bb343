package trace

import (
	"cmp"
	"slices"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/host"
	"ovs-offline/trace/names"
	"ovs-offline/trace/pass"
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
	n := w.nodes[h.Node]
	stage, _, err := n.stage(*b.Stage)
	if err != nil {
		w.err = cmp.Or(w.err, err)
		return d
	}
	d.Stage, d.Place.Bridge = stage, b.Stage.Bridge
	p, err := n.pipelines()
	if err != nil {
		w.err = cmp.Or(w.err, err)
		return d
	}
	layout, ovn := p.layouts[b.Stage.Bridge]
	if !ovn {
		d.Reason = string(rules.Explicit)
		if p.agents[b.Stage.Bridge] == rules.AgentIntegration {
			d.Reason = string(rules.AgentReason(decidingTable(h, b)))
		} else if b.Stage.Miss {
			d.Reason = string(rules.MissingFlow)
		}
		return d
	}
	end, err := n.zone.rules.End(h.Pass, b.Stage, b.Stage.Bridge, layout)
	if err != nil {
		w.err = cmp.Or(w.err, err)
		return d
	}
	why, err := n.zone.rules.Drop(end)
	if err != nil {
		w.err = cmp.Or(w.err, err)
		return d
	}
	d.Reason, d.Rule, d.Row = string(why.Reason), why.Rule.Words, why.Rule.Cause.Table
	d.Name = cmp.Or(why.Stage, d.Name)
	if d.Datapath == "" && why.Rule.Datapath.Name != "" {
		d.Datapath, d.Pipeline = why.Rule.Datapath.String(), why.Rule.Pipeline
	}
	return d
}

// notBound returns the reason for a packet that ends where it would have been sent to its
// logical port: the port is not bound here, or the node has its interface and lacks the
// flow for it.
func (n *node) notBound(p *pass.Pass) (rules.Reason, error) {
	for _, s := range slices.Backward(p.Stages) {
		match, err := flow.Parse(s.Flow)
		if err != nil {
			continue
		}
		key, hasPort := match.Number("reg15")
		datapath, hasDatapath := match.Number("metadata")
		if !hasPort || !hasDatapath {
			continue
		}
		name, ok, err := n.zone.rules.Port(datapath, key)
		if err != nil || !ok {
			return rules.NotBound, err
		}
		if _, attached := n.Attached(name); attached {
			return rules.MissingFlow, nil
		}
		break
	}
	return rules.NotBound, nil
}

// decidingTable returns the table that decided a drop on the integration bridge of
// neutron's agent: one before the table that only drops.
func decidingTable(h *follow.Hop, b follow.Branch) int {
	for _, s := range slices.Backward(h.Pass.Stages) {
		if s.Bridge == b.Stage.Bridge && s.Table != rules.AgentDropped {
			return s.Table
		}
	}
	return b.Stage.Table
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
