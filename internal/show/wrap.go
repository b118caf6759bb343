package show

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// Wrap returns a text as lines of at most width columns. A line ends behind a space or a
// comma, and within a word where it has neither.
func Wrap(text string, width int) []string {
	var all []string
	line, columns, breakAt := "", 0, 0 // breakAt is where line may end
	for _, r := range text {
		line += string(r)
		columns += runewidth.RuneWidth(r)
		if columns > width && r != ' ' && len(line) > len(string(r)) {
			if breakAt == 0 {
				breakAt = len(line) - len(string(r))
			}
			all = append(all, strings.TrimRight(line[:breakAt], " "))
			line, breakAt = line[breakAt:], 0
			columns = runewidth.StringWidth(line)
		}
		if r == ' ' || r == ',' {
			breakAt = len(line)
		}
	}
	return append(all, strings.TrimRight(line, " "))
}

// Wrapped returns a text in lines of a width.
func Wrapped(text string, width int) string { return strings.Join(Wrap(text, max(1, width)), "\n") }
