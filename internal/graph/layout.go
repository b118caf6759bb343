package graph

import (
	"math"
	"sort"
	"strconv"

	"github.com/mattn/go-runewidth"
)

// The layout. A box has three parts: on its left side the ports that lead to
// boxes left of it, on its right side those that lead to the right, and between
// them all others, in columns. Boxes stand in layers, each as many edges away
// from the first as its layer says, so that edges join neighbours and cross
// nothing else. What is joined by no edge is laid out apart.

// Measures, in pixels.
const (
	charWidth  = 7.23 // of the monospaced 12px font
	rowHeight  = 22.0
	rowGap     = 4.0
	headHeight = 30.0
	padding    = 10.0
	laneGap    = 24.0
	columnGap  = 8.0
	layerGap   = 80.0
	boxGap     = 26.0
	margin     = 24.0
	nameMost   = 34 // characters
	noteMost   = 34
)

// placed is a box with its place.
type placed struct {
	box        *Box
	x, y, w, h float64
	layer      int
	lanes      [3][]*cell // left, middle, right
	cells      map[*Port]*cell
	widths     [3]float64 // of one cell
}

// cell is a port with its place, relative to its box.
type cell struct {
	port       *Port
	x, y, w, h float64
	members    []*cell
}

// layout is a whole picture.
type layout struct {
	graph  *Graph
	places map[*Box]*placed
	edges  map[*Box][]*Edge
	w, h   float64
}

// arrange lays a graph out.
func arrange(g *Graph) *layout {
	l := &layout{graph: g, places: map[*Box]*placed{}, edges: map[*Box][]*Edge{}}
	for _, b := range g.Boxes {
		l.places[b] = &placed{box: b, layer: -1, cells: map[*Port]*cell{}}
	}
	for _, e := range g.Edges {
		l.edges[e.From] = append(l.edges[e.From], e)
		if e.To != e.From {
			l.edges[e.To] = append(l.edges[e.To], e)
		}
	}
	l.pack(l.components())
	return l
}

// components finds what hangs together, the largest first, each with layers.
func (l *layout) components() [][]*placed {
	var all [][]*placed
	seen := map[*Box]bool{}
	for _, b := range l.graph.Boxes {
		if seen[b] {
			continue
		}
		seen[b] = true
		component := []*placed{l.places[b]}
		for i := 0; i < len(component); i++ {
			for _, next := range l.neighbours(component[i].box) {
				if !seen[next] {
					seen[next] = true
					component = append(component, l.places[next])
				}
			}
		}
		l.assignLayers(component)
		all = append(all, component)
	}
	sort.SliceStable(all, func(i, j int) bool { return len(all[i]) > len(all[j]) })
	return all
}

func (l *layout) neighbours(b *Box) []*Box {
	var found []*Box
	for _, e := range l.edges[b] {
		if e.From == b {
			found = append(found, e.To)
		} else {
			found = append(found, e.From)
		}
	}
	return found
}

// assignLayers counts edges: in a logical network that reaches physical ones
// from those, which stand on the right; elsewhere from the box with the most
// ports, which stands on the left.
func (l *layout) assignLayers(component []*placed) {
	var from []*placed
	for _, p := range component {
		if p.box.Kind == Network {
			from = append(from, p)
		}
	}
	outside := len(from) > 0
	if !outside {
		first, most := component[0], l.inner(component[0].box)
		for _, p := range component[1:] {
			if p.box.Kind == Remote {
				continue
			}
			if n := l.inner(p.box); n > most {
				first, most = p, n
			}
		}
		from = []*placed{first}
	}
	deepest := 0
	for _, p := range from {
		p.layer = 0
	}
	for i := 0; i < len(from); i++ {
		deepest = max(deepest, from[i].layer)
		for _, b := range l.neighbours(from[i].box) {
			if next := l.places[b]; next.layer < 0 {
				next.layer = from[i].layer + 1
				from = append(from, next)
			}
		}
	}
	if outside {
		for _, p := range component {
			p.layer = deepest - p.layer
		}
	}
}

// inner counts the ports of a box that lead nowhere else.
func (l *layout) inner(b *Box) int {
	leading := map[*Port]bool{}
	for _, e := range l.edges[b] {
		leading[e.FromPort], leading[e.ToPort] = true, true
	}
	n := 0
	for _, p := range b.Ports {
		if !leading[p] {
			n += max(1, p.Count)
		}
	}
	return n
}

// place lays one component out from (0, 0) and returns its size.
func (l *layout) place(component []*placed) (w, h float64) {
	layers := map[int][]*placed{}
	deepest := 0
	for _, p := range component {
		layers[p.layer] = append(layers[p.layer], p)
		deepest = max(deepest, p.layer)
	}
	for _, p := range component {
		l.fill(p)
	}
	// Order by the mean place of the neighbours, forth and back.
	for round := range 6 {
		for i := range deepest + 1 {
			n := i
			if round%2 == 1 {
				n = deepest - i
			}
			l.stack(layers[n])
			l.order(layers[n])
			l.stack(layers[n])
			for _, p := range layers[n] {
				l.orderLanes(p)
			}
		}
	}
	for n := range deepest + 1 {
		widest := 0.0
		for _, p := range layers[n] {
			widest = max(widest, p.w)
		}
		for _, p := range layers[n] {
			p.x = w
		}
		w += widest + layerGap
	}
	for range 4 {
		for n := range deepest + 1 {
			l.align(layers[n])
		}
		for n := deepest; n >= 0; n-- {
			l.align(layers[n])
		}
	}
	top := math.Inf(1)
	for _, p := range component {
		top = min(top, p.y)
	}
	for _, p := range component {
		p.y -= top
		h = max(h, p.y+p.h)
	}
	return w - layerGap, h
}

// gapBelow is the room below a box of a layer: little between remotes of tunnels,
// of which there are many.
func gapBelow(layer []*placed, i int) float64 {
	if i+1 < len(layer) && len(layer[i].box.Ports) == 0 && len(layer[i+1].box.Ports) == 0 {
		return rowGap
	}
	return boxGap
}

// stack puts the boxes of a layer below each other.
func (l *layout) stack(layer []*placed) {
	y := 0.0
	for i, p := range layer {
		p.y = y
		y += p.h + gapBelow(layer, i)
	}
	for _, p := range layer {
		p.y -= y / 2 // layers are centered on each other
	}
}

// order sorts a layer by where the boxes' neighbours stand.
func (l *layout) order(layer []*placed) {
	want := map[*placed]float64{}
	for _, p := range layer {
		sum, n := 0.0, 0
		for _, e := range l.edges[p.box] {
			other, port := e.To, e.ToPort
			if other == p.box {
				other, port = e.From, e.FromPort
			}
			q := l.places[other]
			if q.layer == p.layer {
				continue
			}
			sum += q.y + q.middle(port)
			n++
		}
		want[p] = p.y + p.h/2
		if n > 0 {
			want[p] = sum / float64(n)
		}
	}
	sort.SliceStable(layer, func(i, j int) bool { return want[layer[i]] < want[layer[j]] })
}

// align moves the boxes of a layer to the height of their neighbours, keeping
// their order and the room between them.
func (l *layout) align(layer []*placed) {
	if len(layer) == 0 {
		return
	}
	want := make([]float64, len(layer))
	for i, p := range layer {
		sum, n := 0.0, 0
		for _, e := range l.edges[p.box] {
			from, to := l.places[e.From], l.places[e.To]
			mine, other, port, otherPort := from, to, e.FromPort, e.ToPort
			if e.To == p.box {
				mine, other, port, otherPort = to, from, e.ToPort, e.FromPort
			}
			if other.layer == mine.layer {
				continue
			}
			sum += other.y + other.middle(otherPort) - mine.middle(port)
			n++
		}
		want[i] = p.y
		if n > 0 {
			want[i] = sum / float64(n)
		}
	}
	// Blocks of touching boxes move as one to the mean of what their boxes want.
	type block struct {
		first, n int
		sum, h   float64 // sum of wanted tops of the block
		top      float64
	}
	var blocks []block
	for i, p := range layer {
		b := block{first: i, n: 1, sum: want[i], h: p.h + gapBelow(layer, i), top: want[i]}
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

// middle is how far below a box's top an edge to one of its ports ends.
func (p *placed) middle(port *Port) float64 {
	if c := p.cells[port]; c != nil {
		return c.y + rowHeight/2
	}
	return p.h / 2
}

// fill sorts the ports of a box into its parts, and gives all of it a size.
func (l *layout) fill(p *placed) {
	side := map[*Port]int{}
	for _, e := range l.edges[p.box] {
		port, other := e.FromPort, e.To
		if e.To == p.box {
			port, other = e.ToPort, e.From
		}
		if port == nil {
			continue
		}
		side[port] = 2
		if l.places[other].layer < p.layer {
			side[port] = 0
		}
	}
	p.lanes = [3][]*cell{}
	for _, port := range p.box.Ports {
		c := &cell{port: port, h: rowHeight}
		for _, m := range port.Members {
			c.members = append(c.members, &cell{port: m, h: rowHeight})
			c.h += rowHeight + rowGap
		}
		if len(port.Members) > 0 {
			c.h += rowGap
		}
		lane, leads := side[port]
		if !leads {
			lane = 1
		}
		p.cells[port] = c
		p.lanes[lane] = append(p.lanes[lane], c)
	}
	p.size()
}

// size gives the cells of a box their places.
func (p *placed) size() {
	headline := textWidth(p.box.Name) + textWidth(p.box.Note) + 5
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
			columns = columnsFor(cells, w)
		}
		width, height := flow(cells, x, headHeight, w, columns)
		x += width
		tallest = max(tallest, height)
	}
	p.w = max(x+padding, float64(headline)*charWidth+2*padding)
	p.h = headHeight + tallest + padding
	if tallest == 0 {
		p.h = headHeight + 4
	}
	if p.box.Hidden > 0 {
		p.h += rowHeight
	}
	// The right lane stands at the right side, however wide the headline is.
	for _, c := range p.lanes[2] {
		c.x = p.w - padding - p.widths[2]
	}
}

// columnsFor chooses a shape that is somewhat wider than tall.
func columnsFor(cells []*cell, w float64) int {
	total := 0.0
	for _, c := range cells {
		total += c.h + rowGap
	}
	const shape = 1.5
	return max(1, int(math.Round(math.Sqrt(total*shape/w))))
}

// flow fills columns from top to bottom.
func flow(cells []*cell, x, y, w float64, columns int) (width, height float64) {
	total := 0.0
	for _, c := range cells {
		total += c.h + rowGap
	}
	most := math.Ceil(total/float64(columns)/(rowHeight+rowGap)) * (rowHeight + rowGap)
	column, filled := 0, 0.0
	for _, c := range cells {
		if filled > 0 && filled+c.h > most {
			column, filled = column+1, 0
		}
		c.x, c.y, c.w = x+float64(column)*(w+columnGap), y+filled, w
		for i, m := range c.members {
			m.x, m.y, m.w = c.x+rowGap, c.y+rowHeight+float64(i)*(rowHeight+rowGap), w-2*rowGap
		}
		filled += c.h + rowGap
		height = max(height, filled-rowGap)
	}
	return float64(column+1)*(w+columnGap) - columnGap, height
}

// cellWidth is the width of the widest.
func cellWidth(cells []*cell) float64 {
	widest, names := 0.0, nameColumn(cells)
	for _, c := range cells {
		n := names + min(noteMost, textWidth(c.port.Note)) + numberWidth(c.port) + stateWidth(c.port) + 4
		for _, m := range c.members {
			n = max(n, 2+min(nameMost, textWidth(m.port.Name))+min(noteMost, textWidth(m.port.Note))+numberWidth(m.port)+stateWidth(m.port)+4)
		}
		widest = max(widest, float64(n)*charWidth+8)
	}
	return widest
}

// nameColumn is how many characters the names of some cells take.
func nameColumn(cells []*cell) int {
	n := 0
	for _, c := range cells {
		n = max(n, min(nameMost, textWidth(label(c.port))))
	}
	return n
}

func numberWidth(p *Port) int { return 6 * min(1, len(p.Number)) }

func stateWidth(p *Port) int {
	if p.State == Down || p.State == Failed {
		return 6
	}
	return 0
}

// label is the name of a port, with how many it stands for.
func label(p *Port) string {
	if p.Count > 0 {
		return p.Name + " \u00d7" + strconv.Itoa(p.Count)
	}
	return p.Name
}

func textWidth(s string) int { return runewidth.StringWidth(s) }

// orderLanes sorts the ports at a box's sides by where they lead to.
func (l *layout) orderLanes(p *placed) {
	want := map[*Port]float64{}
	for _, e := range l.edges[p.box] {
		port, other, otherPort := e.FromPort, e.To, e.ToPort
		if e.To == p.box {
			port, other, otherPort = e.ToPort, e.From, e.FromPort
		}
		if port != nil {
			q := l.places[other]
			want[port] = q.y + q.middle(otherPort)
		}
	}
	for _, lane := range []int{0, 2} {
		cells := p.lanes[lane]
		sort.SliceStable(cells, func(i, j int) bool { return want[cells[i].port] < want[cells[j].port] })
		if len(cells) > 0 {
			flow(cells, cells[0].x, headHeight, p.widths[lane], 1)
		}
	}
}

// pack places the components below each other, small ones side by side.
func (l *layout) pack(components [][]*placed) {
	type sized struct {
		boxes []*placed
		w, h  float64
	}
	var all []sized
	area, widest := 0.0, 600.0
	for _, c := range components {
		w, h := l.place(c)
		all = append(all, sized{c, w, h})
		area += (w + boxGap) * (h + boxGap)
		widest = max(widest, w)
	}
	room := max(widest, math.Sqrt(area*1.6))
	x, y, row := 0.0, 0.0, 0.0
	for _, c := range all {
		if x > 0 && x+c.w > room {
			x, y, row = 0, y+row+boxGap, 0
		}
		for _, p := range c.boxes {
			p.x += x
			p.y += y
		}
		x += c.w + boxGap
		row = max(row, c.h)
		l.w = max(l.w, x-boxGap)
	}
	l.h = y + row
}
