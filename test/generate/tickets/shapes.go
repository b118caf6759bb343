package tickets

import (
	"fmt"
	"slices"
	"strings"
)

// shapes are the forms of what stands where, and beside what.
func shapes() []Form {
	return ofKind("shape",
		Form{Name: "backwards", Shows: "the last output first", Write: func(n *Node) string {
			outputs := slices.Clone(n.Outputs)
			slices.Reverse(outputs)
			return plain(n, outputs)
		}},
		Form{Name: "show last", Shows: "ovs-vsctl show behind all others", Write: func(n *Node) string {
			return plain(n, slices.Concat(n.without(SwitchShow), n.outputs(SwitchShow)))
		}},
		Form{Name: "without ovs-vsctl show", Shows: "no ovs-vsctl show", Lacks: `ovs-vsctl|port|type|conf\.db|patch|tunnel|not recorded`, Write: func(n *Node) string {
			return plain(n, n.without(SwitchShow))
		}},
		Form{Name: "without ovs-ofctl show", Shows: "no ovs-ofctl show: the numbers of ports are missing", Lacks: `number|ovs-ofctl show|port`, Write: func(n *Node) string {
			return plain(n, n.without(Show))
		}},
		Form{Name: "without groups", Shows: "no dump-groups", Lacks: `group`, Write: func(n *Node) string {
			if len(n.outputs(Groups)) == 0 {
				return ""
			}
			return plain(n, n.without(Groups))
		}},
		Form{Name: "without fdb/show", Shows: "no fdb/show: what NORMAL had learned is missing", Lacks: `fdb/show`, Write: func(n *Node) string {
			if len(n.outputs(FDB)) == 0 {
				return ""
			}
			return plain(n, n.without(FDB))
		}},
		Form{Name: "without a bridge", Shows: "no flows of the bridge to which a patch port leads", Lacks: `flows`, Write: func(n *Node) string {
			if n.Peer == "" {
				return ""
			}
			return plain(n, slices.DeleteFunc(slices.Clone(n.Outputs), func(o Output) bool { return o.Kind == Flows && o.Bridge == n.Peer }))
		}},
		Form{Name: "without all of a bridge", Shows: "nothing of the bridge to which a patch port leads but its name", Lacks: `flows`, Write: func(n *Node) string {
			if n.Peer == "" {
				return ""
			}
			return plain(n, slices.DeleteFunc(slices.Clone(n.Outputs), func(o Output) bool { return o.Bridge == n.Peer }))
		}},
		Form{Name: "show without indentation", Shows: "ovs-vsctl show at column 0, as a tracker shows it outside a block", Write: func(n *Node) string {
			return plain(n, changed(n.Outputs, func(o Output) string {
				if o.Kind != SwitchShow {
					return o.Text
				}
				return eachLine(o.Text, func(_ int, line string) string { return strings.TrimLeft(line, " ") })
			}))
		}},
		Form{Name: "blanks in one", Shows: "each run of blanks is one blank, as a page shows it outside of <pre>", Write: func(n *Node) string {
			return plain(n, changed(n.Outputs, func(o Output) string {
				return eachLine(o.Text, func(_ int, line string) string { return strings.Join(strings.Fields(line), " ") })
			}))
		}},
		Form{Name: "prose before", Shows: "10 KB of prose before the first command", Write: func(n *Node) string { return prose(10<<10) + plain(n, n.Outputs) }},
		Form{Name: "prose between", Shows: "a paragraph between two outputs", Write: func(n *Node) string {
			var b strings.Builder
			for _, o := range n.Outputs {
				b.WriteString(plain(n, []Output{o}) + "\nThe next output is of the same node. It was taken while the ping was running.\n\n")
			}
			return b.String()
		}},
		Form{Name: "replies alone", Shows: "groups and flows of the only bridge below the command of the groups", Lacks: `flows|bridge`, Write: func(n *Node) string {
			if len(n.outputs(Flows)) != 1 || len(n.outputs(Groups)) != 1 {
				return ""
			}
			groups := n.outputs(Groups)[0]
			groups.Text = ended(groups.Text) + n.outputs(Flows)[0].Text
			return plain(n, append(n.without(Flows, Groups), groups))
		}},
		Form{Name: "log before", Shows: "lines of ovs-vswitchd.log before the outputs", Write: func(n *Node) string { return log(n) + "\n" + plain(n, n.Outputs) }},
		Form{Name: "log behind", Shows: "lines of ovs-vswitchd.log behind the outputs", Write: func(n *Node) string { return plain(n, n.Outputs) + "\n" + log(n) }},
		Form{Name: "log between", Shows: "lines of ovs-vswitchd.log in the middle of the flows", Write: func(n *Node) string {
			return plain(n, changedFlows(n.Outputs, func(text string) string {
				at := middle(text)
				return keptLines(text, func(i int, _ string) bool { return i < at }) + log(n) + keptLines(text, func(i int, _ string) bool { return i >= at })
			}))
		}},
		Form{Name: "syslog behind", Shows: "lines of syslog behind the outputs", Write: func(n *Node) string {
			return plain(n, n.Outputs) + eachLine(log(n), func(_ int, line string) string {
				return "May  7 06:44:05 " + n.Name + " ovs-vswitchd[812]: ovs|" + strings.SplitN(line, "|", 2)[1]
			})
		}},
		Form{Name: "other commands between", Shows: "outputs of other programs", Write: func(n *Node) string {
			other := Output{Command: "ping -c 1 10.0.0.2", Text: "PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.\n\n--- 10.0.0.2 ping statistics ---\n1 packets transmitted, 0 received, 100% packet loss, time 0ms\n"}
			var b strings.Builder
			for _, o := range n.Outputs {
				b.WriteString(plain(n, []Output{o, other}))
			}
			return b.String()
		}},
		Form{Name: "commands behind colons", Shows: "COMMAND:, and the output below", Write: func(n *Node) string {
			return typedAs(n.Outputs, func(command string) string { return "\n" + command + ":" })
		}},
	)
}

// log returns lines of the log of ovs-vswitchd.
func log(n *Node) string {
	var b strings.Builder
	for i := range 3 {
		fmt.Fprintf(&b, "2026-05-07T06:44:0%d.386Z|0001%d|bridge|INFO|bridge %s: added interface eth%d on port %d\n", i, i, n.Outputs[len(n.Outputs)-1].Bridge, i, i+900)
	}
	return b.String()
}

// prose returns at least size bytes of sentences.
func prose(size int) string {
	var b strings.Builder
	for i := 1; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%d. The customer says that some of the connections time out, and that it began after the maintenance.\nWe restarted the agents, and that did not help. What else could we look at?\n\n", i)
	}
	return b.String()
}

// moments are the forms in which the same output stands several times, or outputs of several nodes.
func moments() []Form {
	return ofKind("moments",
		Form{Name: "older flows first", Shows: "the flows before something was repaired, all of which dropped", Write: func(n *Node) string {
			return plain(n, slices.Concat(changedFlows(n.outputs(Flows), older), n.Outputs))
		}},
		Form{Name: "older state first", Shows: "all outputs before a restart, with other flows", Write: func(n *Node) string {
			return plain(n, changedFlows(n.Outputs, older)) + rootPrompt(n) + "systemctl restart openvswitch\n" + plain(n, n.Outputs)
		}},
		Form{Name: "empty flows first", Shows: "the flows before the agent had started: none", Write: func(n *Node) string {
			empty := changedFlows(n.outputs(Flows), func(text string) string {
				return keptLines(text, func(_ int, line string) bool { return isHeader(line) })
			})
			return plain(n, slices.Concat(empty, n.Outputs))
		}},
		Form{Name: "three times", Shows: "three states of the flows", Write: func(n *Node) string {
			return plain(n, slices.Concat(changedFlows(n.outputs(Flows), older), n.outputs(Flows), changedFlows(n.outputs(Flows), older), n.Outputs))
		}},
		Form{Name: "filtered before", Shows: "the flows of table 0, and then all", Write: func(n *Node) string {
			part := eachFlows(n.outputs(Flows), func(o Output) []Output { return byTable(o)[:min(1, len(byTable(o)))] })
			return plain(n, slices.Concat(part, n.Outputs))
		}},
		Form{Name: "filtered behind", Shows: "all flows, and then those of table 0 again", Write: func(n *Node) string {
			part := eachFlows(n.outputs(Flows), func(o Output) []Output { return byTable(o)[:min(1, len(byTable(o)))] })
			return plain(n, slices.Concat(n.Outputs, part))
		}},
		Form{Name: "another version before", Shows: "the flows without -O before those with it", Write: func(n *Node) string {
			again := eachFlows(n.outputs(Flows), func(o Output) []Output {
				o.Command = strings.Replace(o.Command, "-O "+n.Version+" ", "", 1)
				o.Text = "NXST_FLOW reply (xid=0x4):\n" + keptLines(older(o.Text), func(i int, line string) bool { return i > 0 && i < 4 && !isHeader(line) })
				return []Output{o}
			})
			return plain(n, slices.Concat(again, n.Outputs))
		}},
		Form{Name: "another node before", Shows: "the outputs of another node, by its prompt", Write: func(n *Node) string { return another(n) + plain(n, n.Outputs) }},
		Form{Name: "another node behind", Shows: "the outputs of another node behind, by its prompt", Write: func(n *Node) string { return plain(n, n.Outputs) + another(n) }},
		Form{Name: "nodes by turns", Shows: "each output of both nodes", Write: func(n *Node) string {
			other := *n
			other.Name = n.Name + "-other"
			var b strings.Builder
			for i, o := range n.Outputs {
				b.WriteString(plain(n, []Output{o}) + plain(&other, changedFlows(n.Outputs, older)[i:i+1]))
			}
			return b.String()
		}},
		Form{Name: "nodes by heading", Shows: "\"On node NAME:\" before the outputs of each", Write: func(n *Node) string {
			return "On node " + n.Name + ":\n\n" + typed("# ", n.Outputs) + "\nOn node " + n.Name + "-other:\n\n" + typed("# ", changedFlows(n.Outputs, older))
		}},
	)
}

// another returns the outputs of another node, whose flows drop everything.
func another(n *Node) string {
	other := *n
	other.Name = n.Name + "-other"
	return plain(&other, changedFlows(n.Outputs, older))
}

// older returns flows as they were before: each drops.
func older(text string) string {
	return eachLine(text, func(_ int, line string) string {
		if before, _, found := strings.Cut(line, " actions="); found {
			return before + " actions=drop"
		}
		return line
	})
}

// options are the forms of options of ovs-ofctl.
func options() []Form {
	version := func(name string, words func(version string) string) Form {
		return Form{Name: name, Shows: words("OpenFlow13"), Write: func(n *Node) string {
			return plain(n, changedCommands(n.Outputs, func(command string) string {
				return strings.Replace(command, "-O "+n.Version, words(n.Version), 1)
			}))
		}}
	}
	return ofKind("option",
		version("version in lower case", func(v string) string { return "-O " + strings.ToLower(v) }),
		version("version without blank", func(v string) string { return "-O" + v }),
		version("long option", func(v string) string { return "--protocols=" + v }),
		version("abbreviated option", func(v string) string { return "--protocol=" + v }),
		version("more options", func(v string) string { return "--timeout=5 -O " + v + " -m" }),
		Form{Name: "version behind", Shows: "the option behind the bridge", Write: func(n *Node) string {
			return plain(n, changedCommands(n.Outputs, func(command string) string {
				words := "-O " + n.Version
				if !strings.Contains(command, words) {
					return command
				}
				return strings.Replace(command, words+" ", "", 1) + " " + words
			}))
		}},
		Form{Name: "names", Shows: "flows that name ports, as on a terminal", Write: func(n *Node) string {
			if len(n.Named) == 0 {
				return ""
			}
			return plain(n, slices.Concat(n.without(Flows), n.Named))
		}},
		Form{Name: "names without numbers", Shows: "flows that name ports, and no ovs-ofctl show", Lacks: `number|port`, Write: func(n *Node) string {
			if len(n.Named) == 0 {
				return ""
			}
			return plain(n, slices.Concat(n.without(Flows, Show), n.Named))
		}},
		Form{Name: "socket", Shows: "the management socket of a bridge for its name", Write: func(n *Node) string {
			outputs := slices.Clone(n.Outputs)
			for i, o := range outputs {
				if strings.HasPrefix(o.Command, "ovs-ofctl") {
					outputs[i].Command = strings.Replace(o.Command, " "+o.Bridge, " unix:/var/run/openvswitch/"+o.Bridge+".mgmt", 1)
				}
			}
			return plain(n, outputs)
		}},
	)
}

// changedCommands returns the outputs with other command lines.
func changedCommands(outputs []Output, change func(string) string) []Output {
	list := slices.Clone(outputs)
	for i := range list {
		list[i].Command = change(list[i].Command)
	}
	return list
}
