package flows

import (
	"ovs-offline/snapshot/rules"
)

// conjunctions returns the flows of a bridge that match conj_id. It reads the dump once.
func (b *Bridge) conjunctions() (rules.Conjunctions, error) {
	if b.conjoined != nil {
		return b.conjoined, nil
	}
	file, err := b.flows()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b.conjoined = rules.ReadConjunctions(file)
	return b.conjoined, nil
}

// key identifies a flow for its rule.
func (b *Bridge) key(r *record) rules.Flow {
	return rules.Flow{Cookie: r.Cookie, Table: r.Table, Priority: r.Priority, Metadata: r.metadata, Layout: b.layout}
}

// ruleKey identifies the flow whose rule a flow is made from: the flow itself, or for a clause, the
// flow of its first conjunction. The layout need not be known yet.
func (b *Bridge) ruleKey(flow *record) (rules.Flow, error) {
	if !flow.isClause() || flow.Cookie != 0 {
		return b.key(flow), nil
	}
	all, err := b.conjunctions()
	return all.Decide(b.key(flow), flow.actions), err
}
