package symbolic

import (
	"cmp"
	"slices"
	"strings"

	"ovs-offline/internal/bdd"
)

// Sent are packets that leave a bridge for one end in one form, or that have one other effect.
type Sent struct {
	To     string // an end, or the effect: the text of an action
	Effect bool   // To is an effect
	May    bool   // a choice that is not modelled led here
	Set    bdd.Set

	form []bdd.Set // the bits of their fields as they are then, and of the metadata that go along
}

// sentKey is what tells sent packets apart.
type sentKey struct {
	to  string
	sum sum // of their form, and of whether they may get there
}

// tooDeep is the effect that the switch drops a packet and all copies of it.
const tooDeep = "is resubmitted too often"

// send notes packets that get to an end, or have an effect. more are the metadata that go along, as in Link.Kept.
func (m *Machine) send(p *packets, to string, effect bool, more ...string) {
	form := p.of(span{0, m.size()})
	for _, name := range m.names(append(more, "pkt_mark")) {
		form = append(form, p.of(m.layout.spans[name])...)
	}
	key := sentKey{to, m.hasher.sum(&packets{bits: form, may: p.may})}
	if known := m.sent[key]; known != nil {
		known.Set = m.space.Or(known.Set, p.set)
		return
	}
	m.sent[key] = &Sent{to, effect, p.may, p.set, form}
}

// names returns the fields of the layout that are in a list with patterns, as Link.Kept is.
func (m *Machine) names(list []string) (names []string) {
	for name := range m.layout.spans {
		if slices.ContainsFunc(list, func(k string) bool {
			prefix, any := strings.CutSuffix(k, "*")
			return name == k || any && strings.HasPrefix(name, prefix)
		}) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// effect notes an effect of packets that neither changes nor sends them: what they are, and where in the network.
func (m *Machine) effect(p *packets, text string) {
	m.send(p, text, true, "metadata", "reg14", "reg15")
}

// sentOf returns what packets did, without those that the switch drops with all copies.
func (m *Machine) sentOf() (list []Sent) {
	if m.tooDeep != bdd.None {
		m.send(&packets{set: m.tooDeep, bits: make([]bdd.Set, m.reserved)}, tooDeep, true)
	}
	for _, s := range m.sent {
		if !s.May && s.To != tooDeep {
			s.Set = m.space.Without(s.Set, m.tooDeep)
		}
		if s.Set != bdd.None {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(a, b Sent) int { return cmp.Compare(a.To, b.To) })
	return list
}

// Deviation is how what becomes of packets differs at one end, or in one effect.
type Deviation struct {
	To     string
	Effect bool
	Gone   bdd.Set // that get there in the first result only
	Come   bdd.Set // that get there in the second result only
	Other  bdd.Set // that get there in both, in other forms
}

// Compare compares two results of packets that entered by the same port, of which no set is unknown, by the ends.
func (m *Machine) Compare(a, b *Result) (list []Deviation) {
	ends := map[string]bool{}
	for _, s := range slices.Concat(a.Sent, b.Sent) {
		if ends[s.To] {
			continue
		}
		ends[s.To] = true
		before, after := of(a.Sent, s.To), of(b.Sent, s.To)
		d := Deviation{To: s.To, Effect: s.Effect}
		d.Gone, d.Come = m.space.Without(m.any(before), m.any(after)), m.space.Without(m.any(after), m.any(before))
		unequal := m.space.Or(m.unmatched(before, after), m.unmatched(after, before))
		d.Other = m.space.Without(unequal, m.space.Or(d.Gone, d.Come))
		if m.space.Or(unequal, m.space.Or(d.Gone, d.Come)) != bdd.None {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b Deviation) int { return cmp.Compare(a.To, b.To) })
	return list
}

func of(list []Sent, to string) (found []Sent) {
	for _, s := range list {
		if s.To == to {
			found = append(found, s)
		}
	}
	return found
}

// any returns the packets of a list.
func (m *Machine) any(list []Sent) bdd.Set {
	set := bdd.None
	for _, s := range list {
		set = m.space.Or(set, s.Set)
	}
	return set
}

// unmatched returns the packets of a list that another one does not have in the same form.
func (m *Machine) unmatched(list, others []Sent) bdd.Set {
	unmatched := bdd.None
	for _, s := range list {
		left := s.Set
		for _, other := range others {
			if other.May == s.May && len(other.form) == len(s.form) {
				left = m.space.Without(left, m.sameForm(m.space.And(left, other.Set), s.form, other.form))
			}
		}
		unmatched = m.space.Or(unmatched, left)
	}
	return unmatched
}

// sameForm returns the packets of a set that two forms make the same.
func (m *Machine) sameForm(set bdd.Set, a, b []bdd.Set) bdd.Set {
	for i := range a {
		if a[i] != b[i] {
			set = m.space.And(set, m.space.Choose(a[i], b[i], m.space.Not(b[i])))
		}
	}
	return set
}
