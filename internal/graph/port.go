package graph

import (
	"cmp"
	"slices"
	"strconv"
)

// note appends a text to the note of a port.
func (p *Port) note(text string) {
	if p.Note != "" && text != "" {
		p.Note += ", "
	}
	p.Note += text
}

// detail adds a line to the details of a port, unless the value is empty.
func (p *Port) detail(label, value string) {
	if value != "" {
		p.Detail = append(p.Detail, label+": "+value)
	}
}

// sortPorts sorts ports by kind, then by number, then by name.
func sortPorts(ports []*Port) {
	order := []Kind{Internal, Bond, System, Userspace, Interface, Patch, Tunnel, Service, Link, Attached}
	slices.SortStableFunc(ports, func(a, b *Port) int {
		if byKind := cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)); byKind != 0 {
			return byKind
		}
		m, errA := strconv.Atoi(a.Number)
		n, errB := strconv.Atoi(b.Number)
		if errA == nil && errB == nil && m != n {
			return cmp.Compare(m, n)
		}
		return cmp.Compare(a.Name, b.Name)
	})
}

// peers pairs ports that name each other as peers, each pair once.
type peers struct {
	pairs  [][2]string // port and peer, in the order in which they were added
	joined map[[2]string]bool
}

func (p *peers) add(port, peer string) { p.pairs = append(p.pairs, [2]string{port, peer}) }

// isNew reports whether a pair was not joined from its other end yet.
func (p *peers) isNew(pair [2]string) bool {
	if p.joined[[2]string{pair[1], pair[0]}] {
		return false
	}
	if p.joined == nil {
		p.joined = map[[2]string]bool{}
	}
	p.joined[pair] = true
	return true
}
