package draw

import (
	"encoding/csv"
	"io"
	"strings"

	"ovs-offline/answer/reach"
	"ovs-offline/answer/trace/answer"
)

// Lines writes a line of CSV for each pair of members and port.
type Lines struct{ *csv.Writer }

// NewLines returns Lines, and writes their header.
func NewLines(out io.Writer) (Lines, error) {
	w := Lines{csv.NewWriter(out)}
	return w, w.Write([]string{"from", "to", "port", "verdict", "sender", "receiver", "member_verdict", "reply", "reason", "rule", "family"})
}

// Add writes the lines of a cell.
func (w Lines) Add(c reach.Cell) error {
	for _, a := range c.Asked {
		_ = w.Write(plainCells(c.From, c.To, c.Port.String(), string(c.Verdict), a.From, a.To, string(a.Verdict), string(a.Reply), a.Reason, a.Rule, answer.FamilyText(a.Family)))
	}
	w.Flush()
	return w.Error()
}

// plainCells returns texts for a file that a spreadsheet reads: without control characters,
// and none that a spreadsheet takes for a formula.
func plainCells(texts ...string) []string {
	for i, text := range texts {
		text = escapedLine(text)
		if strings.ContainsAny(text[:min(1, len(text))], "=+-@") {
			text = "'" + text
		}
		texts[i] = text
	}
	return texts
}
