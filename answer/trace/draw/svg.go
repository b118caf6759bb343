package draw

import (
	"fmt"
	"io"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/svg"
	"ovs-offline/internal/webpage"
)

// style is the style sheet of a picture. The dark colours are for screens only.
const style = `
.way text { font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 12px; fill: #1b2733; white-space: pre }
.way .verdict { font-size: 20px; font-weight: bold }
.way .title, .way .name, .way .rule { font-weight: bold }
.way .note { fill: #5b6772 }
.way .page { fill: #ffffff }
.way .node { fill: #f1f4f7; stroke: #8796a5; stroke-width: 1.2 }
.way .bridge { fill: #ffffff; stroke: #b5c0ca }
.way .hop rect { fill: #eef4fb; stroke: #a9c1d9 }
.way .reply .hop rect { fill: #f5effa; stroke: #c4aed6 }
.way .end rect { fill: #f4f5f6; stroke: #8796a5 }
.way .arrived rect { fill: #e6f4ea; stroke: #1a6b32 }
.way .dropped rect { fill: #fdecea; stroke: #b3111b }
.way .deciding rect { stroke-width: 3 }
.way .answered rect { fill: #fdf6ec; stroke: #8a5a00 }
.way .unknown rect { fill: #fdf6ec; stroke: #8a5a00; stroke-dasharray: 5 3 }
.way .good, .way .arrived .title { fill: #1a6b32 }
.way .bad, .way .dropped .title, .way .deciding .rule { fill: #b3111b }
.way .unsure, .way .answered .title, .way .unknown .title { fill: #8a5a00 }
.way .line { fill: none; stroke: #2563a8; stroke-width: 2 }
.way .head { fill: #2563a8 }
.way .reply .line { stroke: #7a3fa0; stroke-dasharray: 7 3 }
.way .reply .head { fill: #7a3fa0 }
.way a:hover rect, .way a:focus rect { stroke-width: 3 }
@media screen and (prefers-color-scheme: dark) {
.way text { fill: #e3e8ed }
.way .note { fill: #a3afba }
.way .page { fill: #14181d }
.way .node { fill: #1b2128; stroke: #66737f }
.way .bridge { fill: #14181d; stroke: #55616d }
.way .hop rect { fill: #1c2b3b; stroke: #41617f }
.way .reply .hop rect { fill: #2a2034; stroke: #64497d }
.way .end rect { fill: #242b33; stroke: #8796a5 }
.way .arrived rect { fill: #16301f; stroke: #7fd192 }
.way .dropped rect { fill: #3a1b1b; stroke: #ff8a80 }
.way .answered rect, .way .unknown rect { fill: #332a16; stroke: #f0c060 }
.way .good, .way .arrived .title { fill: #7fd192 }
.way .bad, .way .dropped .title, .way .deciding .rule { fill: #ff8a80 }
.way .unsure, .way .answered .title, .way .unknown .title { fill: #f0c060 }
.way .line { stroke: #7db4ea }
.way .head { fill: #7db4ea }
.way .reply .line { stroke: #cfa6f0 }
.way .reply .head { fill: #cfa6f0 }
}
`

// SVG writes an answer as a picture: the verdict, and the way of the packet over nodes
// and bridges. The way of the reply is below it, from right to left.
func SVG(w io.Writer, a *answer.Answer) error {
	out := canvas{Writer: svg.NewWriter(w)}
	newPicture(a, false).draw(out)
	return out.Flush()
}

// picture is an answer with the positions of everything that is drawn.
type picture struct {
	answer  *answer.Answer
	page    bool   // the picture is part of a page, which has the header and the style sheet
	id      string // what the ids of its elements begin with
	header  []headerLine
	ways    []*way
	tops    []float64 // the y of each way
	titles  []string  // of each way
	legendY float64
	w, h    float64
}

type headerLine struct {
	x, y  float64
	class string
	text  string
}

// newPicture computes all positions.
func newPicture(drawn *answer.Answer, page bool) *picture {
	p := &picture{answer: drawn, page: page}
	p.addWay(drawn, "", "way of the packet")
	if drawn.Return != nil {
		p.addWay(drawn.Return, "r", "way of the reply: "+shorten(string(drawn.Return.Verdict), 40))
	}
	const leastWidth = 640
	p.w = leastWidth
	for _, w := range p.ways {
		p.w = max(p.w, w.w+2*margin)
	}
	y := margin
	if !page {
		y = p.addHeader(y)
	}
	for i, w := range p.ways {
		p.tops = append(p.tops, y+lineHeight)
		y += w.h + 2*lineHeight
		if i < len(p.ways)-1 {
			y += visitGap
		}
	}
	p.legendY = y + lineHeight
	p.h = p.legendY + margin
	return p
}

func (p *picture) addWay(drawn *answer.Answer, prefix, title string) {
	w := newWay(drawn, prefix)
	w.arrange()
	p.ways, p.titles = append(p.ways, w), append(p.titles, title)
}

// verdictClass is the colour of each verdict.
func verdictClass(verdict answer.Verdict) string {
	switch verdict {
	case answer.Reachable:
		return "good"
	case answer.Unreachable, answer.OneWay:
		return "bad"
	}
	return "unsure"
}

// addHeader writes the verdict and the facts above the picture, and returns the y below them.
func (p *picture) addHeader(y float64) float64 {
	const labelWidth = 10
	columns := int((p.w - 2*margin) / svg.CharWidth)
	add := func(x float64, class, text string) {
		p.header = append(p.header, headerLine{x, y, class, text})
	}
	y += 16
	add(margin, "verdict "+verdictClass(p.answer.Verdict), shorten(string(p.answer.Verdict), 40))
	facts := append([]answer.Fact{{Label: "", Lines: []string{p.answer.Headline()}}, {Label: "question", Lines: []string{p.answer.Question}}}, p.answer.Facts()...)
	for _, fact := range facts {
		if fact.Label == "path" { // the picture is the path
			continue
		}
		y += lineHeight
		indent := labelWidth * svg.CharWidth
		class := ""
		if fact.Label == "" {
			y += 4
			indent, class = 0, "title"
		} else {
			add(margin, "note", fact.Label)
		}
		for i, text := range fact.Lines {
			for j, part := range wrap(text, columns-int(indent/titleWidth)-4) {
				if i+j > 0 {
					y += lineHeight
				}
				add(margin+indent, class, part)
			}
		}
	}
	return y + 2*lineHeight
}

func (p *picture) draw(out canvas) {
	role, sheet := "img", "<style>"+style+"</style>\n"
	if p.page {
		role, sheet = "group", ""
	}
	out.Printf(`<svg xmlns="http://www.w3.org/2000/svg" class="way" role="%s" aria-labelledby="%sway-title %sway-desc" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f">`+"\n%s", role, p.id, p.id, p.w, p.h, p.w, p.h, sheet)
	out.Printf("<title id=\"%sway-title\">%s</title>\n<desc id=\"%sway-desc\">%s</desc>\n", p.id, svg.Escape(webpage.Plain(string(p.answer.Verdict)+": "+p.answer.Question)), p.id, svg.Escape(p.describe()))
	out.Printf("<rect width=\"100%%\" height=\"100%%\" class=\"page\"/>\n")
	for _, l := range p.header {
		out.Text(l.x, l.y, l.class, l.text)
	}
	for i, w := range p.ways {
		class := "packet"
		out.flip = i > 0
		if out.flip {
			class = "reply"
		}
		out.width = p.w - 2*margin
		out.Printf(`<g class="%s" transform="translate(%.0f %.0f)">`+"\n", class, margin, p.tops[i])
		if len(p.ways) > 1 {
			out.Text(0, -12, "title", p.titles[i])
		}
		w.draw(out, p)
		out.Printf("</g>\n")
	}
	p.drawLegend(out)
	out.Printf("</svg>\n")
}

// describe returns the picture in words.
func (p *picture) describe() string {
	words := []string{webpage.Plain(p.answer.Headline())}
	for _, fact := range p.answer.Facts() {
		words = append(words, fact.Label+": "+webpage.Plain(strings.Join(fact.Lines, "; ")))
	}
	return strings.Join(words, ". ")
}

func (p *picture) drawLegend(out canvas) {
	x := margin
	for i, text := range []string{"way of the packet", "way of the reply"}[:len(p.ways)] {
		class := []string{"packet", "reply"}[i]
		out.Printf(`<g class="%s"><path class="line" d="M %.1f %.1f h 34"/><path class="head" d="M %.1f %.1f l -9 -5 v 10 z"/></g>`+"\n", class, x, p.legendY-4, x+40, p.legendY-4)
		out.Text(x+48, p.legendY, "note", text)
		x += 48 + float64(len(text)+4)*svg.CharWidth
	}
	out.Text(x, p.legendY, "note", "numbers: hops of the path")
}

// canvas draws the way of a packet, from right to left if flip is set.
type canvas struct {
	svg.Writer
	flip  bool
	width float64
}

// left returns the left side of something of a width, in the picture.
func (c canvas) left(x, width float64) float64 {
	if c.flip {
		return c.width - x - width
	}
	return x
}

// line draws a line through points, with an arrow head at its end.
func (c canvas) line(points ...float64) {
	var path strings.Builder
	for i := 0; i < len(points); i += 2 {
		word := "L"
		if i == 0 {
			word = "M"
		}
		fmt.Fprintf(&path, "%s %.1f %.1f ", word, c.left(points[i], 0), points[i+1])
	}
	n := len(points)
	x, y := c.left(points[n-2], 0), points[n-1]
	c.Printf(`<path class="line" d="%s"/>`+"\n", strings.TrimSpace(path.String()))
	switch {
	case points[n-4] == points[n-2]: // downwards
		c.Printf(`<path class="head" d="M %.1f %.1f l -5 -9 h 10 z"/>`+"\n", x, y)
	case c.flip:
		c.Printf(`<path class="head" d="M %.1f %.1f l 9 -5 v 10 z"/>`+"\n", x, y)
	default:
		c.Printf(`<path class="head" d="M %.1f %.1f l -9 -5 v 10 z"/>`+"\n", x, y)
	}
}

func (w *way) draw(out canvas, p *picture) {
	for _, v := range w.visits {
		v.drawFrame(out)
	}
	for _, l := range w.links {
		l.draw(out)
	}
	for _, v := range w.visits {
		for _, b := range v.bridges {
			b.drawPatch(out)
			for _, r := range b.rows {
				r.drawJoint(out)
			}
			for _, r := range b.rows {
				w.drawRow(out, r, p)
			}
		}
	}
}

// drawFrame draws a node and its bridges without their rows.
func (v *visit) drawFrame(out canvas) {
	x := out.left(v.x, v.w)
	out.Printf("<g><title>node %s</title>\n", svg.Escape(webpage.Plain(v.node)))
	out.Rect(x, v.y, v.w, v.h, 8, "node")
	out.Text(x+padding, v.y+19, "title", v.title())
	out.Printf("</g>\n")
	for _, b := range v.bridges {
		left := out.left(v.x+b.x, b.w)
		out.Printf("<g><title>bridge %s</title>\n", svg.Escape(webpage.Plain(b.name)))
		out.Rect(left, v.y+b.y, b.w, b.h, 5, "bridge")
		out.Text(left+padding, v.y+b.y+18, "name", b.title())
		out.Printf("</g>\n")
		out.Text(left+padding, v.y+b.y-8, "note", b.label())
	}
}

// drawPatch draws the line from another bridge of the node, at the side where packets enter.
func (b *bridge) drawPatch(out canvas) {
	if b.from == nil {
		return
	}
	x1, y1 := b.from.position()
	x2, y2 := b.rows[0].position()
	gutter := b.visit.x + b.gutter
	out.line(x1, y1+b.from.h-rowPadding, gutter, y1+b.from.h-rowPadding, gutter, y2+b.rows[0].middle(), x2, y2+b.rows[0].middle())
}

// drawJoint draws the line from the row before, in the same bridge.
func (r *row) drawJoint(out canvas) {
	if r.parent == nil {
		return
	}
	x1, y1 := r.parent.position()
	x2, y2 := r.position()
	rail := x1 + indent/2
	if len(r.parent.children) == 1 {
		out.line(rail, y1+r.parent.h, rail, y2)
		return
	}
	out.line(rail, y1+r.parent.h, rail, y2+r.middle(), x2, y2+r.middle())
}

// draw draws the link to another node, with what carries it above and the choice below.
func (l *link) draw(out canvas) {
	x1, _ := l.from.position()
	x2, _ := l.to.bridges[0].rows[0].position()
	y1, y2 := l.leaveY(), l.enterY()
	out.line(x1+l.from.w, y1, l.bus, y1, l.bus, y2, x2, y2)
	for i, text := range l.label {
		width := float64(svg.Width(text)) * svg.CharWidth
		out.Text(out.left(l.to.x-padding-width, width), y2-7+float64(i)*(lineHeight+5), "note", text)
	}
}

// drawRow draws a row. In a page it leads to the hop's stages.
func (w *way) drawRow(out canvas, r *row, p *picture) {
	x, y := r.position()
	x = out.left(x, r.w)
	if p.page && r.hop >= 0 {
		out.Printf(`<a href="#%s">`, hopID(p.id, w.number(r.hop)))
	}
	out.Printf("<g class=\"%s\"><title>%s</title>\n", r.class, svg.Escape(strings.Join(append([]string{r.title}, r.tooltip...), "\n")))
	out.Rect(x, y, r.w, r.h, 4, "row")
	out.Text(x+rowPadding, y+lineHeight-1, "title", r.title)
	for i, l := range r.lines {
		out.Text(x+rowPadding, y+float64(i+2)*lineHeight-1, l.class, l.text)
	}
	out.Printf("</g>")
	if p.page && r.hop >= 0 {
		out.Printf("</a>")
	}
	out.Printf("\n")
}

// hopID returns the anchor of a hop in a page, whose ids begin with id.
func hopID(id, number string) string { return id + "hop-" + number }
