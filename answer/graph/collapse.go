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
	for _, box := range slices.Clone(g.Boxes) {
		ports := map[group][]*Port{}
		var groups []group
		for _, port := range box.Ports {
			if port.Kind == Patch || port.Kind == Bond || port.Kind == Link || staying[port] {
				continue
			}
			of := group{port.Kind, port.State}
			if ports[of] == nil {
				groups = append(groups, of)
			}
			ports[of] = append(ports[of], port)
		}
		for _, of := range groups {
			if n := len(ports[of]); n > limit || of.kind == Tunnel && n > max(limit/4, 1) {
				g.collapse(box, ports[of])
			}
		}
	}
}

// joinedToOthers returns the ports with an edge that does not lead to a remote.
func (g *Graph) joinedToOthers() map[*Port]bool {
	joined := map[*Port]bool{}
	for _, edge := range g.Edges {
		joined[edge.ToPort] = true
		if edge.To.Kind != Remote || len(edge.To.Ports) > 0 {
			joined[edge.FromPort] = true
		}
	}
	return joined
}

// collapse replaces several ports of a box with one.
func (g *Graph) collapse(box *Box, ports []*Port) {
	one := &Port{Name: commonName(ports), Kind: ports[0].Kind, State: ports[0].State, Count: len(ports)}
	one.note(commonNote(ports))
	replaced := map[*Port]bool{}
	for _, port := range ports {
		replaced[port] = true
		one.Detail = append(one.Detail, port.Name)
	}
	const maxNames = 20
	if len(ports) > maxNames {
		one.Detail = append(one.Detail[:maxNames], fmt.Sprintf("and %d more", len(ports)-maxNames))
	}
	g.collapseRemotes(box, one, replaced)
	first := slices.Index(box.Ports, ports[0])
	box.Ports = slices.DeleteFunc(box.Ports, func(port *Port) bool { return replaced[port] })
	box.Ports = slices.Insert(box.Ports, first, one)
}

// collapseRemotes replaces the remotes that only these ports lead to with one.
func (g *Graph) collapseRemotes(box *Box, one *Port, ports map[*Port]bool) {
	others, ends := map[*Box]bool{}, map[*Box]bool{}
	var order []*Box
	for _, edge := range g.Edges {
		if ports[edge.FromPort] {
			if !ends[edge.To] {
				order = append(order, edge.To)
			}
			ends[edge.To] = true
		} else {
			others[edge.From], others[edge.To] = true, true
		}
	}
	if len(ends) == 0 {
		return
	}
	g.Edges = slices.DeleteFunc(g.Edges, func(edge *Edge) bool { return ports[edge.FromPort] })
	alone := 0
	for _, end := range order {
		if others[end] {
			g.Edges = append(g.Edges, &Edge{From: box, FromPort: one, To: end, Kind: one.Kind, State: one.State})
		} else {
			alone++
		}
	}
	if alone == 0 {
		return
	}
	g.Boxes = slices.DeleteFunc(g.Boxes, func(box *Box) bool { return ends[box] && !others[box] })
	many := &Box{Name: fmt.Sprintf("%d remotes", alone), Kind: Remote}
	g.Boxes = append(g.Boxes, many)
	g.Edges = append(g.Edges, &Edge{From: box, FromPort: one, To: many, Kind: one.Kind, State: one.State})
}

// commonName returns the common beginning of the names, and a star.
func commonName(ports []*Port) string {
	prefix := ports[0].Name
	for _, port := range ports {
		for !strings.HasPrefix(port.Name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return strings.ToValidUTF8(prefix, "") + "*"
}

// commonNote returns the note that all ports share, or else their VLAN or the number
// of their VLANs.
func commonNote(ports []*Port) string {
	same, vlans := true, map[string]bool{}
	for _, port := range ports {
		same = same && port.Note == ports[0].Note
		vlans[port.VLAN] = true
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
