package symbolic

import (
	"ovs-offline/internal/bdd"
)

// lookup calls use for each flow of a table that some packets match, with these, and returns the packets that match none.
func (m *Machine) lookup(at Place, table int, p *packets, use func(f *flow, matched bdd.Set)) (rest bdd.Set) {
	tables := m.tables[at]
	rest = p.set
	list := tables.candidates(table, p)
	take := func(f *flow, match bdd.Set) {
		if matched := m.space.And(rest, match); matched != bdd.None {
			rest = m.space.Without(rest, matched)
			use(f, matched)
		}
	}
	for begin, end := 0, 0; begin < len(list) && rest != bdd.None && m.err() == nil; begin = end {
		for end = begin; end < len(list) && list[end].priority == list[begin].priority; end++ {
			if f := list[end]; len(f.clauses) == 0 && !f.isOfID {
				take(f, m.match(p, f.match))
			}
		}
		m.conjunctions(p, list, list[begin:end], take)
	}
	return rest
}

// conjunctions takes the flows of the conjunctions that packets meet whose clauses have one priority. A flow without clauses of the same priority
// comes before them (classifier_lookup__ in lib/classifier.c).
func (m *Machine) conjunctions(p *packets, list, clauses []*flow, take func(f *flow, match bdd.Set)) {
	met := map[uint32][]bdd.Set{} // by id, the packets that meet each dimension
	var order []uint32
	for _, f := range clauses {
		for _, c := range f.clauses {
			if met[c.id] == nil {
				met[c.id] = make([]bdd.Set, c.dimensions)
				order = append(order, c.id)
			}
			if c.dimension >= 1 && c.dimension <= len(met[c.id]) {
				of := &met[c.id][c.dimension-1]
				*of = m.space.Or(*of, m.match(p, f.match))
			}
		}
	}
	for _, id := range order {
		all := p.set
		for _, dimension := range met[id] {
			all = m.space.And(all, dimension)
		}
		if all == bdd.None {
			continue
		}
		for _, f := range list {
			if f.isOfID && f.ofID == id {
				take(f, m.space.And(all, m.match(p, f.match)))
			}
		}
	}
}

// match returns the packets that have bits with certain values. Those that are bits of the header itself are joined without a search.
func (m *Machine) match(p *packets, match []literal) bdd.Set {
	for _, l := range match {
		if bit := p.bits[l.at]; bit <= bdd.All && (bit == bdd.All) != l.value {
			return bdd.None
		}
	}
	headers := make([]bdd.Literal, 0, len(match))
	matched := bdd.All
	for _, l := range match {
		switch bit := p.bits[l.at]; {
		case bit <= bdd.All:
		case l.at < m.size() && bit == m.space.Bit(l.at):
			headers = append(headers, bdd.Literal{Bit: l.at, Value: l.value})
		case l.value:
			matched = m.space.And(matched, bit)
		default:
			matched = m.space.Without(matched, bit)
		}
	}
	if len(headers) > 0 {
		matched = m.space.And(matched, m.space.Cube(headers))
	}
	return matched
}
