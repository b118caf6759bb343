package flows

import (
	"os"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/trace/rules"
)

// A flow with the action conjunction(ID, K/N) is a clause of a conjunction
// (ovs-fields(7), "Conjunctive Match Fields"). It has neither counters nor, as
// ovn-controller writes it, a cookie of its own: the flow that matches conj_id=ID has
// both.

// isClause reports whether a flow is a clause of conjunctions.
func (r *record) isClause() bool { return strings.Contains(r.Text, " actions=conjunction(") }

// conjunction returns the id of the first conjunction that a clause is of.
func (r *record) conjunction() (id uint32, ok bool) {
	_, text, found := strings.Cut(r.Text, " actions=conjunction(")
	number, _, _ := strings.Cut(text, ",")
	n, err := strconv.ParseUint(number, 0, 32)
	return uint32(n), found && err == nil
}

// conjunctions returns the flows that match conj_id, by its value. It reads the dump once.
func (b *Bridge) conjunctions() (map[uint32]rules.Flow, error) {
	if b.conjoined != nil {
		return b.conjoined, nil
	}
	f, err := os.Open(b.dump)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b.conjoined = map[uint32]rules.Flow{}
	for flow, problem := range openflow.FlowsIn(f, func(line string) bool { return strings.Contains(line, "conj_id=") }) {
		r, ok := parse(flow)
		if problem != nil || !ok {
			continue // each counts it
		}
		for _, field := range split(r.fields) {
			if value, found := strings.CutPrefix(field, "conj_id="); found {
				if id, err := strconv.ParseUint(value, 0, 32); err == nil {
					b.conjoined[uint32(id)] = b.key(&r)
				}
			}
		}
	}
	return b.conjoined, nil
}

// key identifies a flow for its rule.
func (b *Bridge) key(r *record) rules.Flow {
	return rules.Flow{Cookie: r.cookie, Table: r.table, Priority: r.priority, Metadata: r.metadata, Layout: b.layout}
}

// ruleKey identifies the flow whose rule a flow is made from: its own, or of a clause that
// of its conjunction.
func (b *Bridge) ruleKey(r *record) (rules.Flow, error) {
	own := b.key(r)
	id, clause := r.conjunction()
	if !clause || r.cookie != 0 {
		return own, nil
	}
	all, err := b.conjunctions()
	if found, ok := all[id]; ok {
		return found, err
	}
	return own, err
}
