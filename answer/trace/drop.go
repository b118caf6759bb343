package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/snapshot/names"
	"ovs-offline/snapshot/rules"
)

// drop is a drop with the flow that decided, nil for none, and with what decides how much it
// explains.
type drop struct {
	answer.Drop
	flow   *pass.Stage
	pass   *pass.Pass // of the hop where it ended
	packet flow.Packet
	registers
	depth   int
	flooded bool
	holder  bool // by the databases, its node has the packet's MAC address
}

// drops are the drops of a packet and its copies.
type drops struct {
	session *Session
	list    []drop
	// elsewhere is how far the packet got that came out at another endpoint than the one asked for, 0 if none did.
	elsewhere int
}

// describe returns where a packet was dropped, and why.
func (d *drops) describe(hop *follow.Hop, branch follow.Branch) (answer.Drop, error) {
	place := d.session.names.place
	found := answer.Drop{Location: place(hop.Node, hop.Bridge, hop.Port), Reason: string(rules.Explicit)}
	switch {
	case branch.Loss != "":
		return d.session.nodes[hop.Node].explainLoss(found, branch), nil
	case branch.TooLargeFor != "":
		found.Reason, found.Rule = string(rules.MTU), branch.Why
		found.Location = answer.Location{Node: hop.Node, Port: branch.TooLargeFor}
		if branch.Port != nil {
			found.Location = place(hop.Node, hop.Bridge, branch.Port)
		}
		return found, nil
	case branch.Tunnel != nil:
		found.Reason = string(rules.NoSuchPort)
		return found, nil
	case branch.Stage == nil:
		return found, nil
	}
	err := d.session.nodes[hop.Node].explain(&found, hop, branch)
	d.explainFirstTable(&found, hop, branch)
	return found, err
}

// explainLoss adds why a kernel lost a packet.
func (n *node) explainLoss(found answer.Drop, branch follow.Branch) answer.Drop {
	if branch.Stage != nil {
		found.Stage = n.describeRule(*branch.Stage)
	}
	reason, known := map[follow.Loss]rules.Reason{follow.Unrouted: rules.NoRoute, follow.Expired: rules.TTL, follow.TooLarge: rules.MTU,
		follow.NotTaken: rules.NotForDevice, follow.NoAddress: rules.Unresolved}[branch.Loss]
	switch {
	case known:
		found.Reason, found.Rule = string(reason), branch.Why
	case branch.Loss == follow.ByRule && branch.Stage != nil:
		found.Reason = string(rules.NetfilterReason(branch.Stage.Chain))
		found.Rule = cmp.Or(found.Rule, branch.Stage.Flow, "the policy of chain "+branch.Stage.Chain)
	default:
		found.Rule = branch.Why
	}
	return found
}

// explainFirstTable turns a drop in the first table of the integration bridge into one by a
// missing flow, if the port by which the packet came is bound to this node.
func (d *drops) explainFirstTable(found *answer.Drop, hop *follow.Hop, branch follow.Branch) {
	reason, tag := rules.Reason(found.Reason), branch.Packet.Get("dl_vlan")
	if reason != rules.NoSuchPort && reason != rules.UnknownVLAN || branch.Stage.Table != 0 || branch.Stage.Bridge != hop.Bridge || hop.Port == nil || hop.Port.IfaceID == "" {
		return
	}
	enters := func(endpoint names.Endpoint) bool {
		if tag != "" {
			return endpoint.Parent == hop.Port.IfaceID && fmt.Sprint(endpoint.Tag) == tag
		}
		return endpoint.LogicalPort == hop.Port.IfaceID
	}
	for _, endpoint := range d.session.names.All() {
		if endpoint.Node == hop.Node && enters(endpoint) {
			found.Reason, found.Rule = string(rules.MissingFlow), fmt.Sprintf("%s is bound to this node, which lacks the flow by which its packets enter: drift says which", endpoint.Name)
			return
		}
	}
}

// explain adds the stage where a packet was dropped, the reason and the rule.
func (n *node) explain(found *answer.Drop, hop *follow.Hop, branch follow.Branch) error {
	stage, _, err := n.describeStage(*branch.Stage)
	if err != nil {
		return err
	}
	found.Stage, found.Location.Bridge = stage, branch.Stage.Bridge
	if failure := cmp.Or(branch.Failure, hop.Pass.Failed()); failure != "" {
		found.Reason, found.Rule, found.Row = string(rules.Failed), failure, ""
		return nil
	}
	tables, err := n.pipelines()
	if err != nil {
		return err
	}
	defer explainByWarning(found, hop, branch)
	explainByGroup(found, *branch.Stage)
	if layout, ovn := tables.layouts[branch.Stage.Bridge]; ovn {
		return n.explainOVN(found, hop, branch, layout)
	}
	switch {
	case tables.agents[branch.Stage.Bridge] == rules.AgentIntegration:
		found.Reason = string(rules.AgentReason(tablesOf(hop, branch.Stage.Bridge)...))
	case branch.Stage.Miss:
		found.Reason = string(rules.MissingFlow)
	}
	return nil
}

// explainByWarning puts the warning of ovs-vswitchd about the flow that ended a packet in place of
// what the flow's table alone suggests.
func explainByWarning(found *answer.Drop, hop *follow.Hop, branch follow.Branch) {
	unexplained := found.Reason == string(rules.MissingFlow) || found.Reason == string(rules.NotBound)
	lines := branch.Stage.Lines
	if unexplained && hop.Pass.SkippedBefore(*branch.Stage) {
		lines = []string{">> " + pass.OutputSkipped}
	}
	for _, line := range slices.Backward(lines) {
		why, isWarning := strings.CutPrefix(line, ">> ")
		if !isWarning || why == pass.LearnIgnored {
			continue
		}
		found.Rule, found.Row, found.RuleName = why, "", ""
		switch {
		case why == pass.OutputSkipped:
			found.Reason = string(rules.InputPort)
		case strings.HasPrefix(why, "Nonexistent output port"):
			found.Reason = string(rules.NoSuchPort)
		case unexplained:
			found.Reason = string(rules.Failed)
		}
		return
	}
}

// explainByGroup names the group that the flow which ended a packet sent it to: no bucket of it sent the packet on.
func explainByGroup(found *answer.Drop, stage pass.Stage) {
	for _, line := range stage.Lines {
		if id, isGroup := strings.CutPrefix(line, "group:"); isGroup && found.Rule == "" {
			found.Rule = fmt.Sprintf("group %s: none of the buckets that the packet took sends it anywhere", id)
		}
	}
}

// explainOVN adds the reason and the rule of a drop on OVN's integration bridge.
func (n *node) explainOVN(found *answer.Drop, hop *follow.Hop, branch follow.Branch, layout rules.Layout) error {
	end, err := n.zone.rules.End(hop.Pass, branch.Stage, branch.Stage.Bridge, layout)
	if err != nil {
		return err
	}
	why, err := n.zone.rules.Drop(end)
	if err != nil {
		return err
	}
	if why.Reason == rules.StaleFlow && !n.isStale(why.Rule) {
		why.Reason = rules.Explicit
	}
	if why.Rule.Foreign {
		why.Rule.Words = n.namePorts(branch.Stage.Bridge, why.Rule.Words)
	}
	found.Reason, found.Rule, found.Row, found.RuleName = string(why.Reason), why.Rule.Words, why.Rule.Cause.Table, why.Rule.Cause.Name
	found.Name = cmp.Or(why.Stage, found.Name)
	tag := branch.Packet.Get("dl_vlan")
	if port, mtu, ok := why.Rule.Limit(); ok && why.Reason == rules.MTU {
		found.Rule = fmt.Sprintf("the packet has %d bytes, and gateway_mtu of router port %s is %d", branch.Payload(), port, mtu)
		found.Row, found.RuleName = "Logical_Router_Port", port
	}
	switch {
	case tag == "":
	case why.Reason == rules.UnknownVLAN:
		found.Rule = fmt.Sprintf("the packet has the VLAN tag %s, and %s takes no tagged packets", tag, found.Datapath)
	case why.Reason == rules.NoSuchPort && branch.Stage.Table == 0 && (branch.Stage.Miss || branch.Stage.Priority == 0):
		found.Reason, found.Rule = string(rules.UnknownVLAN), fmt.Sprintf("no logical port of this chassis has the VLAN tag %s", tag)
	}
	if found.Datapath == "" && why.Rule.Datapath.Name != "" {
		found.Datapath, found.Pipeline = why.Rule.Datapath.String(), why.Rule.Pipeline
	}
	return nil
}

var inPort = lazyregexp.New(`\bin_port=([0-9]+)`)

// namePorts replaces the numbers of ports that a text about a flow of a bridge matches.
func (n *node) namePorts(bridge, text string) string {
	return inPort.ReplaceAllStringFunc(text, func(match string) string {
		number, _ := strconv.Atoi(inPort.FindStringSubmatch(match)[1])
		port, ok := n.Numbered(bridge, number)
		if !ok {
			return match
		}
		return "in_port=" + cmp.Or(n.nameOf(port.IfaceID), port.Name)
	})
}

// tablesOf returns the tables of a bridge that a packet went through in a pass.
func tablesOf(hop *follow.Hop, bridge string) []int {
	var tables []int
	for _, stage := range hop.Pass.Stages {
		if stage.Bridge == bridge {
			tables = append(tables, stage.Table)
		}
	}
	return tables
}

// deciding returns the drop that explains best why the packet did not arrive, nil for none: the
// one that is furthest on the way, and of several one on the node that has the MAC address, one in a logical
// network, or else one of no flooded copy. None explains a packet that got further, and came out elsewhere.
func (d *drops) deciding() (*answer.Drop, error) {
	if len(d.list) == 0 {
		return nil, nil
	}
	best := slices.MaxFunc(d.list, func(a, b drop) int {
		return cmp.Or(a.depth-b.depth, a.weight()-b.weight())
	})
	if best.depth < d.elsewhere {
		return nil, nil
	}
	n := d.session.nodes[best.Node]
	err := n.explainLacking(&best)
	if best.flow != nil && !d.session.options.Computed {
		best.Packets = n.countPackets(*best.flow)
	}
	return &best.Drop, err
}

// weight is larger for a drop that explains more than another one as far on the way.
func (d drop) weight() int {
	weight := 0
	if d.holder {
		weight += 4
	}
	if d.Datapath != "" {
		weight += 2
	}
	if !d.flooded {
		weight++
	}
	return weight
}
