package tickets

import (
	"regexp"
	"slices"
	"strings"
)

// filters are the forms of commands that print a part of the flows.
func filters() []Form {
	return ofKind("filter",
		Form{Name: "each table", Shows: "a command for each table, which together print all", Lacks: causeFilter, Write: func(n *Node) string {
			return plain(n, eachFlows(n.Outputs, byTable))
		}},
		filtered("table 0", "table=0", " table=0", func(_ int, line string) bool { return tableOf(line) == "0" }),
		filtered("but table 0", "all tables but the first", " | grep -v table=0", func(_ int, line string) bool { return !strings.Contains(line, "table=0") }),
		filtered("packets", "grep -v n_packets=0", " | grep -v n_packets=0", func(_ int, line string) bool { return !strings.Contains(line, "n_packets=0,") }),
		filtered("grep drop", "grep drop", " | grep drop", func(_ int, line string) bool { return strings.Contains(line, "drop") }),
		filtered("grep without drop", "grep -v drop", " | grep -v drop", func(_ int, line string) bool { return !strings.Contains(line, "drop") }),
		filtered("grep an address", "grep of the first MAC address", ` | grep -i ":01"`, func(_ int, line string) bool { return strings.Contains(line, ":01") }),
		filtered("head", "head -20", " | head -20", func(i int, _ string) bool { return i < 20 }),
		filtered("tail", "tail -5", " | tail -5", nil),
		filtered("ip", "with the match ip", " ip", func(i int, line string) bool {
			return isHeader(line) || strings.Contains(line, ",ip,") || strings.Contains(line, ",ip ")
		}),
		filtered("arp", "with the match arp", " arp", func(i int, line string) bool { return isHeader(line) || strings.Contains(line, "arp") }),
		Form{Name: "sort", Shows: "COMMAND | sort, which leaves out nothing", Write: func(n *Node) string {
			return plain(n, eachFlows(n.Outputs, func(o Output) []Output {
				lines := slices.Sorted(strings.Lines(o.Text))
				o.Command, o.Text = o.Command+" | sort", strings.Join(lines, "")
				return []Output{o}
			}))
		}},
		Form{Name: "without header", Shows: "the flows alone, below the command line", Write: func(n *Node) string {
			return plain(n, changedFlows(n.Outputs, func(text string) string {
				return keptLines(text, func(_ int, line string) bool { return !isHeader(line) })
			}))
		}},
		Form{Name: "without statistics", Shows: "as ovs-ofctl --no-stats prints the flows", Write: func(n *Node) string {
			return plain(n, eachFlows(n.Outputs, func(o Output) []Output {
				o.Command = strings.Replace(o.Command, "dump-flows", "--no-stats dump-flows", 1)
				o.Text = eachLine(o.Text, func(_ int, line string) string { return statistics.ReplaceAllString(line, "") })
				return []Output{o}
			}))
		}},
		Form{Name: "cut fields", Shows: "cut -d, -f3-: the flows without cookie and duration", Lacks: causeFilter + "|" + causeCut, Write: func(n *Node) string {
			return plain(n, eachFlows(n.Outputs, func(o Output) []Output {
				o.Command += " | cut -d, -f3-"
				o.Text = eachLine(o.Text, func(_ int, line string) string {
					if fields := strings.SplitN(line, ",", 3); len(fields) == 3 {
						return fields[2]
					}
					return line
				})
				return []Output{o}
			}))
		}},
	)
}

// statistics matches what --no-stats leaves out.
var statistics = regexp.MustCompile(`(?:duration|n_packets|n_bytes|idle_age|hard_age)=[^ ,]+, `)

// eachFlows returns the outputs, with what change makes of the flows of each bridge.
func eachFlows(outputs []Output, change func(Output) []Output) (list []Output) {
	for _, o := range outputs {
		if o.Kind == Flows {
			list = append(list, change(o)...)
		} else {
			list = append(list, o)
		}
	}
	return list
}

// filtered returns a form in which the flows of each bridge are filtered; nil keeps the last five.
func filtered(name, shows, words string, keep func(i int, line string) bool) Form {
	return Form{Name: name, Shows: shows, Lacks: causeFilter, Write: func(n *Node) string {
		return plain(n, eachFlows(n.Outputs, func(o Output) []Output {
			lines := strings.Count(o.Text, "\n")
			o.Command += words
			o.Text = keptLines(o.Text, func(i int, line string) bool {
				if keep == nil {
					return i >= lines-5
				}
				return keep(i, line) || !strings.HasPrefix(words, " |") && isHeader(line)
			})
			return []Output{o}
		}))
	}}
}

var table = regexp.MustCompile(`\btable=(\d+)`)

// tableOf returns the table of a flow; ovs-ofctl leaves out table 0 in some versions.
func tableOf(line string) string {
	if m := table.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return "0"
}

// byTable returns the flows of a bridge as an output for each table.
func byTable(o Output) (parts []Output) {
	var tables []string
	header := ""
	for line := range strings.Lines(o.Text) {
		if isHeader(line) {
			header = line
		} else if t := tableOf(line); !slices.Contains(tables, t) {
			tables = append(tables, t)
		}
	}
	for _, t := range tables {
		part := o
		part.Command += " table=" + t
		part.Text = header + keptLines(o.Text, func(_ int, line string) bool { return !isHeader(line) && tableOf(line) == t })
		parts = append(parts, part)
	}
	return parts
}
