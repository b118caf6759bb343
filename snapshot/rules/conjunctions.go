package rules

import (
	"io"
	"iter"
	"math"
	"strings"

	"ovs-offline/pkg/openflow"
)

// Conjunctions are the flows of a bridge that match conj_id, by its value, without a layout. As
// ovn-controller writes them, they alone have the cookie and the counters of a conjunction.
type Conjunctions map[uint32]Flow

// ReadConjunctions returns the flows of a dump that match conj_id.
func ReadConjunctions(dump io.Reader) Conjunctions {
	found := Conjunctions{}
	for flow, problem := range openflow.FlowsIn(dump, func(line string) bool { return strings.Contains(line, "conj_id=") }) {
		if problem == nil { // whoever reads all flows reports problems
			found.Add(flow.Key())
		}
	}
	return found
}

// Add adds a flow if it matches conj_id.
func (c Conjunctions) Add(k openflow.Key) {
	if id := k.Number("conj_id"); id != 0 && id <= math.MaxUint32 {
		c[uint32(id)] = FlowOf(k, Layout{})
	}
}

// Deciding yields the flows whose rules a flow with certain actions is made from: for a clause
// without a cookie, the flows of its known conjunctions, else the flow itself.
func (c Conjunctions) Deciding(f Flow, actions string) iter.Seq[Flow] {
	return func(yield func(Flow) bool) {
		if f.Cookie != 0 || !openflow.IsClause(actions) {
			yield(f)
			return
		}
		known := false
		for id := range openflow.Clauses(actions) {
			if found, ok := c[id]; ok {
				known = true
				if found.Layout = f.Layout; !yield(found) {
					return
				}
			}
		}
		if !known {
			yield(f)
		}
	}
}

// Decide returns the first flow that Deciding yields.
func (c Conjunctions) Decide(f Flow, actions string) Flow {
	for first := range c.Deciding(f, actions) {
		return first
	}
	return f
}
