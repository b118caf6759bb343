package graph

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Filter removes the boxes and ports that a pattern does not match, except the ones
// that an edge joins to a match. The pattern is a glob pattern that matches a whole
// name, or a part of a name, an iface-id or an address. Each box counts its removed
// ports. Filter returns the number of boxes and ports that matched.
func (g *Graph) Filter(pattern string) (matched int, err error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return 0, fmt.Errorf("the pattern %q: %w", pattern, err)
	}
	keep, boxes := map[*Port]bool{}, map[*Box]bool{}
	for _, b := range g.Boxes {
		whole := slices.ContainsFunc(append([]string{b.Name}, b.Aliases...), func(name string) bool { return matches(pattern, name) })
		if whole {
			matched++
			boxes[b] = true
		}
		for _, p := range b.Ports {
			if hit := p.matches(pattern); hit || whole {
				keep[p], boxes[b] = true, true
				if hit {
					matched++
				}
			}
		}
	}
	matching := maps.Clone(boxes) // without the boxes that edges join to them
	var joined []*Port            // added later; otherwise their own edges would keep further boxes
	for _, e := range g.Edges {
		if keep[e.FromPort] || keep[e.ToPort] || e.ToPort == nil && matches(pattern, e.To.Name) || matching[e.From] && matching[e.To] && e.ToPort != nil {
			boxes[e.From], boxes[e.To] = true, true
			joined = append(joined, e.FromPort, e.ToPort)
		}
	}
	for _, p := range joined {
		keep[p] = true
	}
	g.retain(keep, boxes)
	return matched, nil
}

// retain removes all other ports and boxes.
func (g *Graph) retain(keep map[*Port]bool, boxes map[*Box]bool) {
	g.Boxes = slices.DeleteFunc(g.Boxes, func(b *Box) bool { return !boxes[b] })
	for _, b := range g.Boxes {
		all := len(b.Ports)
		b.Ports = slices.DeleteFunc(b.Ports, func(p *Port) bool { return !keep[p] })
		b.Hidden = all - len(b.Ports)
	}
	g.Edges = slices.DeleteFunc(g.Edges, func(e *Edge) bool {
		return !boxes[e.From] || !boxes[e.To] || e.FromPort != nil && !keep[e.FromPort] || e.ToPort != nil && !keep[e.ToPort]
	})
}

func (p *Port) matches(pattern string) bool {
	texts := slices.Concat([]string{p.Name, p.Note}, p.Aliases, p.Detail)
	return slices.ContainsFunc(texts, func(text string) bool { return matches(pattern, text) }) ||
		slices.ContainsFunc(p.Members, func(m *Port) bool { return m.matches(pattern) })
}

func matches(pattern, text string) bool {
	if strings.ContainsAny(pattern, "*?[") {
		ok, _ := path.Match(pattern, text) // Filter has checked the pattern
		return ok
	}
	return strings.Contains(text, pattern)
}
