package graph

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ovs-offline/internal/svg"
)

// style is the style sheet. A strip of colour marks the kind of a port; red and a
// word mark what was not up.
const style = `
text { font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 12px; fill: #1b2733; white-space: pre }
.title { font-size: 16px; font-weight: bold }
.name { font-weight: bold }
.note, .number { fill: #66737f }
.bad { fill: #b3111b; font-weight: bold }
.box { fill: #f7f9fb; stroke: #8796a5; stroke-width: 1.2 }
.box.router { fill: #f6f2fb; stroke: #8a76ad }
.box.remote, .box.network { fill: #fdf6ec; stroke: #c79a5b; stroke-dasharray: 5 3 }
.port { fill: #ffffff; stroke: #c9d2da }
.port.down { fill: #fde3e1; stroke: #d9534a }
.port.error { fill: #f9c4c0; stroke: #b3111b; stroke-width: 1.6 }
.port.active { stroke: #1a7f37; stroke-width: 2 }
.bond { fill: #eef3f7; stroke: #8796a5 }
.edge { fill: none; stroke: #55708a; stroke-width: 1.5 }
.edge.tunnel { stroke: #d08b2c }
.edge.down, .edge.error { stroke: #d9534a; stroke-dasharray: 6 4 }
`

// colours are the colours of the strips of ports.
var colours = map[Kind]string{
	Internal: "#8a949e", System: "#2f6fb2", Userspace: "#c2417c", Bond: "#137a6c", Interface: "#3a9a4c",
	Patch: "#7d5ba6", Tunnel: "#d08b2c", Attached: "#3a9a4c", Link: "#7d5ba6", Service: "#8a949e",
	Virtual: "#c2417c", External: "#2f6fb2", Child: "#137a6c",
}

// SVG writes the graph as a picture for a browser. The details of a port are in
// its tooltip.
func (g *Graph) SVG(w io.Writer) error {
	layout := arrange(g)
	out := picture{svg.NewWriter(w)}
	legend := g.kinds()
	top := margin + rowHeight*1.5 + float64(len(g.Remarks))*rowHeight
	width := max(layout.w, float64(svg.Width(g.Title))*10, 120*float64(len(legend)+2)) + 2*margin
	height := top + layout.h + 2*margin + rowHeight
	out.Printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f">`+"\n<style>%s</style>\n", width, height, width, height, style)
	out.Printf("<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n", svg.Escape(g.Title))
	out.Text(margin, margin+12, "title", g.Title)
	for i, remark := range g.Remarks {
		out.Text(margin, margin+12+float64(i+1)*rowHeight, "note", remark)
	}
	out.Printf(`<g transform="translate(%.0f %.0f)">`+"\n", margin, top)
	for _, box := range g.Boxes {
		out.frame(layout.boxes[box])
	}
	for _, edge := range g.Edges {
		layout.draw(out, edge)
	}
	for _, box := range g.Boxes {
		out.ports(layout.boxes[box])
	}
	out.Printf("</g>\n")
	out.legend(legend, margin, height-margin)
	out.Printf("</svg>\n")
	return out.Flush()
}

// kinds returns the kinds of ports in the picture.
func (g *Graph) kinds() []Kind {
	have := map[Kind]bool{}
	for _, box := range g.Boxes {
		for _, p := range box.Ports {
			have[p.Kind] = true
			for _, port := range p.Members {
				have[port.Kind] = true
			}
		}
	}
	all := []Kind{Internal, System, Userspace, Bond, Interface, Patch, Tunnel, Attached, Child, Virtual, External, Link, Service}
	return slices.DeleteFunc(all, func(kind Kind) bool { return !have[kind] })
}

// picture writes the parts of a graph.
type picture struct{ svg.Writer }

// frame draws a box without its ports.
func (s picture) frame(box *placedBox) {
	s.Printf("<g><title>%s</title>\n", svg.Escape(strings.Join(append([]string{string(box.box.Kind) + " " + box.box.Title()}, box.box.Detail...), "\n")))
	s.Rect(box.x, box.y, box.w, box.h, 6, "box "+string(box.box.Kind))
	name := svg.Shorten(box.box.Title(), maxBoxName)
	s.Text(box.x+padding, box.y+20, "name", name)
	s.Text(box.x+padding+float64(svg.Width(name)+2)*svg.CharWidth, box.y+20, "note", box.box.Note)
	if box.box.Hidden > 0 {
		s.Text(box.x+padding, box.y+box.h-10, "note", fmt.Sprintf("and %d more, filtered", box.box.Hidden))
	}
	s.Printf("</g>\n")
}

func (s picture) ports(box *placedBox) {
	for lane, cells := range box.lanes {
		names := nameColumn(cells)
		for _, c := range cells {
			s.port(box, c, names)
			if lane == 1 {
				for _, cell := range c.members {
					s.port(box, cell, min(maxName, svg.Width(cell.port.Name)))
				}
			}
		}
	}
}

// port draws a port, with its name in a column that is names characters wide.
func (s picture) port(box *placedBox, c *cell, names int) {
	x, y := box.x+c.x, box.y+c.y
	class := "port"
	if len(c.members) > 0 {
		class = "bond"
	}
	if c.port.State.isDown() {
		class += " " + string(c.port.State)
	}
	if c.port.Active {
		class += " active"
	}
	s.Printf("<g><title>%s</title>\n", svg.Escape(strings.Join(append([]string{c.port.Name, c.port.Note}, c.port.Detail...), "\n")))
	s.Rect(x, y, c.w, c.h, 3, class)
	s.Printf(`<rect x="%.1f" y="%.1f" width="5" height="%.1f" fill="%s"/>`+"\n", x, y, c.h, colours[c.port.Kind])
	at := x + 10
	if n := numberWidth(c.port); n > 0 {
		s.Text(at+float64(5-len(c.port.Number))*svg.CharWidth, y+15, "number", c.port.Number)
		at += float64(n) * svg.CharWidth
	}
	class = ""
	if c.port.Active || len(c.members) > 0 {
		class = "name"
	}
	s.Text(at, y+15, class, svg.Shorten(label(c.port), maxName))
	at += float64(names+1) * svg.CharWidth
	s.Text(at, y+15, "note", svg.Shorten(c.port.Note, maxNote))
	if n := stateWidth(c.port); n > 0 {
		word := string(c.port.State)
		s.Text(x+c.w-float64(len(word)+1)*svg.CharWidth, y+15, "bad", word)
	}
	s.Printf("</g>\n")
}

// draw draws an edge between two ports, or a port and a box.
func (l *layout) draw(picture picture, edge *Edge) {
	from, to := l.boxes[edge.From], l.boxes[edge.To]
	x1, y1 := from.anchor(edge.FromPort, to.layer < from.layer)
	x2, y2 := to.anchor(edge.ToPort, from.layer < to.layer)
	bend := max(40, (x2-x1)/2)
	c1, c2 := x1+bend, x2-bend
	switch {
	case from.layer == to.layer: // both ends on the right side
		c1, c2 = max(x1, x2)+60, max(x1, x2)+60
	case to.layer < from.layer:
		bend = max(40, (x1-x2)/2)
		c1, c2 = x1-bend, x2+bend
	}
	class := "edge " + string(edge.Kind)
	if edge.State.isDown() {
		class += " " + string(edge.State)
	}
	picture.Printf(`<path class="%s" d="M %.1f %.1f C %.1f %.1f %.1f %.1f %.1f %.1f"/>`+"\n", class, x1, y1, c1, y1, c2, y2, x2, y2)
}

// anchor returns the point at which an edge leaves a box: at the height of its
// port, on the left or right side.
func (p *placedBox) anchor(port *Port, left bool) (x, y float64) {
	x, w := p.x, p.w
	if cell := p.cells[port]; cell != nil {
		x, w = p.x+cell.x, cell.w
	}
	if !left {
		x += w
	}
	return x, p.y + p.edgeOffset(port)
}

func (s picture) legend(kinds []Kind, x, y float64) {
	for _, kind := range kinds {
		s.Printf(`<rect x="%.1f" y="%.1f" width="5" height="14" fill="%s"/>`+"\n", x, y-11, colours[kind])
		s.Text(x+10, y, "note", string(kind))
		x += float64(len(kind)+4)*svg.CharWidth + 10
	}
	for _, state := range []State{Down, Failed} {
		s.Rect(x, y-12, 22, 15, 3, "port "+string(state))
		s.Text(x+28, y, "note", string(state))
		x += float64(len(state)+4)*svg.CharWidth + 26
	}
	s.Rect(x, y-12, 22, 15, 3, "port active")
	s.Text(x+28, y, "note", "active")
}
