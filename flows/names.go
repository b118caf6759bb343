package flows

import (
	"fmt"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/trace/rules"
)

// name returns a flow in names.
func (n *Node) name(b *Bridge, r *record) (Flow, error) {
	f := Flow{Node: n.Name, Bridge: b.Name, Table: r.table, Priority: r.priority, Cookie: r.cookieText(), Text: r.Text}
	if r.Counted {
		packets, bytes := r.Packets, r.Bytes
		f.Packets, f.Bytes = &packets, &bytes
	}
	rule, found, err := n.rule(b, r)
	if err != nil {
		return f, err
	}
	f.Stage = n.stageOf(b, r, rule)
	if found {
		f.For, f.Row, f.UUID, f.Candidates = rule.Words, rule.Row, rule.UUID, rule.Candidates
		switch {
		case rule.Cause.Table != "":
			f.Row, f.UUID = rule.Cause.Table, rule.Cause.UUID
		case rule.Pipeline != "":
			f.For = "logical flow: " + openflow.Shorten(rule.Actions, maxActions)
		}
	} else if n.isOVN(b) {
		f.For = "no row has its cookie"
	}
	if r.isClause {
		f.Clause = true
		f.Packets, f.Bytes = nil, nil // they are those of the flow with the conj_id
	}
	n.nameMatch(b, r, &f)
	return f, nil
}

// maxActions bounds the actions of a logical flow that no northbound row explains, in
// bytes.
const maxActions = 80

// isOVN reports whether ovn-controller writes the flows of a bridge.
func (n *Node) isOVN(b *Bridge) bool { return b.layout != (rules.Layout{}) }

func (n *Node) rule(b *Bridge, r *record) (rule rules.Rule, found bool, err error) {
	if !n.isOVN(b) {
		return rules.Rule{}, false, nil
	}
	key, err := b.ruleKey(r)
	if err != nil {
		return rules.Rule{}, false, err
	}
	return n.rules.Find(key)
}

// stageOf returns the stage of a flow, also of one whose cookie no row has: that of other
// flows in its table.
func (n *Node) stageOf(b *Bridge, r *record, rule rules.Rule) string {
	key := n.stageKey(b, r)
	if rule.Pipeline != "" && rule.Stage != "" {
		n.stages[key] = rule.Stage
		return rule.Stage
	}
	if known := n.stages[key]; known != "" && b.layout.IsLogical(r.table) {
		return known
	}
	return n.tableName(b, r.table)
}

func (n *Node) tableName(b *Bridge, table int) string {
	if n.isOVN(b) {
		return b.layout.TableName(table)
	}
	return rules.AgentTable(b.agent, table)
}

func (n *Node) stageKey(b *Bridge, r *record) stageKey {
	return stageKey{b, r.table, n.datapath(b, r).Router}
}

// datapath returns the logical datapath that a flow matches.
func (n *Node) datapath(b *Bridge, r *record) rules.Datapath {
	if r.metadata == 0 || !n.isOVN(b) {
		return rules.Datapath{}
	}
	return n.rules.Datapath(r.metadata)
}

// stage returns the stage of a flow, and looks for its rule only if no other flow in its
// table was looked at before.
func (n *Node) stage(b *Bridge, r *record) (string, error) {
	if !n.isOVN(b) || !b.layout.IsLogical(r.table) {
		return n.tableName(b, r.table), nil
	}
	if known := n.stages[n.stageKey(b, r)]; known != "" {
		return known, nil
	}
	rule, _, err := n.rule(b, r)
	return n.stageOf(b, r, rule), err
}

// nameMatch fills the datapath, the ports and the rest of the match.
func (n *Node) nameMatch(b *Bridge, r *record, f *Flow) {
	d := n.datapath(b, r)
	if d.Name != "" {
		f.Datapath = d.String()
	}
	in, out := n.logicalPorts(b, r)
	f.InPort, f.OutPort = text(in), text(out)
	var rest []string
	for match := r.fields; match != ""; {
		end := openflow.IndexSeparator(match, true)
		token := match[:end]
		match = match[min(end+1, len(match)):]
		name, _, _ := strings.Cut(token, "=")
		switch {
		case token == "", name == "metadata" && f.Datapath != "" && !strings.Contains(token, "/"),
			name == "reg14" && f.InPort != "", name == "reg15" && f.OutPort != "":
		case name == "in_port":
			rest = append(rest, "in_port="+b.port(r.inPort).name)
		default:
			rest = append(rest, token)
		}
	}
	f.Match = strings.Join(rest, ",")
}

// logicalPorts returns the logical ports that a flow matches, nil for none.
func (n *Node) logicalPorts(b *Bridge, r *record) (in, out *rules.Port) {
	if !n.isOVN(b) || r.metadata == 0 {
		return nil, nil
	}
	find := func(key uint64) *rules.Port {
		if p, ok := n.rules.Port(r.metadata, key); ok && key != 0 {
			return &p
		}
		return nil
	}
	return find(r.in), find(r.out)
}

func text(p *rules.Port) string {
	if p == nil {
		return ""
	}
	return p.String()
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
