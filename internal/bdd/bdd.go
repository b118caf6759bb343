// Package bdd holds sets of bit strings as reduced ordered binary decision diagrams (R. E. Bryant, "Graph-Based
// Algorithms for Boolean Function Manipulation", IEEE Transactions on Computers, 1986).
package bdd

import (
	"errors"
	"maps"
	"slices"
)

// Set is a set of bit strings of one Space, or which is the same, a Boolean function of bits. Two sets are equal if, and only if,
// they are the same number.
type Set int32

// The sets of every Space.
const (
	None Set = 0 // no bit string
	All  Set = 1 // every bit string
)

// ErrTooLarge is the error of a Space that would need more memory than it may use.
var ErrTooLarge = errors.New("the sets of packets are too large")

// node is a decision: by a bit, between the sets of the strings that go on without it and with it.
type node struct {
	bit       int32
	low, high Set
	next      int32 // the next node of the same bucket, 0 for none
}

// entry is a remembered result of an operation.
type entry struct {
	op      operation
	a, b, c Set
	result  Set
}

type operation int32

const (
	opNone operation = iota
	opAnd
	opOr
	opWithout
	opChoose
)

// Space holds sets of bit strings of one length. It is not for concurrent use.
type Space struct {
	length  int32
	nodes   []node
	buckets []int32
	results []entry
	most    int
	full    bool
}

// New returns a space of bit strings of a length, whose sets may have so many nodes (some 30 bytes each). Bits that decide together
// should be close to each other.
func New(length, mostNodes int) *Space {
	s := &Space{length: int32(length), most: mostNodes, buckets: make([]int32, 1<<12), results: make([]entry, 1<<16)}
	end := node{bit: int32(length)}
	s.nodes = append(s.nodes, end, end)
	return s
}

// Err returns ErrTooLarge if a set needed more nodes than the space may have. All sets that were computed since then are worthless.
func (s *Space) Err() error {
	if s.full {
		return ErrTooLarge
	}
	return nil
}

// Size returns the number of nodes of all sets.
func (s *Space) Size() int { return len(s.nodes) }

func hash(a, b, c, d uint32) uint32 {
	h := uint64(a)*0x9e3779b97f4a7c15 ^ uint64(b)*0xc2b2ae3d27d4eb4f ^ uint64(c)*0x165667b19e3779f9 ^ uint64(d)*0x27d4eb2f165667c5
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	return uint32(h >> 32)
}

// decide returns the set of the strings that are in low without a bit, and in high with it. Both depend on later bits alone.
func (s *Space) decide(bit int32, low, high Set) Set {
	if low == high {
		return low
	}
	at := hash(uint32(bit), uint32(low), uint32(high), 0) & uint32(len(s.buckets)-1)
	for i := s.buckets[at]; i != 0; i = s.nodes[i].next {
		if n := &s.nodes[i]; n.bit == bit && n.low == low && n.high == high {
			return Set(i)
		}
	}
	if len(s.nodes) >= s.most {
		s.full = true
		return None
	}
	if len(s.nodes) > 2*len(s.buckets) {
		s.grow()
		at = hash(uint32(bit), uint32(low), uint32(high), 0) & uint32(len(s.buckets)-1)
	}
	made := int32(len(s.nodes))
	s.nodes = append(s.nodes, node{bit, low, high, s.buckets[at]})
	s.buckets[at] = made
	return Set(made)
}

// grow makes the tables of nodes and results larger.
func (s *Space) grow() {
	s.buckets = make([]int32, 4*len(s.buckets))
	for i := range s.nodes {
		if i < 2 {
			continue
		}
		n := &s.nodes[i]
		at := hash(uint32(n.bit), uint32(n.low), uint32(n.high), 0) & uint32(len(s.buckets)-1)
		n.next, s.buckets[at] = s.buckets[at], int32(i)
	}
	const mostResults = 1 << 22
	if larger := 4 * len(s.results); larger <= mostResults {
		before := s.results
		s.results = make([]entry, larger)
		for _, e := range before {
			if e.op != opNone {
				*s.slot(e.op, e.a, e.b, e.c) = e
			}
		}
	}
}

func (s *Space) slot(op operation, a, b, c Set) *entry {
	return &s.results[hash(uint32(op), uint32(a), uint32(b), uint32(c))&uint32(len(s.results)-1)]
}

// Bit returns the strings in which a bit is set.
func (s *Space) Bit(bit int) Set { return s.decide(int32(bit), None, All) }

// Literal is a bit with the value that it has to have.
type Literal struct {
	Bit   int
	Value bool
}

// Cube returns the strings that have all of the literals, which are in the order of their bits and have no bit twice.
func (s *Space) Cube(literals []Literal) Set {
	made := All
	for i := len(literals) - 1; i >= 0; i-- {
		if l := literals[i]; l.Value {
			made = s.decide(int32(l.Bit), None, made)
		} else {
			made = s.decide(int32(l.Bit), made, None)
		}
	}
	return made
}

// And returns the strings that are in both sets.
func (s *Space) And(a, b Set) Set {
	switch {
	case a == b || b == All:
		return a
	case a == All:
		return b
	case a == None || b == None || s.full:
		return None
	case a > b:
		a, b = b, a
	}
	return s.apply(opAnd, a, b, s.And)
}

// Or returns the strings that are in one of two sets.
func (s *Space) Or(a, b Set) Set {
	switch {
	case a == b || b == None:
		return a
	case a == None:
		return b
	case a == All || b == All || s.full:
		return All
	case a > b:
		a, b = b, a
	}
	return s.apply(opOr, a, b, s.Or)
}

// Without returns the strings that are in a and not in b.
func (s *Space) Without(a, b Set) Set {
	switch {
	case a == None || a == b || b == All || s.full:
		return None
	case b == None:
		return a
	}
	return s.apply(opWithout, a, b, s.Without)
}

// Not returns the strings that are not in a set.
func (s *Space) Not(a Set) Set { return s.Without(All, a) }

func (s *Space) apply(op operation, a, b Set, recurse func(a, b Set) Set) Set {
	if e := s.slot(op, a, b, 0); e.op == op && e.a == a && e.b == b {
		return e.result
	}
	bit := min(s.nodes[a].bit, s.nodes[b].bit)
	a0, a1 := s.split(a, bit)
	b0, b1 := s.split(b, bit)
	low := recurse(a0, b0)
	result := s.decide(bit, low, recurse(a1, b1))
	*s.slot(op, a, b, 0) = entry{op, a, b, 0, result}
	return result
}

func (s *Space) split(a Set, bit int32) (low, high Set) {
	if n := &s.nodes[a]; n.bit == bit {
		return n.low, n.high
	}
	return a, a
}

// Choose returns the strings of a that are in condition, and those of b that are not.
func (s *Space) Choose(condition, a, b Set) Set {
	switch {
	case condition == All || a == b:
		return a
	case condition == None || s.full:
		return b
	case a == All && b == None:
		return condition
	case b == None:
		return s.And(condition, a)
	case a == None:
		return s.Without(b, condition)
	}
	if e := s.slot(opChoose, condition, a, b); e.op == opChoose && e.a == condition && e.b == a && e.c == b {
		return e.result
	}
	bit := min(s.nodes[condition].bit, s.nodes[a].bit, s.nodes[b].bit)
	c0, c1 := s.split(condition, bit)
	a0, a1 := s.split(a, bit)
	b0, b1 := s.split(b, bit)
	low := s.Choose(c0, a0, b0)
	result := s.decide(bit, low, s.Choose(c1, a1, b1))
	*s.slot(opChoose, condition, a, b) = entry{opChoose, condition, a, b, result}
	return result
}

// Fix returns the strings that are in a set once a bit is set, and those that are once it is not.
func (s *Space) Fix(a Set, bit int) (with, without Set) {
	known := map[Set][2]Set{}
	var fix func(a Set) [2]Set
	fix = func(a Set) [2]Set {
		n := s.nodes[a]
		if int(n.bit) > bit {
			return [2]Set{a, a}
		}
		if int(n.bit) == bit {
			return [2]Set{n.high, n.low}
		}
		fixed, ok := known[a]
		if !ok {
			low, high := fix(n.low), fix(n.high)
			fixed = [2]Set{s.decide(n.bit, low[0], high[0]), s.decide(n.bit, low[1], high[1])}
			known[a] = fixed
		}
		return fixed
	}
	fixed := fix(a)
	return fixed[0], fixed[1]
}

// Has reports whether a string, of which has returns each bit, is in a set.
func (s *Space) Has(a Set, has func(bit int) bool) bool {
	for a > All {
		if n := &s.nodes[a]; has(int(n.bit)) {
			a = n.high
		} else {
			a = n.low
		}
	}
	return a == All
}

// Pick returns a string of a set that is not empty. Where the set leaves the choice of a bit, choose makes it.
func (s *Space) Pick(a Set, choose func(bit int) bool) []bool {
	picked := make([]bool, s.length)
	for bit := range picked {
		n := &s.nodes[a]
		picked[bit] = choose(bit)
		if int(n.bit) != bit {
			continue
		}
		if n.low == None {
			picked[bit] = true
		} else if n.high == None {
			picked[bit] = false
		}
		if picked[bit] {
			a = n.high
		} else {
			a = n.low
		}
	}
	return picked
}

// Share returns the share of all strings that a set has, from 0 to 1.
func (s *Space) Share(a Set) float64 {
	shares := map[Set]float64{None: 0, All: 1}
	var of func(a Set) float64
	of = func(a Set) float64 {
		share, known := shares[a]
		if !known {
			n := s.nodes[a]
			share = (of(n.low) + of(n.high)) / 2
			shares[a] = share
		}
		return share
	}
	return of(a)
}

// Part is a part of a set: the strings whose first bits are in Begin, which depends on these alone, and go on as those of Rest, which
// depends on the others alone.
type Part struct{ Begin, Rest Set }

// Parts divides a set by its bits before one: the strings of each part go on in the same ways.
func (s *Space) Parts(a Set, before int) []Part {
	known := map[Set]map[Set]Set{} // by a set, the beginnings that lead to each rest
	var ways func(a Set) map[Set]Set
	ways = func(a Set) map[Set]Set {
		found, seen := known[a]
		if seen {
			return found
		}
		found = map[Set]Set{}
		switch n := s.nodes[a]; {
		case a == None:
		case int(n.bit) >= before:
			found[a] = All
		default:
			for rest, way := range ways(n.low) {
				found[rest] = s.Or(found[rest], s.decide(n.bit, way, None))
			}
			for rest, way := range ways(n.high) {
				found[rest] = s.Or(found[rest], s.decide(n.bit, None, way))
			}
		}
		known[a] = found
		return found
	}
	var parts []Part
	begins := ways(a)
	for _, rest := range slices.Sorted(maps.Keys(begins)) {
		parts = append(parts, Part{begins[rest], rest})
	}
	return parts
}

// Range is a range of numbers, of the first to the last one, both included.
type Range struct{ First, Last Number }

// Number is a number of up to 128 bits.
type Number struct{ High, Low uint64 }

// Ranges returns the numbers in some bits, the highest one first, of the strings of a set that depends on these bits alone; of many ranges the
// first ones, and whether there are more.
func (s *Space) Ranges(a Set, first, bits, most int) (ranges []Range, more bool) {
	add := func(n Number, size int) {
		last := n
		switch {
		case size > 64:
			last.High, last.Low = n.High|(^uint64(0)>>(128-size)), ^uint64(0)
		case size > 0:
			last.Low = n.Low | ^uint64(0)>>(64-size)
		}
		if k := len(ranges); k > 0 && ranges[k-1].Last.next() == n {
			ranges[k-1].Last = last
		} else if k == most {
			more = true
		} else {
			ranges = append(ranges, Range{n, last})
		}
	}
	var walk func(a Set, n Number, left int)
	walk = func(a Set, n Number, left int) {
		switch {
		case a == None || more:
			return
		case a == All:
			add(n, left)
			return
		}
		low, high := s.split(a, int32(first+bits-left))
		walk(low, n, left-1)
		if left > 64 {
			n.High |= 1 << (left - 65)
		} else {
			n.Low |= 1 << (left - 1)
		}
		walk(high, n, left-1)
	}
	walk(a, Number{}, bits)
	return ranges, more
}

func (n Number) next() Number {
	n.Low++
	if n.Low == 0 {
		n.High++
	}
	return n
}
