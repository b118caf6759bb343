package bdd

import (
	"math/rand/v2"
	"testing"
)

const length = 10

// table is a set as the list of all bit strings, each with whether the set has it.
type table [1 << length]bool

func bitOf(number, bit int) bool { return number>>(length-1-bit)&1 == 1 }

// random returns a random set, and the same one as a table.
func random(s *Space, r *rand.Rand, depth int) (Set, table) {
	var of table
	if depth == 0 {
		bit := r.IntN(length)
		for i := range of {
			of[i] = bitOf(i, bit)
		}
		return s.Bit(bit), of
	}
	a, tableA := random(s, r, depth-1)
	b, tableB := random(s, r, depth-1)
	c, tableC := random(s, r, depth-1)
	switch r.IntN(4) {
	case 0:
		for i := range of {
			of[i] = tableA[i] && tableB[i]
		}
		return s.And(a, b), of
	case 1:
		for i := range of {
			of[i] = tableA[i] || tableB[i]
		}
		return s.Or(a, b), of
	case 2:
		for i := range of {
			of[i] = tableA[i] && !tableB[i]
		}
		return s.Without(a, b), of
	}
	for i := range of {
		of[i] = tableA[i] && tableB[i] || !tableA[i] && tableC[i]
	}
	return s.Choose(a, b, c), of
}

// TestSetsAreWhatTheyHold compares sets with lists of all their strings.
func TestSetsAreWhatTheyHold(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := New(length, 1<<20)
	byTable := map[table]Set{}
	for range 500 {
		a, want := random(s, r, 1+r.IntN(5))
		if known, ok := byTable[want]; ok && known != a {
			t.Fatal("two numbers for the same set")
		}
		byTable[want] = a
		held := 0
		for i, in := range want {
			if s.Has(a, func(bit int) bool { return bitOf(i, bit) }) != in {
				t.Fatalf("%010b: in the set: %v, want %v", i, !in, in)
			}
			if in {
				held++
			}
		}
		if share := s.Share(a); share*(1<<length) != float64(held) {
			t.Errorf("the share %v of a set of %d", share, held)
		}
		bit := r.IntN(length)
		with, without := s.Fix(a, bit)
		for i := range want {
			set, unset := i|1<<(length-1-bit), i&^(1<<(length-1-bit))
			has := func(bit int) bool { return bitOf(i, bit) }
			if s.Has(with, has) != want[set] || s.Has(without, has) != want[unset] {
				t.Fatalf("bit %d fixed in %010b", bit, i)
			}
		}
		checkPick(t, s, r, a, want)
		checkParts(t, s, a, want)
	}
}

func checkPick(t *testing.T, s *Space, r *rand.Rand, a Set, want table) {
	t.Helper()
	if a == None {
		return
	}
	number := 0
	for _, set := range s.Pick(a, func(int) bool { return r.IntN(2) == 1 }) {
		number <<= 1
		if set {
			number++
		}
	}
	if !want[number] {
		t.Errorf("picked %010b, which the set does not have", number)
	}
}

// checkParts puts a set together from its parts, and these from ranges.
func checkParts(t *testing.T, s *Space, a Set, want table) {
	t.Helper()
	const before = 6
	var got table
	for _, part := range s.Parts(a, before) {
		ranges, more := s.Ranges(part.Begin, 0, before, 1<<before)
		if more {
			t.Fatal("more ranges than numbers")
		}
		for _, r := range ranges {
			for begin := r.First.Low; begin <= r.Last.Low; begin++ {
				for i := range 1 << (length - before) {
					number := int(begin)<<(length-before) | i
					if s.Has(part.Rest, func(bit int) bool { return bitOf(number, bit) }) {
						if got[number] {
							t.Errorf("%010b is in two parts", number)
						}
						got[number] = true
					}
				}
			}
		}
	}
	if got != want {
		t.Error("the parts are another set")
	}
}

func TestWideRanges(t *testing.T) {
	s := New(128, 1<<20)
	var literals []Literal
	for bit := range 60 {
		literals = append(literals, Literal{bit, bit%2 == 0})
	}
	ranges, _ := s.Ranges(s.Cube(literals), 0, 128, 10)
	high := uint64(0xaaaaaaaaaaaaaaa0)
	if len(ranges) != 1 || ranges[0] != (Range{Number{high, 0}, Number{high | 0xf, ^uint64(0)}}) {
		t.Errorf("%x", ranges)
	}
	if ranges, _ = s.Ranges(All, 0, 128, 10); len(ranges) != 1 || ranges[0].Last != (Number{^uint64(0), ^uint64(0)}) {
		t.Errorf("%x", ranges)
	}
}

func TestSetsThatAreTooLarge(t *testing.T) {
	s := New(40, 1000)
	a := None
	for i := range 20 { // the bits of a pair are far from each other
		a = s.Or(a, s.And(s.Bit(i), s.Bit(i+20)))
	}
	if s.Err() == nil || s.Size() > 1000 {
		t.Errorf("%d nodes, %v", s.Size(), s.Err())
	}
}
