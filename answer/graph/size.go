package graph

import (
	"math"
	"strconv"

	"ovs-offline/internal/svg"
)

// fillLanes assigns the ports of a box to its lanes.
func (p *placedBox) fillLanes() {
	lanes := map[*Port]int{}
	for _, end := range p.ends {
		if end.port == nil {
			continue
		}
		lanes[end.port] = 2
		if end.other.layer < p.layer {
			lanes[end.port] = 0
		}
	}
	for _, port := range p.box.Ports {
		c := &cell{port: port, h: rowHeight}
		for _, m := range port.Members {
			c.members = append(c.members, &cell{port: m, h: rowHeight})
			c.h += rowHeight + rowGap
		}
		if len(port.Members) > 0 {
			c.h += rowGap
		}
		lane, joined := lanes[port]
		if !joined {
			lane = 1
		}
		p.cells[port] = c
		p.lanes[lane] = append(p.lanes[lane], c)
	}
}

// sizeLayer computes the sizes of the boxes of a layer, which are put below each other.
func sizeLayer(layer []*placedBox) {
	inner := 0.0
	for _, box := range layer {
		inner += totalHeight(box.lanes[1])
	}
	for _, box := range layer {
		box.size(inner)
	}
}

// size computes the positions of the cells in a box, and its size. inner is the height
// of all ports of the layer that are between the sides of their boxes, in one column.
func (p *placedBox) size(inner float64) {
	headline := min(maxBoxName, svg.Width(p.box.Title())) + svg.Width(p.box.Note) + 5
	if p.box.Hidden > 0 {
		headline = max(headline, 24)
	}
	x, tallest := padding, 0.0
	for lane, cells := range p.lanes {
		if len(cells) == 0 {
			continue
		}
		if x > padding {
			x += laneGap
		}
		w := cellWidth(cells)
		p.widths[lane] = w
		columns := 1
		if lane == 1 {
			columns = columnsFor(inner, w)
		}
		width, height := fillColumns(cells, x, headHeight, w, columns)
		x += width
		tallest = max(tallest, height)
	}
	p.w = max(x+padding, float64(headline)*svg.CharWidth+2*padding)
	p.h = headHeight + tallest + padding
	if tallest == 0 {
		p.h = headHeight + 4
	}
	if p.box.Hidden > 0 {
		p.h += rowHeight
	}
	// The headline can be wider than the lanes.
	for _, cell := range p.lanes[2] {
		cell.x = p.w - padding - p.widths[2]
	}
}

func totalHeight(cells []*cell) (h float64) {
	for _, cell := range cells {
		h += cell.h + rowGap
	}
	return h
}

// columnsFor returns the number of columns, each of width w, that makes a layer
// somewhat wider than tall.
func columnsFor(inner, w float64) int {
	const shape = 1.5
	return max(1, int(math.Round(math.Sqrt(inner*shape/w))))
}

// fillColumns fills columns with cells from top to bottom.
func fillColumns(cells []*cell, x, y, w float64, columns int) (width, height float64) {
	limit := math.Ceil(totalHeight(cells)/float64(columns)/(rowHeight+rowGap)) * (rowHeight + rowGap)
	column, filled := 0, 0.0
	for _, c := range cells {
		if filled > 0 && filled+c.h > limit {
			column, filled = column+1, 0
		}
		c.x, c.y, c.w = x+float64(column)*(w+columnGap), y+filled, w
		for i, cell := range c.members {
			cell.x, cell.y, cell.w = c.x+rowGap, c.y+rowHeight+float64(i)*(rowHeight+rowGap), w-2*rowGap
		}
		filled += c.h + rowGap
		height = max(height, filled-rowGap)
	}
	return float64(column+1)*(w+columnGap) - columnGap, height
}

// cellWidth returns the width of the widest cell.
func cellWidth(cells []*cell) float64 {
	widest, names := 0, nameColumn(cells)
	for _, c := range cells {
		widest = max(widest, names+extraWidth(c.port))
		for _, cell := range c.members {
			widest = max(widest, 2+min(maxName, svg.Width(cell.port.Name))+extraWidth(cell.port))
		}
	}
	return float64(widest)*svg.CharWidth + 8
}

// extraWidth returns the number of characters of a cell without the name.
func extraWidth(port *Port) int {
	return min(maxNote, svg.Width(port.Note)) + numberWidth(port) + stateWidth(port) + 4
}

// nameColumn returns the number of characters of the longest name.
func nameColumn(cells []*cell) int {
	n := 0
	for _, cell := range cells {
		n = max(n, min(maxName, svg.Width(label(cell.port))))
	}
	return n
}

func numberWidth(port *Port) int { return 6 * min(1, len(port.Number)) }

func stateWidth(port *Port) int {
	if port.State.isDown() {
		return 6
	}
	return 0
}

// label returns the name of a port, and the number of ports that it represents.
func label(port *Port) string {
	if port.Count > 0 {
		return port.Name + " \u00d7" + strconv.Itoa(port.Count)
	}
	return port.Name
}
