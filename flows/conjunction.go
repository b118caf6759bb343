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

// readActions finds out whether a flow is a clause of conjunctions, and of which one first.
func (r *record) readActions(actions string) {
	text, found := strings.CutPrefix(actions, "conjunction(")
	if r.isClause = found; found {
		number, _, _ := strings.Cut(text, ",")
		id, _ := strconv.ParseUint(number, 0, 32) // 0, which ovn-controller does not use, if it can't be read
		r.conjunction = uint32(id)
	}
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
					b.conjoined[uint32(id)] = r.key()
				}
			}
		}
	}
	return b.conjoined, nil
}

// key identifies a flow for its rule, but for the layout.
func (r *record) key() rules.Flow {
	return rules.Flow{Cookie: r.cookie, Table: r.table, Priority: r.priority, Metadata: r.metadata}
}

// key identifies a flow for its rule.
func (b *Bridge) key(r *record) rules.Flow {
	key := r.key()
	key.Layout = b.layout
	return key
}

// ruleKey identifies the flow whose rule a flow is made from: its own, or of a clause that
// of its conjunction.
func (b *Bridge) ruleKey(r *record) (rules.Flow, error) {
	key, err := b.ruleOf(r)
	key.Layout = b.layout
	return key, err
}

// ruleOf returns ruleKey without the layout, which need not be known yet.
func (b *Bridge) ruleOf(r *record) (rules.Flow, error) {
	if !r.isClause || r.cookie != 0 {
		return r.key(), nil
	}
	all, err := b.conjunctions()
	if found, ok := all[r.conjunction]; ok {
		return found, err
	}
	return r.key(), err
}
