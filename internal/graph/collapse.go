package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Collapse draws more than most ports of a box that are alike (of one kind and
// state) as one. Of tunnels it takes a quarter of that, for each has a remote that
// is drawn too; their ends become one likewise. Patch ports, bonds and the links
// of logical switches stay: each leads elsewhere.
func (g *Graph) Collapse(most int) {
	type sort struct {
		kind  Kind
		state State
	}
	for _, b := range slices.Clone(g.Boxes) {
		alike := map[sort][]*Port{}
		var sorts []sort
		for _, p := range b.Ports {
			s := sort{p.Kind, p.State}
			if p.Kind == Patch || p.Kind == Bond || p.Kind == Link {
				continue
			}
			if alike[s] == nil {
				sorts = append(sorts, s)
			}
			alike[s] = append(alike[s], p)
		}
		for _, s := range sorts {
			limit := most
			if s.kind == Tunnel {
				limit = max(most/4, 1)
			}
			if len(alike[s]) > limit {
				g.collapse(b, alike[s])
			}
		}
	}
}

// collapse puts one port in place of several of a box.
func (g *Graph) collapse(b *Box, ports []*Port) {
	one := &Port{Name: commonName(ports), Kind: ports[0].Kind, State: ports[0].State, Count: len(ports)}
	one.note(commonNote(ports))
	for i, p := range ports {
		const most = 20
		if i == most {
			one.Detail = append(one.Detail, fmt.Sprintf("and %d more", len(ports)-most))
			break
		}
		one.Detail = append(one.Detail, p.Name)
	}
	gone := map[*Port]bool{}
	for _, p := range ports {
		gone[p] = true
	}
	g.collapseRemotes(b, one, gone)
	first := slices.Index(b.Ports, ports[0])
	b.Ports[first] = one
	delete(gone, ports[0])
	b.Ports = slices.DeleteFunc(b.Ports, func(p *Port) bool { return gone[p] })
}

// collapseRemotes puts one remote in place of those that only these ports lead to.
func (g *Graph) collapseRemotes(b *Box, one *Port, ports map[*Port]bool) {
	others, ends := map[*Box]bool{}, map[*Box]bool{}
	var order []*Box
	for _, e := range g.Edges {
		if ports[e.FromPort] {
			if !ends[e.To] {
				order = append(order, e.To)
			}
			ends[e.To] = true
		} else {
			others[e.From], others[e.To] = true, true
		}
	}
	if len(ends) == 0 {
		return
	}
	g.Edges = slices.DeleteFunc(g.Edges, func(e *Edge) bool { return ports[e.FromPort] })
	alone := 0
	for _, end := range order {
		if others[end] {
			g.Edges = append(g.Edges, &Edge{From: b, FromPort: one, To: end, Kind: one.Kind, State: one.State})
		} else {
			alone++
		}
	}
	if alone == 0 {
		return
	}
	g.Boxes = slices.DeleteFunc(g.Boxes, func(x *Box) bool { return ends[x] && !others[x] })
	many := &Box{Name: fmt.Sprintf("%d remotes", alone), Kind: Remote}
	g.Boxes = append(g.Boxes, many)
	g.Edges = append(g.Edges, &Edge{From: b, FromPort: one, To: many, Kind: one.Kind, State: one.State})
}

// commonName is what the names begin with, and a star.
func commonName(ports []*Port) string {
	prefix := ports[0].Name
	for _, p := range ports {
		for !strings.HasPrefix(p.Name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return strings.ToValidUTF8(prefix, "") + "*"
}

// commonNote keeps a note that all share, and counts VLANs that differ.
func commonNote(ports []*Port) string {
	same, tags := true, map[string]bool{}
	for _, p := range ports {
		same = same && p.Note == ports[0].Note
		for _, note := range strings.Split(p.Note, ", ") {
			if strings.HasPrefix(note, "tag ") {
				tags[note] = true
			}
		}
	}
	switch {
	case same:
		return ports[0].Note
	case len(tags) > 1:
		return fmt.Sprintf("%d VLANs", len(tags))
	}
	return ""
}
