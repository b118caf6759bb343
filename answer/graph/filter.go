package graph

import (
	"maps"
	"path"
	"slices"
	"strings"

	"ovs-offline/internal/fault"
)

// Filter removes the boxes and ports that a pattern does not match, except the ones
// that an edge joins to a match. The pattern is a glob pattern that matches a whole
// name, or a part of a name, an iface-id or an address. Each box counts its removed
// ports. Filter returns the number of boxes and ports that matched.
func (g *Graph) Filter(pattern string) (matched int, err error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return 0, fault.Usagef("the pattern %q: %w", pattern, err)
	}
	keep, boxes := map[*Port]bool{}, map[*Box]bool{}
	for _, box := range g.Boxes {
		whole := slices.ContainsFunc(append([]string{box.Title(), box.Name}, box.Aliases...), func(name string) bool { return matches(pattern, name) })
		if whole {
			matched++
			boxes[box] = true
		}
		for _, port := range box.Ports {
			if hit := port.matches(pattern); hit || whole {
				keep[port], boxes[box] = true, true
				if hit {
					matched++
				}
			}
		}
	}
	matching := maps.Clone(boxes) // without the boxes that edges join to them
	var joined []*Port            // added later; otherwise their own edges would keep further boxes
	for _, edge := range g.Edges {
		if keep[edge.FromPort] || keep[edge.ToPort] || edge.ToPort == nil && matches(pattern, edge.To.Name) || matching[edge.From] && matching[edge.To] && edge.ToPort != nil {
			boxes[edge.From], boxes[edge.To] = true, true
			joined = append(joined, edge.FromPort, edge.ToPort)
		}
	}
	for _, port := range joined {
		keep[port] = true
	}
	g.retain(keep, boxes)
	return matched, nil
}

// retain removes all other ports and boxes.
func (g *Graph) retain(keep map[*Port]bool, boxes map[*Box]bool) {
	g.Boxes = slices.DeleteFunc(g.Boxes, func(box *Box) bool { return !boxes[box] })
	for _, box := range g.Boxes {
		all := len(box.Ports)
		box.Ports = slices.DeleteFunc(box.Ports, func(port *Port) bool { return !keep[port] })
		box.Hidden = all - len(box.Ports)
	}
	g.Edges = slices.DeleteFunc(g.Edges, func(edge *Edge) bool {
		return !boxes[edge.From] || !boxes[edge.To] || edge.FromPort != nil && !keep[edge.FromPort] || edge.ToPort != nil && !keep[edge.ToPort]
	})
}

func (p *Port) matches(pattern string) bool {
	texts := slices.Concat([]string{p.Name, p.Note}, p.Aliases, p.Detail)
	return slices.ContainsFunc(texts, func(text string) bool { return matches(pattern, text) }) ||
		slices.ContainsFunc(p.Members, func(port *Port) bool { return port.matches(pattern) })
}

func matches(pattern, text string) bool {
	if strings.ContainsAny(pattern, "*?[") {
		ok, _ := path.Match(pattern, text) // Filter has checked the pattern
		return ok
	}
	return strings.Contains(text, pattern)
}
