package graph

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ovs-offline/internal/svg"
)

// DOT writes the graph in the language of Graphviz, with each box as a table of its ports.
func (g *Graph) DOT(w io.Writer) error {
	out := picture{svg.NewWriter(w)}
	out.Printf("graph {\n  rankdir=LR; ranksep=1.2; label=%s; labelloc=t;\n  node [shape=plain, fontname=\"monospace\", fontsize=10];\n", quote(g.Title))
	boxes, ports := map[*Box]int{}, map[*Port]int{}
	for i, b := range g.Boxes {
		boxes[b] = i
		out.Printf("  b%d [label=<%s>];\n", i, table(b, ports))
	}
	for _, e := range g.Edges {
		attributes := `color="#55708a"`
		if e.Kind == Tunnel {
			attributes = `color="#d08b2c"`
		}
		if e.State.isDown() {
			attributes = `color="#d9534a", style=dashed`
		}
		out.Printf("  %s -- %s [%s];\n", dotEnd(boxes, ports, e.From, e.FromPort), dotEnd(boxes, ports, e.To, e.ToPort), attributes)
	}
	out.Printf("}\n")
	return out.Flush()
}

func dotEnd(boxes map[*Box]int, ports map[*Port]int, b *Box, p *Port) string {
	if n, ok := ports[p]; ok {
		return fmt.Sprintf("b%d:p%d", boxes[b], n)
	}
	return fmt.Sprintf("b%d", boxes[b])
}

// table returns a box as a table, with more columns the more ports it has.
func table(b *Box, ports map[*Port]int) string {
	columns := 1
	for len(b.Ports) > 24*columns*columns {
		columns++
	}
	var t strings.Builder
	fmt.Fprintf(&t, `<table cellspacing="2" border="1" cellborder="1"><tr><td border="0" colspan="%d"><b>%s</b> %s</td></tr>`, columns, svg.Escape(b.Name), svg.Escape(b.Note))
	for row := range slices.Chunk(b.Ports, columns) {
		t.WriteString("<tr>")
		for _, p := range row {
			ports[p] = len(ports)
			fmt.Fprintf(&t, `<td port="p%d" align="left" bgcolor="%s">%s</td>`, ports[p], background(p), dotText(p))
		}
		t.WriteString("</tr>")
	}
	if b.Hidden > 0 {
		fmt.Fprintf(&t, `<tr><td border="0" colspan="%d">and %d more, filtered</td></tr>`, columns, b.Hidden)
	}
	t.WriteString("</table>")
	return t.String()
}

func background(p *Port) string {
	switch {
	case p.State == Failed:
		return "#f9c4c0"
	case p.State == Down:
		return "#fde3e1"
	case p.Active:
		return "#d9f2df"
	}
	return "#ffffff"
}

// dotText returns the text of a port, with a line for each member of a bond.
func dotText(p *Port) string {
	line := func(p *Port) string {
		words := []string{p.Number, label(p), p.Note}
		if p.State.isDown() {
			words = append(words, string(p.State))
		}
		return svg.Escape(strings.Join(strings.Fields(strings.Join(words, " ")), " "))
	}
	text := line(p)
	for _, m := range p.Members {
		text += `<br align="left"/>- ` + line(m)
	}
	if len(p.Members) > 0 {
		text += `<br align="left"/>`
	}
	return text
}

// quote returns a text as a string of DOT. Control characters become U+FFFD.
func quote(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return '\uFFFD'
		}
		return r
	}, text)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.ToValidUTF8(text, "\uFFFD")) + `"`
}
