package graph

import (
	"cmp"
	"slices"
)

// orderLayers orders the boxes of each layer, and the ports at their sides, by
// the mean position of their neighbours, in three rounds back and forth.
func orderLayers(layers [][]*placedBox) {
	for round := range 6 {
		for i := range layers {
			layer := layers[i]
			if round%2 == 1 {
				layer = layers[len(layers)-1-i]
			}
			stack(layer)
			want := map[*placedBox]float64{}
			for _, box := range layer {
				want[box] = box.neighbours(box.y+box.h/2, false)
			}
			slices.SortStableFunc(layer, func(a, b *placedBox) int { return cmp.Compare(want[a], want[b]) })
			stack(layer)
			for _, box := range layer {
				box.orderLanes()
			}
		}
	}
}

// gapBelow returns the gap below a box of a layer. It is small between remotes of
// tunnels, because there are many of them.
func gapBelow(layer []*placedBox, i int) float64 {
	if i+1 < len(layer) && len(layer[i].box.Ports) == 0 && len(layer[i+1].box.Ports) == 0 {
		return rowGap
	}
	return boxGap
}

// stack puts the boxes of a layer below each other.
func stack(layer []*placedBox) {
	y := 0.0
	for i, box := range layer {
		box.y = y
		y += box.h + gapBelow(layer, i)
	}
	for _, box := range layer {
		box.y -= y / 2 // layers are centred on each other
	}
}

// neighbours returns the mean height of the far ends of a box's edges to other
// layers; with level, the height of the box at which these edges are level. For a box
// without such edges it returns otherwise.
func (p *placedBox) neighbours(otherwise float64, level bool) float64 {
	sum, n := 0.0, 0
	for _, end := range p.ends {
		if end.other.layer == p.layer {
			continue
		}
		height := end.other.y + end.other.edgeOffset(end.otherPort)
		if level {
			height -= p.edgeOffset(end.port)
		}
		sum += height
		n++
	}
	if n == 0 {
		return otherwise
	}
	return sum / float64(n)
}

// edgeOffset returns how far below a box's top an edge to one of its ports ends.
func (p *placedBox) edgeOffset(port *Port) float64 {
	if cell := p.cells[port]; cell != nil {
		return cell.y + rowHeight/2
	}
	return p.h / 2
}

// align moves the boxes of a layer to the height of their neighbours, and keeps
// their order and the gaps between them.
func align(layer []*placedBox) {
	// Boxes that touch form a block, which moves to the mean of its boxes' wanted
	// positions.
	type block struct {
		first, n int
		sum, h   float64 // sum of wanted tops of the block
		top      float64
	}
	var blocks []block
	for i, box := range layer {
		want := box.neighbours(box.y, true)
		b := block{first: i, n: 1, sum: want, h: box.h + gapBelow(layer, i), top: want}
		for len(blocks) > 0 {
			last := blocks[len(blocks)-1]
			if last.top+last.h <= b.top {
				break
			}
			b = block{first: last.first, n: last.n + b.n, sum: last.sum + b.sum - float64(b.n)*last.h, h: last.h + b.h}
			b.top = b.sum / float64(b.n)
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		y := b.top
		for i := b.first; i < b.first+b.n; i++ {
			layer[i].y = y
			y += layer[i].h + gapBelow(layer, i)
		}
	}
}

// orderLanes orders the ports at a box's sides by the heights of their far ends.
func (p *placedBox) orderLanes() {
	want := map[*Port]float64{}
	for _, end := range p.ends {
		if end.port != nil {
			want[end.port] = end.other.y + end.other.edgeOffset(end.otherPort)
		}
	}
	for _, lane := range []int{0, 2} {
		cells := p.lanes[lane]
		slices.SortStableFunc(cells, func(a, b *cell) int { return cmp.Compare(want[a.port], want[b.port]) })
		if len(cells) > 0 {
			fillColumns(cells, cells[0].x, headHeight, p.widths[lane], 1)
		}
	}
}
