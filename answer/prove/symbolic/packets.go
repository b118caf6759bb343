package symbolic

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"

	"ovs-offline/internal/bdd"
)

// packets is a set of packets at one point of their way. Each bit of their fields there is a constant, or a function of the bits with which they
// entered the first bridge.
type packets struct {
	set   bdd.Set
	bits  []bdd.Set
	stack [][]bdd.Set // that push has saved
	may   bool        // a choice that is not modelled led here: not all of them get here

	held      *held // nil for none
	resubmits int   // in this pass, at most
}

// countFrom counts the resubmits of copies of the packets.
func (p *packets) countFrom(copies []*packets) {
	for _, q := range copies {
		p.resubmits = max(p.resubmits, q.resubmits)
	}
}

// within returns the packets that are also in a set.
func (p *packets) within(set bdd.Set) *packets {
	made := *p
	made.set, made.bits, made.stack = set, slices.Clone(p.bits), slices.Clone(p.stack)
	return &made
}

// constant returns the value of a field of at most 64 bits; ok is false if it depends on the packet.
func (p *packets) constant(s span) (value uint64, ok bool) {
	for _, bit := range p.bits[s.at : s.at+s.width] {
		if bit > bdd.All {
			return 0, false
		}
		value = value<<1 | uint64(bit)
	}
	return value, true
}

func (p *packets) assign(list []literal) {
	for _, l := range list {
		p.bits[l.at] = constantBit(l.value)
	}
}

func (p *packets) setNumber(s span, value uint64) {
	for i := range s.width {
		bit := s.width - 1 - i
		p.bits[s.at+i] = constantBit(bit < 64 && value>>bit&1 == 1)
	}
}

func constantBit(value bool) bdd.Set {
	if value {
		return bdd.All
	}
	return bdd.None
}

// copy writes bits into a field; of fields of different widths the lowest bits.
func (p *packets) copy(to span, from []bdd.Set) {
	for i := 1; i <= to.width; i++ {
		bit := bdd.None
		if i <= len(from) {
			bit = from[len(from)-i]
		}
		p.bits[to.at+to.width-i] = bit
	}
}

// of returns a copy of the bits of a field.
func (p *packets) of(s span) []bdd.Set { return slices.Clone(p.bits[s.at : s.at+s.width]) }

// sum is a hash of 128 bits of what packets are, without which of them there are.
type sum [2]uint64

// hasher computes sums.
type hasher struct {
	seeds  [2]maphash.Seed
	buffer []byte
}

func newHasher() *hasher {
	return &hasher{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

func (h *hasher) sum(p *packets) sum {
	h.buffer = h.buffer[:0]
	add := func(bits []bdd.Set) {
		for _, bit := range bits {
			h.buffer = binary.LittleEndian.AppendUint32(h.buffer, uint32(bit))
		}
		h.buffer = binary.LittleEndian.AppendUint32(h.buffer, ^uint32(0))
	}
	add(p.bits)
	for _, saved := range p.stack {
		add(saved)
	}
	if p.may {
		h.buffer = append(h.buffer, 1)
	}
	if p.held != nil {
		h.buffer = fmt.Appendf(h.buffer, "%p %v", p.held.entry, p.held.state)
	}
	return sum{maphash.Bytes(h.seeds[0], h.buffer), maphash.Bytes(h.seeds[1], h.buffer)}
}

// joined returns packets with those joined that are the same.
func (m *Machine) joined(list []*packets) []*packets {
	if len(list) < 2 {
		return list
	}
	known := map[sum]*packets{}
	var joined []*packets
	for _, p := range list {
		key := m.hasher.sum(p)
		if same := known[key]; same != nil {
			same.set, same.resubmits = m.space.Or(same.set, p.set), max(same.resubmits, p.resubmits)
			continue
		}
		known[key] = p
		joined = append(joined, p)
	}
	return joined
}
