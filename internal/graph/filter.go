package graph

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Filter leaves in the picture what a pattern matches, and what that is joined
// to: a glob pattern of whole names, or else a part of a name, of an iface-id or
// of an address. Boxes count what was left out of them. It returns how many
// boxes and ports matched.
func (g *Graph) Filter(pattern string) (matched int, err error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return 0, fmt.Errorf("the pattern %q: %w", pattern, err)
	}
	keep, boxes := map[*Port]bool{}, map[*Box]bool{}
	for _, b := range g.Boxes {
		whole := matches(pattern, b.Name)
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
	wanted := map[*Box]bool{} // before anything joined to them
	for b := range boxes {
		wanted[b] = true
	}
	var joined []*Port // not yet kept, or they would draw in what is joined to them
	for _, e := range g.Edges {
		if keep[e.FromPort] || keep[e.ToPort] || e.ToPort == nil && matches(pattern, e.To.Name) || wanted[e.From] && wanted[e.To] && e.ToPort != nil {
			boxes[e.From], boxes[e.To] = true, true
			joined = append(joined, e.FromPort, e.ToPort)
		}
	}
	for _, p := range joined {
		keep[p] = true
	}
	g.cut(keep, boxes)
	return matched, nil
}

// cut leaves only what is kept.
func (g *Graph) cut(keep map[*Port]bool, boxes map[*Box]bool) {
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
	for _, text := range append([]string{p.Name, p.Note}, p.Detail...) {
		if matches(pattern, text) {
			return true
		}
	}
	for _, m := range p.Members {
		if m.matches(pattern) {
			return true
		}
	}
	return false
}

func matches(pattern, text string) bool {
	if strings.ContainsAny(pattern, "*?[") {
		ok, err := path.Match(pattern, text)
		return err == nil && ok
	}
	return strings.Contains(text, pattern)
}
