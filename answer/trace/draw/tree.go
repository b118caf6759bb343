// Package draw draws the answer to a question about a packet: its way over nodes and
// bridges, as SVG or as a page that needs no server.
package draw

import (
	"fmt"
	"slices"

	"ovs-offline/answer/trace/answer"
)

// way is the picture of one direction: each visit of a packet to a node, from left to right.
type way struct {
	answer *answer.Answer
	prefix string // of the numbers of hops
	visits []*visit
	links  []*link
	turns  []float64 // the room for the turns of the links behind each column
	w, h   float64
}

// visit is a packet's stay on a node, from where it enters to where it leaves or ends. A
// packet that returns to a node makes another visit.
type visit struct {
	node       string
	bridges    []*bridge
	depth      int   // number of visits before it
	link       *link // to it, nil for the first
	x, y, w, h float64
}

// bridge is a part of a visit in one bridge.
type bridge struct {
	name       string
	visit      *visit
	rows       []*row
	from       *row   // of the bridge that the packet came from, by a patch port
	via        string // what carried it
	gutter     float64
	x, y, w, h float64 // relative to the visit
}

// row is a hop in one bridge, or an end of a packet.
type row struct {
	bridge     *bridge
	hop        int // -1 for an end
	title      string
	class      string
	lines      []line
	tooltip    []string
	children   []*row
	parent     *row
	x, y, w, h float64 // relative to the bridge
}

// line is a line of text in a row.
type line struct{ text, class string }

// link joins a row with the visit to the next node.
type link struct {
	from  *row
	to    *visit
	label []string
	bus   float64 // the x at which the link turns
}

// newWay returns the picture of an answer's path, without positions.
func newWay(drawn *answer.Answer, prefix string) *way {
	w := &way{answer: drawn, prefix: prefix}
	first, children := drawn.Children()
	for _, i := range first {
		w.enter(i, nil, children)
	}
	return w
}

// enter adds a hop and all that follow it. from is the row that sent the packet.
func (w *way) enter(i int, from *row, children [][]int) {
	hop := &w.answer.Path[i]
	rows := w.addHop(i, from)
	w.addEnds(i, rows)
	for _, child := range children[i] {
		to := &w.answer.Path[child]
		sender := rows[len(rows)-1]
		if to.Node == hop.Node {
			sender = rowOf(rows, to.Bridges()[0])
		}
		w.enter(child, sender, children)
	}
}

// rowOf returns the row in a bridge, else the last.
func rowOf(rows []*row, name string) *row {
	i := slices.IndexFunc(rows, func(r *row) bool { return r.bridge.name == name })
	if i < 0 {
		i = len(rows) - 1
	}
	return rows[i]
}

// addHop returns the rows of a hop: one for each bridge that it passes.
func (w *way) addHop(i int, from *row) []*row {
	hop := &w.answer.Path[i]
	var rows []*row
	for j, name := range hop.Bridges() {
		added := &row{hop: i}
		switch {
		case from == nil || from.bridge.visit.node != hop.Node:
			w.addVisit(i, name, from, added)
		case from.bridge.name != name || j > 0:
			w.addBridge(i, name, from, added, j == 0)
		default:
			from.add(added)
		}
		w.describe(added, j == 0)
		rows, from = append(rows, added), added
	}
	return rows
}

// add puts a row behind another one, in the same bridge.
func (r *row) add(child *row) {
	child.parent, child.bridge = r, r.bridge
	r.children = append(r.children, child)
	r.bridge.rows = append(r.bridge.rows, child)
}

// addVisit adds a visit to the node of a hop.
func (w *way) addVisit(i int, name string, from, added *row) {
	hop := &w.answer.Path[i]
	visit := &visit{node: hop.Node}
	added.bridge = &bridge{name: name, visit: visit, rows: []*row{added}}
	visit.bridges = []*bridge{added.bridge}
	w.visits = append(w.visits, visit)
	if from == nil {
		return
	}
	visit.depth = from.bridge.visit.depth + 1
	link := &link{from: from, to: visit}
	for _, text := range []string{hop.Via, w.answer.NewChoice(i)} {
		if text != "" {
			link.label = append(link.label, shorten(text, maxLabel))
		}
	}
	visit.link = link
	w.links = append(w.links, link)
}

// addBridge adds a bridge to the visit of another one.
func (w *way) addBridge(i int, name string, from, added *row, first bool) {
	visit := from.bridge.visit
	added.bridge = &bridge{name: name, visit: visit, rows: []*row{added}, from: from, via: "patch port"}
	if via := w.answer.Path[i].Via; first && via != "" {
		added.bridge.via = via
	}
	visit.bridges = append(visit.bridges, added.bridge)
}

// number returns the number of a hop as the text form and the page print it.
func (w *way) number(hop int) string { return fmt.Sprint(w.prefix, hop+1) }
