package trace

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	if name := w.called(a.LogicalPort); name != a.LogicalPort {
		a.Endpoint = name
	}
	return a
}

// called returns the name by which users know a logical port, or else its own.
func (s *Session) called(port string) string {
	if port == "" {
		return ""
	}
	if e, err := s.names.Find(port, names.Filter{}); err == nil {
		return e.Name
	}
	return port
}

// drop describes where a packet was dropped, and why.
func (w *writer) drop(h *follow.Hop, b follow.Branch) answer.Drop {
	d := answer.Drop{Place: w.place(h.Node, h.Bridge, h.Port), Reason: string(rules.Explicit)}
	switch {
	case b.TooLargeFor != "":
		d.Reason, d.Rule = string(rules.MTU), b.Why
		d.Place = answer.Place{Node: h.Node, Port: b.TooLargeFor}
		if b.Port != nil {
			d.Place = w.place(h.Node, h.Bridge, b.Port)
		}
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
	defer warned(d, b)
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

// warned puts what ovs-vswitchd says of the flow that ended a packet in place of what its table
// alone suggests.
func warned(d *answer.Drop, b follow.Branch) {
	const learns = "suppressing side effects, so learn action ignored"
	for _, line := range slices.Backward(b.Stage.Lines) {
		why, isWarning := strings.CutPrefix(line, ">> ")
		if !isWarning || why == learns {
			continue
		}
		d.Rule, d.Row, d.RuleName = why, "", ""
		if d.Reason == string(rules.MissingFlow) || d.Reason == string(rules.NotBound) {
			d.Reason = string(rules.Failed)
		}
		return
	}
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
	if why.Rule.Foreign {
		why.Rule.Words = n.namedPorts(b.Stage.Bridge, why.Rule.Words)
	}
	d.Reason, d.Rule, d.Row, d.RuleName = string(why.Reason), why.Rule.Words, why.Rule.Cause.Table, why.Rule.Cause.Name
	d.Name = cmp.Or(why.Stage, d.Name)
	tag := b.Packet.Get("dl_vlan")
	if port, mtu, ok := why.Rule.Limit(); ok && why.Reason == rules.MTU {
		d.Rule = fmt.Sprintf("the packet has %d bytes, and gateway_mtu of router port %s is %d", b.Payload(), port, mtu)
		d.Row, d.RuleName = "Logical_Router_Port", port
	}
	switch {
	case tag == "":
	case why.Reason == rules.UnknownVLAN:
		d.Rule = fmt.Sprintf("the packet has the VLAN tag %s, and %s takes no tagged packets", tag, d.Datapath)
	case why.Reason == rules.NoSuchPort && b.Stage.Table == 0 && (b.Stage.Miss || b.Stage.Priority == 0):
		d.Reason, d.Rule = string(rules.UnknownVLAN), fmt.Sprintf("no logical port of this chassis has the VLAN tag %s", tag)
	}
	if d.Datapath == "" && why.Rule.Datapath.Name != "" {
		d.Datapath, d.Pipeline = why.Rule.Datapath.String(), why.Rule.Pipeline
	}
	return nil
}

var inPort = regexp.MustCompile(`\bin_port=([0-9]+)`)

// namedPorts replaces the numbers of ports that a text about a flow of a bridge matches.
func (n *node) namedPorts(bridge, text string) string {
	return inPort.ReplaceAllStringFunc(text, func(match string) string {
		number, _ := strconv.Atoi(inPort.FindStringSubmatch(match)[1])
		p, ok := n.Numbered(bridge, number)
		if !ok {
			return match
		}
		return "in_port=" + cmp.Or(n.called(p.IfaceID), p.Name)
	})
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
	if err := w.explainLacking(&best); err != nil {
		w.err = cmp.Or(w.err, err)
	}
	if best.flow != nil {
		best.Packets = w.nodes[best.Node].packets(*best.flow)
	}
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
