package graph

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
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
	l := arrange(g)
	out := svg{bufio.NewWriter(w)}
	legend := g.kinds()
	top := margin + rowHeight*1.5 + float64(len(g.Remarks))*rowHeight
	width := max(l.w, float64(textWidth(g.Title))*10, 120*float64(len(legend)+2)) + 2*margin
	height := top + l.h + 2*margin + rowHeight
	out.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f">`+"\n<style>%s</style>\n", width, height, width, height, style)
	out.printf("<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n", escape(g.Title))
	out.text(margin, margin+12, "title", g.Title)
	for i, remark := range g.Remarks {
		out.text(margin, margin+12+float64(i+1)*rowHeight, "note", remark)
	}
	out.printf(`<g transform="translate(%.0f %.0f)">`+"\n", margin, top)
	for _, b := range g.Boxes {
		out.frame(l.boxes[b])
	}
	for _, e := range g.Edges {
		l.draw(out, e)
	}
	for _, b := range g.Boxes {
		out.ports(l.boxes[b])
	}
	out.printf("</g>\n")
	out.legend(legend, margin, height-margin)
	out.printf("</svg>\n")
	return out.Flush()
}

// kinds returns the kinds of ports in the picture.
func (g *Graph) kinds() []Kind {
	have := map[Kind]bool{}
	for _, b := range g.Boxes {
		for _, p := range b.Ports {
			have[p.Kind] = true
			for _, m := range p.Members {
				have[m.Kind] = true
			}
		}
	}
	all := []Kind{Internal, System, Userspace, Bond, Interface, Patch, Tunnel, Attached, Child, Virtual, External, Link, Service}
	return slices.DeleteFunc(all, func(k Kind) bool { return !have[k] })
}

// svg is a writer whose Flush method returns the first error.
type svg struct{ *bufio.Writer }

func (s svg) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

func (s svg) text(x, y float64, class, text string) {
	s.printf(`<text x="%.1f" y="%.1f" class="%s">%s</text>`+"\n", x, y, class, escape(text))
}

func (s svg) rect(x, y, w, h, radius float64, class string) {
	s.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.0f" class="%s"/>`+"\n", x, y, w, h, radius, class)
}

// escape returns a text for XML. Characters that XML forbids become U+FFFD.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // writing to a Builder never fails
	return b.String()
}

// frame draws a box without its ports.
func (s svg) frame(p *placedBox) {
	s.printf("<g><title>%s</title>\n", escape(strings.Join(append([]string{string(p.box.Kind) + " " + p.box.Name}, p.box.Detail...), "\n")))
	s.rect(p.x, p.y, p.w, p.h, 6, "box "+string(p.box.Kind))
	s.text(p.x+padding, p.y+20, "name", p.box.Name)
	s.text(p.x+padding+float64(textWidth(p.box.Name)+2)*charWidth, p.y+20, "note", p.box.Note)
	if p.box.Hidden > 0 {
		s.text(p.x+padding, p.y+p.h-10, "note", fmt.Sprintf("and %d more, filtered", p.box.Hidden))
	}
	s.printf("</g>\n")
}

func (s svg) ports(p *placedBox) {
	for lane, cells := range p.lanes {
		names := nameColumn(cells)
		for _, c := range cells {
			s.port(p, c, names)
			if lane == 1 {
				for _, m := range c.members {
					s.port(p, m, min(maxName, textWidth(m.port.Name)))
				}
			}
		}
	}
}

// port draws a port, with its name in a column that is names characters wide.
func (s svg) port(p *placedBox, c *cell, names int) {
	x, y := p.x+c.x, p.y+c.y
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
	s.printf("<g><title>%s</title>\n", escape(strings.Join(append([]string{c.port.Name, c.port.Note}, c.port.Detail...), "\n")))
	s.rect(x, y, c.w, c.h, 3, class)
	s.printf(`<rect x="%.1f" y="%.1f" width="5" height="%.1f" fill="%s"/>`+"\n", x, y, c.h, colours[c.port.Kind])
	at := x + 10
	if n := numberWidth(c.port); n > 0 {
		s.text(at+float64(5-len(c.port.Number))*charWidth, y+15, "number", c.port.Number)
		at += float64(n) * charWidth
	}
	class = ""
	if c.port.Active || len(c.members) > 0 {
		class = "name"
	}
	s.text(at, y+15, class, shorten(label(c.port), maxName))
	at += float64(names+1) * charWidth
	s.text(at, y+15, "note", shorten(c.port.Note, maxNote))
	if n := stateWidth(c.port); n > 0 {
		word := string(c.port.State)
		s.text(x+c.w-float64(len(word)+1)*charWidth, y+15, "bad", word)
	}
	s.printf("</g>\n")
}

// shorten cuts a text in its middle, because names differ at both ends.
func shorten(text string, limit int) string {
	if textWidth(text) <= limit {
		return text
	}
	half := (limit - 1) / 2
	head := runewidth.Truncate(text, half, "")
	runes := []rune(text)
	tail, width := len(runes), 0
	for tail > 0 && width+runewidth.RuneWidth(runes[tail-1]) <= limit-1-half {
		tail--
		width += runewidth.RuneWidth(runes[tail])
	}
	return head + "\u2026" + string(runes[tail:])
}

// draw draws an edge between two ports, or a port and a box.
func (l *layout) draw(s svg, e *Edge) {
	from, to := l.boxes[e.From], l.boxes[e.To]
	x1, y1 := from.anchor(e.FromPort, to.layer < from.layer)
	x2, y2 := to.anchor(e.ToPort, from.layer < to.layer)
	bend := max(40, (x2-x1)/2)
	c1, c2 := x1+bend, x2-bend
	switch {
	case from.layer == to.layer: // both ends on the right side
		c1, c2 = max(x1, x2)+60, max(x1, x2)+60
	case to.layer < from.layer:
		bend = max(40, (x1-x2)/2)
		c1, c2 = x1-bend, x2+bend
	}
	class := "edge " + string(e.Kind)
	if e.State.isDown() {
		class += " " + string(e.State)
	}
	s.printf(`<path class="%s" d="M %.1f %.1f C %.1f %.1f %.1f %.1f %.1f %.1f"/>`+"\n", class, x1, y1, c1, y1, c2, y2, x2, y2)
}

// anchor returns the point at which an edge leaves a box: at the height of its
// port, on the left or right side.
func (p *placedBox) anchor(port *Port, left bool) (x, y float64) {
	x, w := p.x, p.w
	if c := p.cells[port]; c != nil {
		x, w = p.x+c.x, c.w
	}
	if !left {
		x += w
	}
	return x, p.y + p.middle(port)
}

func (s svg) legend(kinds []Kind, x, y float64) {
	for _, k := range kinds {
		s.printf(`<rect x="%.1f" y="%.1f" width="5" height="14" fill="%s"/>`+"\n", x, y-11, colours[k])
		s.text(x+10, y, "note", string(k))
		x += float64(len(k)+4)*charWidth + 10
	}
	for _, state := range []State{Down, Failed} {
		s.rect(x, y-12, 22, 15, 3, "port "+string(state))
		s.text(x+28, y, "note", string(state))
		x += float64(len(state)+4)*charWidth + 26
	}
	s.rect(x, y-12, 22, 15, 3, "port active")
	s.text(x+28, y, "note", "active")
}
