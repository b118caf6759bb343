package show

import (
	"strings"

	"github.com/mattn/go-runewidth"

	"ovs-offline/internal/lazyregexp"
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

// commandBegins and commandEnds match the words between which a command line stands in a sentence.
var (
	commandBegins = lazyregexp.New(`^["'(]?(?:ovs-offline|ovs-[a-z]+ctl|ovn-[a-z]+ctl)$`)
	commandEnds   = lazyregexp.New(`[;:,.)"]$`)
)

// Fold returns a text as lines of at most width columns, 0 for any, in which no word and no command line is broken: one
// that is wider has a line of its own. All lines but the first begin with indent.
func Fold(text string, width int, indent string) string {
	if width <= 0 {
		return text
	}
	var lines []string
	line := ""
	for i, unit := range units(text) {
		switch {
		case i == 0:
			line = unit
		case runewidth.StringWidth(line)+1+runewidth.StringWidth(unit) > width:
			lines, line = append(lines, line), indent+unit
		default:
			line += " " + unit
		}
	}
	return strings.Join(append(lines, line), "\n")
}

// units returns the words of a text, and a command line as one of them.
func units(text string) (list []string) {
	inCommand := false
	for _, word := range strings.Split(text, " ") {
		if inCommand = inCommand && !strings.HasPrefix(word, "("); inCommand {
			list[len(list)-1] += " " + word
		} else {
			list = append(list, word)
		}
		inCommand = (inCommand || commandBegins.MatchString(word)) && !commandEnds.MatchString(word)
	}
	return list
}
