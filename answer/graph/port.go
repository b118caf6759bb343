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

// alias adds a name by which a filter finds a port, unless it is empty or the
// port's name, and adds it to the details.
func (p *Port) alias(label, name string) {
	if name != "" && name != p.Name {
		p.Aliases = append(p.Aliases, name)
	}
	p.detail(label, name)
}

// sortPorts sorts ports by kind, then by number, then by name.
func sortPorts(ports []*Port) {
	order := []Kind{Internal, Bond, System, Userspace, Interface, Patch, Tunnel, Service, Link, Attached, Child, Virtual, External}
	slices.SortStableFunc(ports, func(a, b *Port) int {
		byNumber := 0
		m, errA := strconv.Atoi(a.Number)
		n, errB := strconv.Atoi(b.Number)
		if errA == nil && errB == nil {
			byNumber = cmp.Compare(m, n)
		}
		return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), byNumber, cmp.Compare(a.Name, b.Name))
	})
}
