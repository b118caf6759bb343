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
	for i, box := range g.Boxes {
		boxes[box] = i
		out.Printf("  b%d [label=<%s>];\n", i, table(box, ports))
	}
	for _, edge := range g.Edges {
		attributes := `color="#55708a"`
		if edge.Kind == Tunnel {
			attributes = `color="#d08b2c"`
		}
		if edge.State.isDown() {
			attributes = `color="#d9534a", style=dashed`
		}
		out.Printf("  %s -- %s [%s];\n", dotEnd(boxes, ports, edge.From, edge.FromPort), dotEnd(boxes, ports, edge.To, edge.ToPort), attributes)
	}
	out.Printf("}\n")
	return out.Flush()
}

func dotEnd(boxes map[*Box]int, ports map[*Port]int, box *Box, port *Port) string {
	if n, ok := ports[port]; ok {
		return fmt.Sprintf("b%d:p%d", boxes[box], n)
	}
	return fmt.Sprintf("b%d", boxes[box])
}

// table returns a box as a table, with more columns the more ports it has.
func table(box *Box, ports map[*Port]int) string {
	columns := 1
	for len(box.Ports) > 24*columns*columns {
		columns++
	}
	var text strings.Builder
	fmt.Fprintf(&text, `<table cellspacing="2" border="1" cellborder="1"><tr><td border="0" colspan="%d"><b>%s</b> %s</td></tr>`, columns, svg.Escape(box.Title()), svg.Escape(box.Note))
	for row := range slices.Chunk(box.Ports, columns) {
		text.WriteString("<tr>")
		for _, port := range row {
			ports[port] = len(ports)
			fmt.Fprintf(&text, `<td port="p%d" align="left" bgcolor="%s">%s</td>`, ports[port], background(port), dotText(port))
		}
		text.WriteString("</tr>")
	}
	if box.Hidden > 0 {
		fmt.Fprintf(&text, `<tr><td border="0" colspan="%d">and %d more, filtered</td></tr>`, columns, box.Hidden)
	}
	text.WriteString("</table>")
	return text.String()
}

func background(port *Port) string {
	switch {
	case port.State == Failed:
		return "#f9c4c0"
	case port.State == Down:
		return "#fde3e1"
	case port.Active:
		return "#d9f2df"
	}
	return "#ffffff"
}

// dotText returns the text of a port, with a line for each member of a bond.
func dotText(p *Port) string {
	line := func(port *Port) string {
		words := []string{port.Number, label(port), port.Note}
		if port.State.isDown() {
			words = append(words, string(port.State))
		}
		return svg.Escape(strings.Join(strings.Fields(strings.Join(words, " ")), " "))
	}
	text := line(p)
	for _, port := range p.Members {
		text += `<br align="left"/>- ` + line(port)
	}
	if len(p.Members) > 0 {
		text += `<br align="left"/>`
	}
	return text
}

// quote returns a text as a string of DOT. Control characters become U+FFFD.
func quote(text string) string {
	text = strings.Map(func(char rune) rune {
		if char < ' ' {
			return '\uFFFD'
		}
		return char
	}, text)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.ToValidUTF8(text, "\uFFFD")) + `"`
}
