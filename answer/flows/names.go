package flows

import (
	"fmt"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/snapshot/rules"
)

// name returns a flow in names.
func (n *Node) name(bridge *Bridge, flow *record) (Flow, error) {
	named := Flow{Node: n.Name, Bridge: bridge.Name, Table: flow.Table, Priority: flow.Priority, Cookie: flow.cookieText(), Text: flow.Text}
	if flow.Counted {
		packets, bytes := flow.Packets, flow.Bytes
		named.Packets, named.Bytes = &packets, &bytes
	}
	rule, found, err := n.rule(bridge, flow)
	if err != nil {
		return named, err
	}
	named.Stage = n.stageOf(bridge, flow, rule)
	if found {
		named.For, named.Row, named.UUID, named.Candidates = rule.Words, rule.Row, rule.UUID, rule.Candidates
		switch {
		case rule.Cause.Table != "":
			named.Row, named.UUID = rule.Cause.Table, rule.Cause.UUID
		case rule.Pipeline != "":
			named.For = "logical flow: " + phrase.Shorten(rule.Actions, maxActions)
		}
	} else if n.isOVN(bridge) {
		named.For = "no row has its cookie"
	} else if stage, words, ok := n.gateway(bridge, flow); ok {
		named.Stage, named.For = stage, words
	}
	if flow.isClause() {
		named.Clause = true
		named.Packets, named.Bytes = nil, nil // the flow with the conj_id has them
	}
	n.nameMatch(bridge, flow, &named)
	return named, nil
}

// gateway returns the stage of a flow of ovnkube-node, and what it is for.
func (n *Node) gateway(bridge *Bridge, flow *record) (stage, words string, ok bool) {
	if n.rules == nil {
		return "", "", false
	}
	key, err := openflow.ParseKey(flow.Text)
	if err != nil {
		return "", "", false
	}
	_, actions, _ := strings.Cut(flow.Text, " actions=")
	return n.rules.Gateway(rules.GatewayFlow{Key: key, Actions: actions, Port: func(number string) string { return bridge.port(number).name }})
}

// maxActions bounds the actions of a logical flow that no northbound row explains, in
// bytes.
const maxActions = 80

// isOVN reports whether ovn-controller writes the flows of a bridge.
func (n *Node) isOVN(b *Bridge) bool { return b.layout != (rules.Layout{}) }

func (n *Node) rule(bridge *Bridge, flow *record) (rule rules.Rule, found bool, err error) {
	if !n.isOVN(bridge) {
		return rules.Rule{}, false, nil
	}
	key, err := bridge.ruleKey(flow)
	if err != nil {
		return rules.Rule{}, false, err
	}
	return n.rules.Find(key)
}

// stageOf returns the stage of a flow. If no row has its cookie, other flows in its table name the
// stage.
func (n *Node) stageOf(bridge *Bridge, flow *record, rule rules.Rule) string {
	key := n.stageKey(bridge, flow)
	if rule.Pipeline != "" && rule.Stage != "" {
		n.stages[key] = rule.Stage
		return rule.Stage
	}
	if known := n.stages[key]; known != "" && bridge.layout.IsLogical(flow.Table) {
		return known
	}
	return n.tableName(bridge, flow.Table)
}

func (n *Node) tableName(bridge *Bridge, table int) string {
	if n.isOVN(bridge) {
		return bridge.layout.TableName(table)
	}
	return rules.AgentTable(bridge.agent, table)
}

func (n *Node) stageKey(b *Bridge, r *record) stageKey {
	return stageKey{b, r.Table, n.datapath(b, r).Router}
}

// datapath returns the logical datapath that a flow matches.
func (n *Node) datapath(b *Bridge, flow *record) ovn.Datapath {
	if flow.metadata == 0 || !n.isOVN(b) {
		return ovn.Datapath{}
	}
	return n.rules.Datapath(flow.metadata)
}

// stage returns the stage of a flow, and looks for its rule only if no other flow in its
// table was looked at before.
func (n *Node) stage(bridge *Bridge, flow *record) (string, error) {
	if !n.isOVN(bridge) || !bridge.layout.IsLogical(flow.Table) {
		return n.tableName(bridge, flow.Table), nil
	}
	if known := n.stages[n.stageKey(bridge, flow)]; known != "" {
		return known, nil
	}
	rule, _, err := n.rule(bridge, flow)
	return n.stageOf(bridge, flow, rule), err
}

// nameMatch fills the datapath, the ports and the rest of the match.
func (n *Node) nameMatch(bridge *Bridge, flow *record, named *Flow) {
	d := n.datapath(bridge, flow)
	if d.Name != "" {
		named.Datapath = d.String()
	}
	in, out := n.logicalPorts(bridge, flow)
	named.InPort, named.OutPort = text(in), text(out)
	var rest []string
	for token := range openflow.Tokens(flow.Match) {
		name, value, _ := strings.Cut(token, "=")
		switch {
		case name == "metadata" && named.Datapath != "" && !strings.Contains(token, "/"),
			name == "reg14" && named.InPort != "", name == "reg15" && named.OutPort != "":
		case name == "in_port":
			rest = append(rest, "in_port="+bridge.port(value).name)
		default:
			rest = append(rest, token)
		}
	}
	named.Match = strings.Join(rest, ",")
}

// logicalPorts returns the logical ports that a flow matches, nil for none.
func (n *Node) logicalPorts(b *Bridge, flow *record) (in, out *rules.Port) {
	if !n.isOVN(b) || flow.metadata == 0 {
		return nil, nil
	}
	find := func(key uint64) *rules.Port {
		if p, ok := n.rules.Port(flow.metadata, key); ok && key != 0 {
			return &p
		}
		return nil
	}
	return find(flow.Number("reg14")), find(flow.Number("reg15"))
}

func text(port *rules.Port) string {
	if port == nil {
		return ""
	}
	return port.String()
}

// Where returns the datapath, the ports and the rest of the match as one text.
func (f Flow) Where() string {
	var parts []string
	for _, p := range []struct{ name, value string }{{"inport", f.InPort}, {"outport", f.OutPort}} {
		if p.value != "" {
			parts = append(parts, fmt.Sprintf("%s=%q", p.name, p.value))
		}
	}
	if f.Match != "" {
		parts = append(parts, f.Match)
	}
	text := strings.Join(parts, ",")
	switch {
	case text == "" && f.Datapath == "":
		return "any packet"
	case text == "":
		return f.Datapath
	case f.Datapath == "":
		return text
	}
	return f.Datapath + ": " + text
}
