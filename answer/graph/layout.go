package graph

import (
	"cmp"
	"math"
	"slices"
)

// The layout draws a box in three parts: ports with edges to boxes on its left at
// its left side, ports with edges to the right at its right side, and all other
// ports in columns between them. Boxes are in layers by their distance in edges
// from the first box, so that edges join neighbouring layers and cross no box.
// Groups of boxes that no edge joins are laid out apart.

// Measures, in pixels.
const (
	rowHeight  = 22.0
	rowGap     = 4.0
	headHeight = 30.0
	padding    = 10.0
	laneGap    = 24.0
	columnGap  = 8.0
	layerGap   = 80.0
	boxGap     = 26.0
	margin     = 24.0
)

// The number of characters to which names and notes of ports, and names of boxes, are
// shortened: UUIDs, router ports that Neutron names lrp-UUID, and notes of a UUID and a network
// stay whole. Tooltips have all of them whole.
const (
	maxName    = 40
	maxNote    = 72
	maxBoxName = 80
)

// placedBox is a box with its position and size.
type placedBox struct {
	box        *Box
	x, y, w, h float64
	layer      int
	lanes      [3][]*cell // ports at the left side, between, at the right side
	cells      map[*Port]*cell
	widths     [3]float64 // of one cell of a lane
	ends       []end
}

// end is an end of an edge at a box, with its other end.
type end struct {
	port      *Port
	other     *placedBox
	otherPort *Port
}

// cell is a port with its position and size, relative to its box.
type cell struct {
	port       *Port
	x, y, w, h float64
	members    []*cell
}

// layout is a whole picture.
type layout struct {
	graph *Graph
	boxes map[*Box]*placedBox
	w, h  float64
}

// arrange returns the layout of a graph.
func arrange(graph *Graph) *layout {
	layout := &layout{graph: graph, boxes: map[*Box]*placedBox{}}
	for _, box := range graph.Boxes {
		layout.boxes[box] = &placedBox{box: box, layer: -1, cells: map[*Port]*cell{}}
	}
	for _, edge := range graph.Edges {
		from, to := layout.boxes[edge.From], layout.boxes[edge.To]
		if from != to {
			from.ends = append(from.ends, end{edge.FromPort, to, edge.ToPort})
		}
		to.ends = append(to.ends, end{edge.ToPort, from, edge.FromPort})
	}
	layout.pack(layout.components())
	return layout
}

// components returns the groups of boxes that edges join, the largest first, with
// the layer of each box.
func (l *layout) components() [][]*placedBox {
	var all [][]*placedBox
	seen := map[*placedBox]bool{}
	for _, box := range l.graph.Boxes {
		first := l.boxes[box]
		if seen[first] {
			continue
		}
		seen[first] = true
		component := []*placedBox{first}
		for i := 0; i < len(component); i++ {
			for _, end := range component[i].ends {
				if !seen[end.other] {
					seen[end.other] = true
					component = append(component, end.other)
				}
			}
		}
		assignLayers(component)
		all = append(all, component)
	}
	slices.SortStableFunc(all, func(a, b []*placedBox) int { return len(b) - len(a) })
	return all
}

// assignLayers gives each box its distance in edges as its layer. In a logical network
// with physical networks, the distance is that from the physical networks, which are on
// the right. Otherwise it is that from the box with the most ports, on the left.
func assignLayers(component []*placedBox) {
	var queue []*placedBox
	for _, box := range component {
		if box.box.Kind == Network {
			queue = append(queue, box)
		}
	}
	fromRight := len(queue) > 0
	if !fromRight {
		first := component[0]
		for _, box := range component[1:] {
			if box.box.Kind != Remote && box.inner() > first.inner() {
				first = box
			}
		}
		queue = []*placedBox{first}
	}
	for _, box := range queue {
		box.layer = 0
	}
	for i := 0; i < len(queue); i++ {
		for _, end := range queue[i].ends {
			if end.other.layer < 0 {
				end.other.layer = queue[i].layer + 1
				queue = append(queue, end.other)
			}
		}
	}
	if fromRight {
		deepest := queue[len(queue)-1].layer
		for _, box := range component {
			box.layer = deepest - box.layer
		}
	}
}

// inner returns the number of ports of a box without an edge.
func (p *placedBox) inner() int {
	joined := map[*Port]bool{}
	for _, end := range p.ends {
		joined[end.port] = true
		if end.other == p {
			joined[end.otherPort] = true
		}
	}
	n := 0
	for _, port := range p.box.Ports {
		if !joined[port] {
			n += max(1, port.Count)
		}
	}
	return n
}

// place computes the positions of one component from (0, 0), and returns its size.
func place(component []*placedBox) (w, h float64) {
	deepest := slices.MaxFunc(component, func(a, b *placedBox) int { return cmp.Compare(a.layer, b.layer) })
	layers := make([][]*placedBox, deepest.layer+1)
	for _, box := range component {
		layers[box.layer] = append(layers[box.layer], box)
		box.fillLanes()
	}
	for _, layer := range layers {
		sizeLayer(layer)
	}
	orderLayers(layers)
	for _, layer := range layers {
		widest := 0.0
		for _, box := range layer {
			widest = max(widest, box.w)
			box.x = w
		}
		w += widest + layerGap
	}
	for range 4 {
		for _, layer := range layers {
			align(layer)
		}
		for _, layer := range slices.Backward(layers) {
			align(layer)
		}
	}
	top := slices.MinFunc(component, func(a, b *placedBox) int { return cmp.Compare(a.y, b.y) }).y
	for _, box := range component {
		box.y -= top
		h = max(h, box.y+box.h)
	}
	return w - layerGap, h
}

// pack puts the components below each other, with small ones side by side.
func (l *layout) pack(components [][]*placedBox) {
	type size struct{ w, h float64 }
	var sizes []size
	area, widest := 0.0, 600.0
	for _, boxes := range components {
		w, h := place(boxes)
		sizes = append(sizes, size{w, h})
		area += (w + boxGap) * (h + boxGap)
		widest = max(widest, w)
	}
	room := max(widest, math.Sqrt(area*1.6))
	x, y, row := 0.0, 0.0, 0.0
	for i, boxes := range components {
		if x > 0 && x+sizes[i].w > room {
			x, y, row = 0, y+row+boxGap, 0
		}
		for _, box := range boxes {
			box.x += x
			box.y += y
		}
		x += sizes[i].w + boxGap
		row = max(row, sizes[i].h)
		l.w = max(l.w, x-boxGap)
	}
	l.h = y + row
}
