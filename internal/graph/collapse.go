package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Collapse replaces the ports of a box that have the same kind and state with a single
// port if there are more than limit. For tunnels the limit is a quarter of that,
// because each adds a remote to the picture; their remotes are replaced with a single
// one as well. Patch ports, bonds, and ports with an edge to a box that is not a remote
// stay.
func (g *Graph) Collapse(limit int) {
	type group struct {
		kind  Kind
		state State
	}
	staying := g.joinedToOthers()
	for _, b := range slices.Clone(g.Boxes) {
		ports := map[group][]*Port{}
		var groups []group
		for _, p := range b.Ports {
			if p.Kind == Patch || p.Kind == Bond || p.Kind == Link || staying[p] {
				continue
			}
			of := group{p.Kind, p.State}
			if ports[of] == nil {
				groups = append(groups, of)
			}
			ports[of] = append(ports[of], p)
		}
		for _, of := range groups {
			if n := len(ports[of]); n > limit || of.kind == Tunnel && n > max(limit/4, 1) {
				g.collapse(b, ports[of])
			}
		}
	}
}

// joinedToOthers returns the ports with an edge that does not lead to a remote.
func (g *Graph) joinedToOthers() map[*Port]bool {
	joined := map[*Port]bool{}
	for _, e := range g.Edges {
		joined[e.ToPort] = true
		if e.To.Kind != Remote || len(e.To.Ports) > 0 {
			joined[e.FromPort] = true
		}
	}
	return joined
}

// collapse replaces several ports of a box with one.
func (g *Graph) collapse(b *Box, ports []*Port) {
	one := &Port{Name: commonName(ports), Kind: ports[0].Kind, State: ports[0].State, Count: len(ports)}
	one.note(commonNote(ports))
	replaced := map[*Port]bool{}
	for _, p := range ports {
		replaced[p] = true
		one.Detail = append(one.Detail, p.Name)
	}
	const maxNames = 20
	if len(ports) > maxNames {
		one.Detail = append(one.Detail[:maxNames], fmt.Sprintf("and %d more", len(ports)-maxNames))
	}
	g.collapseRemotes(b, one, replaced)
	first := slices.Index(b.Ports, ports[0])
	b.Ports = slices.DeleteFunc(b.Ports, func(p *Port) bool { return replaced[p] })
	b.Ports = slices.Insert(b.Ports, first, one)
}

// collapseRemotes replaces the remotes that only these ports lead to with one.
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

// commonName returns the common beginning of the names, and a star.
func commonName(ports []*Port) string {
	prefix := ports[0].Name
	for _, p := range ports {
		for !strings.HasPrefix(p.Name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return strings.ToValidUTF8(prefix, "") + "*"
}

// commonNote returns the note that all ports share, or else their VLAN or the number
// of their VLANs.
func commonNote(ports []*Port) string {
	same, vlans := true, map[string]bool{}
	for _, p := range ports {
		same = same && p.Note == ports[0].Note
		vlans[p.VLAN] = true
	}
	switch {
	case same:
		return ports[0].Note
	case len(vlans) == 1:
		return ports[0].VLAN
	}
	delete(vlans, "") // of ports without a VLAN
	if len(vlans) == 1 {
		return ""
	}
	return fmt.Sprintf("%d VLANs", len(vlans))
}
