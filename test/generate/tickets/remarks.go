package tickets

import (
	"fmt"
	"strings"
)

// remarks are the forms of what people write into an output.
func remarks() []Form {
	between := func(name, line string) Form {
		return Form{Name: name, Shows: fmt.Sprintf("%q in the middle of the flows", line), Write: func(n *Node) string {
			return plain(n, changedFlows(n.Outputs, func(text string) string {
				at := middle(text)
				return keptLines(text, func(i int, _ string) bool { return i < at }) + line + "\n" + keptLines(text, func(i int, _ string) bool { return i >= at })
			}))
		}}
	}
	marked := func(name, before, after string) Form {
		return byFlows(name, before+"FLOW"+after, "", func(text string) string {
			at := middle(text)
			return eachLine(text, func(i int, line string) string {
				if i == at || i == at+2 {
					return before + line + after
				}
				return line
			})
		})
	}
	return ofKind("remark",
		between("empty line", ""),
		between("hash", "# this flow is the problem"),
		between("hashes", "## and these are of the agent"),
		between("slashes", "// this one"),
		between("sentence", "Here the packets should be sent out, but they are not."),
		between("sentence with a colon", "NOTE: these are new:"),
		between("rule", "----------------------------------------"),
		between("arrow below", "^^^^^^^^^^^^^^^^^^ this one"),
		marked("arrow behind", "", "   <---- this one"),
		marked("double arrow behind", "", " <==== HERE!"),
		marked("hash behind", "", "  # this one"),
		marked("bold", "**", "**"),
		marked("bold with arrow", " **", "**  <==== HERE!"),
		marked("arrow before", "--> ", ""),
		marked("double arrow before", "=> ", ""),
		marked("star before", "* ", ""),
		marked("code", "`", "`"),
		byFlows("numbered", "cat -n", "", func(text string) string {
			return eachLine(text, func(i int, line string) string { return fmt.Sprintf("%6d\t%s", i+1, line) })
		}),
		byFlows("numbered by grep", "grep -n", "", func(text string) string {
			return eachLine(text, func(i int, line string) string { return fmt.Sprintf("%d:%s", i+1, line) })
		}),
		byFlows("list", "- before each flow", "", func(text string) string {
			return eachLine(text, func(_ int, line string) string {
				if isHeader(line) {
					return line
				}
				return "- " + strings.TrimSpace(line)
			})
		}),
		byFlows("empty line below the header", "an empty line below each header", "", func(text string) string {
			return eachLine(text, func(i int, line string) string {
				if isHeader(line) {
					return line + "\n"
				}
				return line
			})
		}),
		byFlows("empty line between tables", "an empty line before each table", "", func(text string) string {
			last := ""
			return eachLine(text, func(_ int, line string) string {
				if t := tableOf(line); !isHeader(line) && t != last {
					last = t
					return "\n" + line
				}
				return line
			})
		}),
		Form{Name: "empty line in show", Shows: "an empty line before each bridge and port of ovs-vsctl show", Write: func(n *Node) string {
			return plain(n, changed(n.Outputs, func(o Output) string {
				if o.Kind != SwitchShow {
					return o.Text
				}
				return strings.ReplaceAll(strings.ReplaceAll(o.Text, "    Bridge ", "\n    Bridge "), "        Port ", "\n        Port ")
			}))
		}},
	)
}
