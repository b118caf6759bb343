package draw

import (
	"cmp"
	"iter"
	"slices"

	"ovs-offline/internal/svg"
)

// The layout puts the visits to nodes in columns, by the number of visits before. In a
// column they are below each other, in the order of the rows that send the packet to
// them, so that links cross no box. The bridges of a visit are below each other, and so
// are the rows of a bridge.

// Measures, in pixels.
const (
	lineHeight = 17.0
	titleWidth = 7.9 // of a bold character
	rowPadding = 8.0
	rowGap     = 16.0
	indent     = 26.0
	headHeight = 28.0
	padding    = 10.0
	bridgeGap  = 30.0
	visitGap   = 28.0
	gutterLane = 10.0
	busLane    = 9.0
	margin     = 24.0
	minWidth   = 150.0
)

// arrange computes all positions.
func (w *way) arrange() {
	for _, v := range w.visits {
		v.setSize()
	}
	w.stackVisits()
	w.setColumns()
	for _, v := range w.visits {
		w.w, w.h = max(w.w, v.x+v.w), max(w.h, v.y+v.h)
	}
}

// setSize computes the size of a row.
func (r *row) setSize() {
	r.w = float64(svg.Width(r.title))*titleWidth + 2*rowPadding
	for _, l := range r.lines {
		r.w = max(r.w, float64(svg.Width(l.text))*textWidth(l.class)+2*rowPadding)
	}
	r.h = float64(1+len(r.lines))*lineHeight + rowPadding
}

// textWidth returns the width of a character of a class.
func textWidth(class string) float64 {
	if class == "name" || class == "rule" {
		return titleWidth
	}
	return svg.CharWidth
}

// setSize computes the positions of the rows of a bridge, and its size. An only child is
// below its row; several are indented.
func (b *bridge) setSize() {
	y := headHeight
	var place func(r *row, x float64)
	place = func(r *row, x float64) {
		r.setSize()
		r.x, r.y = x, y
		y += r.h + rowGap
		if len(r.children) > 1 {
			x += indent
		}
		for _, child := range r.children {
			place(child, x)
		}
	}
	place(b.rows[0], padding)
	b.w = max(minWidth, float64(svg.Width(b.title()))*titleWidth+2*padding)
	for _, r := range b.rows {
		b.w = max(b.w, r.x+r.w+padding)
	}
	for _, r := range b.rows {
		r.w = b.w - padding - r.x
	}
	b.h = y - rowGap + padding
}

// title returns the name above the rows of a bridge.
func (b *bridge) title() string { return shorten(b.name, maxLine) }

// setSize computes the positions of the bridges of a visit, and its size.
func (v *visit) setSize() {
	gutter, lanes := padding, 0
	for _, b := range v.bridges[1:] {
		lanes++
		b.gutter = gutter + gutterLane*float64(lanes) - gutterLane/2
	}
	if lanes > 0 {
		gutter += gutterLane * float64(lanes)
	}
	y := headHeight
	v.w = float64(svg.Width(v.title()))*titleWidth + 2*padding
	for i, b := range v.bridges {
		if i > 0 {
			y += bridgeGap
		}
		b.setSize()
		b.x, b.y = gutter, y
		y += b.h
		v.w = max(v.w, b.x+b.w+padding, b.x+float64(svg.Width(b.label()))*svg.CharWidth+2*padding)
	}
	for _, b := range v.bridges {
		b.w = v.w - padding - b.x
		for _, r := range b.rows {
			r.w = b.w - padding - r.x
		}
	}
	v.h = y + padding
}

func (v *visit) title() string { return shorten(v.node, maxLine) }

// label returns what carried the packet to a bridge from another one of the node.
func (b *bridge) label() string {
	if b.from == nil {
		return ""
	}
	return shorten(b.via, maxLine)
}

// stackVisits computes the y of the visits, column by column, in the order of the rows that
// send the packet there: each at the height of its row, if no other visit is there and
// the tallest column has the room.
func (w *way) stackVisits() {
	var columns [][]*visit
	tallest := 0.0
	for _, v := range w.visits {
		for len(columns) <= v.depth {
			columns = append(columns, nil)
		}
		columns[v.depth] = append(columns[v.depth], v)
	}
	for _, column := range columns {
		tallest = max(tallest, height(column))
	}
	for i, column := range columns {
		slices.SortStableFunc(column, func(a, b *visit) int { return cmp.Compare(a.straightY(), b.straightY()) })
		next := 0.0
		for _, v := range column {
			v.y = max(next, v.straightY())
			next = v.y + v.h + visitGap
		}
		limit := tallest
		for _, v := range slices.Backward(column) {
			v.y = min(v.y, limit-v.h)
			limit = v.y - visitGap
		}
		if i > 0 {
			w.setTurns(column)
		}
	}
}

// height returns the height of a column of visits.
func height(column []*visit) float64 {
	sum := -visitGap
	for _, v := range column {
		sum += v.h + visitGap
	}
	return sum
}

// straightY returns the y at which the link to a visit is straight.
func (v *visit) straightY() float64 {
	if v.link == nil {
		return 0
	}
	return v.link.leaveY() - v.entry()
}

// setTurns gives each row with links an x at which these turn, relative to the end of the
// column of the rows. No link crosses another: of the links that turn
// downwards, the links of upper rows turn further to the right, and of the links that turn
// upwards, the links of lower rows.
func (w *way) setTurns(column []*visit) {
	lanes := 0
	assign := func(links iter.Seq2[int, *visit], down bool) {
		lane := 0
		var last *row
		for _, v := range links {
			if down != (v.link.enterY() > v.link.leaveY()) {
				continue
			}
			if v.link.from != last {
				lane++
				last = v.link.from
			}
			v.link.bus = float64(lane) * busLane
			lanes = max(lanes, lane)
		}
	}
	assign(slices.Backward(column), true)
	assign(slices.All(column), false)
	w.turns = append(w.turns, float64(lanes+1)*busLane)
}

// setColumns computes the x of the visits, with the gaps that the labels of links need.
func (w *way) setColumns() {
	widths, labels := make([]float64, len(w.turns)+1), make([]float64, len(w.turns)+1)
	for _, v := range w.visits {
		widths[v.depth] = max(widths[v.depth], v.w)
	}
	for _, l := range w.links {
		for _, text := range l.label {
			labels[l.to.depth] = max(labels[l.to.depth], float64(svg.Width(text))*svg.CharWidth)
		}
	}
	x := make([]float64, len(widths))
	for i, turns := range w.turns {
		x[i+1] = x[i] + widths[i] + turns + max(labels[i+1], 30) + 2*padding
	}
	for _, v := range w.visits {
		v.x = x[v.depth]
	}
	for _, l := range w.links {
		l.bus += x[l.to.depth-1] + widths[l.to.depth-1]
	}
}

// entry returns the y at which links enter, relative to the visit.
func (v *visit) entry() float64 {
	b := v.bridges[0]
	return b.y + b.rows[0].y + b.rows[0].middle()
}

// middle returns the y of the title of a row, relative to it.
func (r *row) middle() float64 { return rowPadding/2 + lineHeight/2 }

// position returns the position of a row in the picture.
func (r *row) position() (x, y float64) {
	return r.bridge.visit.x + r.bridge.x + r.x, r.bridge.visit.y + r.bridge.y + r.y
}

func (l *link) leaveY() float64 {
	_, y := l.from.position()
	return y + l.from.middle()
}

func (l *link) enterY() float64 { return l.to.y + l.to.entry() }
