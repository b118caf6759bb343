package tickets

import (
	"fmt"
	"slices"
	"strings"
)

// The causes that answers may name.
const (
	causeCut    = `cut|left out|not whole|incomplete|not restored`
	causeFilter = `limited|filter|only|not whole|left out|flows of bridge \S+ were not collected`
)

// wraps are the forms of lines that are too long for a mail or a terminal.
func wraps() []Form {
	mail := func(width int) Form {
		return byText(fmt.Sprintf("mail %d", width), "wrapped at blanks", func(_ *Node, text string) string {
			return eachLine(text, func(_ int, line string) string { return atBlanks(line, width) })
		})
	}
	terminal := func(width int) Form {
		return byText(fmt.Sprintf("terminal %d", width), "wrapped at a column", func(_ *Node, text string) string {
			return eachLine(text, func(_ int, line string) string { return strings.Join(chunks(line, width), "\n") })
		})
	}
	return ofKind("wrap", mail(72), mail(76), terminal(80), terminal(120), terminal(200),
		byText("quoted and wrapped", "a mail that is quoted, and wrapped again at 76", func(_ *Node, text string) string {
			return prefixed(eachLine(text, func(_ int, line string) string { return atBlanks(line, 74) }), "> ")
		}),
		byFlows("backslashes", "flows that go on behind a backslash", "", func(text string) string {
			return eachLine(text, func(_ int, line string) string { return strings.Replace(line, " actions=", " \\\n    actions=", 1) })
		}),
		byFlows("a field a line", "actions on a line of their own", "", func(text string) string {
			return eachLine(text, func(_ int, line string) string { return strings.Replace(line, " actions=", "\n    actions=", 1) })
		}),
	)
}

// atBlanks wraps a line at blanks, so that no line is longer than width but for a longer word.
func atBlanks(line string, width int) string {
	if len(line) <= width {
		return line
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	var lines []string
	now := ""
	for _, word := range strings.Fields(line) {
		switch {
		case now == "" && len(lines) == 0:
			now = indent + word
		case now == "":
			now = word
		case len(now)+1+len(word) > width:
			lines, now = append(lines, now), word
		default:
			now += " " + word
		}
	}
	return strings.Join(append(lines, now), "\n")
}

// chunks cuts a line into pieces of a width.
func chunks(line string, width int) (list []string) {
	for len(line) > width {
		list, line = append(list, line[:width]), line[width:]
	}
	return append(list, line)
}

// cuts are the forms in which lines or the ends of lines are missing.
func cuts() []Form {
	less := func(width int) Form {
		return cutting(fmt.Sprintf("less -S %d", width), "all lines end at a column", func(text string) string {
			return eachLine(text, func(_ int, line string) string { return line[:min(len(line), width)] })
		})
	}
	return ofKind("cut", less(80), less(120), less(160),
		cutting("less -S with marks", "lines end at column 79, with > behind", func(text string) string {
			return eachLine(text, func(_ int, line string) string {
				if len(line) > 80 {
					return line[:79] + ">"
				}
				return line
			})
		}),
		Form{Name: "cut -c", Shows: "COMMAND | cut -c1-100", Lacks: causeCut + "|" + causeFilter, Write: func(n *Node) string {
			outputs := changed(n.Outputs, func(o Output) string {
				if o.Kind != Flows {
					return o.Text
				}
				return eachLine(o.Text, func(_ int, line string) string { return line[:min(len(line), 100)] })
			})
			for i, o := range outputs {
				if o.Kind == Flows {
					outputs[i].Command += " | cut -c1-100"
				}
			}
			return plain(n, outputs)
		}},
		byFlows("snip", "[snip] for the lines in the middle", causeCut, func(text string) string { return replacedMiddle(text, "[snip]") }),
		byFlows("dots", "... for the lines in the middle", causeCut, func(text string) string { return replacedMiddle(text, "...") }),
		byFlows("dots in brackets", "[...] for the lines in the middle", causeCut, func(text string) string { return replacedMiddle(text, " [...]") }),
		byFlows("snipped words", "<snip> for the lines in the middle", causeCut, func(text string) string { return replacedMiddle(text, "<snip>") }),
		byFlows("more", "--More-- at the end of the first page", causeCut, func(text string) string {
			return keptLines(text, func(i int, _ string) bool { return i <= middle(text) }) + "--More--\n"
		}),
		byFlows("dots at the end", "... for the rest", causeCut, func(text string) string {
			return keptLines(text, func(i int, _ string) bool { return i <= middle(text) }) + " ...\n"
		}),
		byFlows("ends of lines as dots", "each line ends with ... at column 110", causeCut, func(text string) string {
			return eachLine(text, func(_ int, line string) string {
				if len(line) > 110 {
					return line[:107] + "..."
				}
				return line
			})
		}),
		Form{Name: "last line cut", Shows: "the text ends in the middle of a flow", Lacks: causeCut, Write: func(n *Node) string {
			text := plain(n, slices.Concat(n.without(Flows), n.outputs(Flows)))
			return text[:strings.LastIndex(text, " actions=")]
		}},
		Form{Name: "last actions cut", Shows: "the text ends in the middle of the actions of a flow", Lacks: causeCut, Write: func(n *Node) string {
			text := plain(n, slices.Concat(n.without(Flows), n.outputs(Flows)))
			return text[:strings.LastIndex(text, " actions=")+len(" actions=")]
		}},
		Form{Name: "pages", Shows: "--More-- between pages of which nothing is missing", Write: func(n *Node) string {
			return plain(n, changedFlows(n.Outputs, func(text string) string {
				return eachLine(text, func(i int, line string) string {
					if i > 0 && i%24 == 0 {
						return "--More--\r        \r" + line
					}
					return line
				})
			}))
		}},
	)
}

// cutting returns a form that cuts all outputs.
func cutting(name, shows string, cut func(string) string) Form {
	return Form{Name: name, Shows: shows, Lacks: causeCut, Write: func(n *Node) string {
		return plain(n, changed(n.Outputs, func(o Output) string { return cut(o.Text) }))
	}}
}

// replacedMiddle replaces the second quarter of a text's lines by one line.
func replacedMiddle(text, by string) string {
	lines := strings.Count(text, "\n")
	if lines < 4 {
		return text
	}
	from, to := max(1, lines/4), max(2, lines/2)
	return keptLines(text, func(i int, _ string) bool { return i < from }) + by + "\n" + keptLines(text, func(i int, _ string) bool { return i >= to })
}
