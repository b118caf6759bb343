package ticket_test

import (
	"strings"
	"testing"

	"ovs-offline/collect/ticket"
	"ovs-offline/test/check/expect"
)

const (
	ports  = "OFPT_FEATURES_REPLY (OF1.3) (xid=0x2): dpid:0000000000000001\n 1(p1): addr:0a:00:00:00:00:01\n    config:    0\n    state:    LIVE\n"
	second = " cookie=0x3, duration=5s, table=1, n_packets=0, n_bytes=0, priority=90,udp,tp_dst=67 actions=CONTROLLER:65535\n"
	third  = " cookie=0x4, duration=5s, table=2, n_packets=0, n_bytes=0, ip,nw_dst=10.0.0.3 actions=output:3,resubmit(,4)\n"
)

// TestWrappedFlowsAreJoined wraps flows at each width, and at blanks, behind which a line may begin like a flow.
func TestWrappedFlowsAreJoined(t *testing.T) {
	const all = flows + flow + second + third
	want := [][2]string{{"dump-flows br-int OpenFlow13", all}}
	for width := 60; width < 140; width++ {
		expect.Equal(t, found("$ ovs-ofctl dump-flows br-int\n"+wrapped(all, width)), want, width)
	}
	for name, text := range map[string]string{
		"before the match":          strings.ReplaceAll(all, ", priority=", ",\npriority="),
		"before the match, indents": strings.ReplaceAll(all, ", priority=", ",\n    priority="),
		"before the counters":       strings.ReplaceAll(all, ", n_packets=", ",\nn_packets="),
		"before the table":          strings.ReplaceAll(all, ", table=", ",\ntable="),
		"in three": strings.ReplaceAll(strings.ReplaceAll(all, ", table=", ",\ntable="), " actions=",
			"\nactions="),
		"backslashes": strings.ReplaceAll(all, " actions=", " \\\n    actions="),
		"a quoted mail": "> " + strings.ReplaceAll(strings.TrimSuffix(strings.ReplaceAll(all, ", priority=",
			",\npriority="), "\n"), "\n", "\n> ") + "\n",
	} {
		expect.Equal(t, found("$ ovs-ofctl dump-flows br-int\n"+text), want, name)
	}
}

// TestFlowsThatAreCutAreNotJoined cuts flows, each of which begins with the same field.
func TestFlowsThatAreCutAreNotJoined(t *testing.T) {
	for name, text := range map[string]string{
		"with cookies": cut(flow+second+third, 70),
		"without cookies": strings.NewReplacer("cookie=0x2, ", "", "cookie=0x3, ", "", "cookie=0x4, ",
			"").Replace(cut(flow+second+third, 70)),
		"matches alone": " priority=7,in_port=1\n priority=6,in_port=2,ip\n priority=5,in_port=3,ip,nw_\n",
	} {
		pieces := ticket.Read("$ ovs-ofctl dump-flows br-int\n" + flows + text).Pieces
		if len(pieces) != 1 || pieces[0].Partial == nil || pieces[0].Text != flows {
			t.Errorf("%s: %+v", name, pieces)
		}
	}
}

// TestSignsBeforeFlows tells items of a list, and arrows, from what a diff removes.
func TestSignsBeforeFlows(t *testing.T) {
	whole := [][2]string{{"dump-flows br-int OpenFlow13", flows + flow + second}}
	header, first, _ := strings.Cut(flows, "\n")
	header += "\n"
	for name, c := range map[string]struct {
		text string
		want [][2]string
	}{
		"a list":             {header + "-" + first + "-" + flow + "-" + second, whole},
		"a list with blanks": {header + "  - " + first[1:] + "  - " + flow[1:] + "  - " + second[1:], whole},
		"long arrows":        {flows + "-->" + flow + "--- " + second[1:], whole},
		"a diff": {header + " " + first + "-" + flow + "+" + second,
			[][2]string{{"dump-flows br-int OpenFlow13 partial", flows + second}}},
		"a diff that only removes": {header + "@@ -1,2 +0,0 @@\n-" + first + "-" + flow,
			[][2]string{{"dump-flows br-int OpenFlow13 partial", header}}},
	} {
		expect.Equal(t, found("$ ovs-ofctl dump-flows br-int\n"+c.text), c.want, name)
	}
}

// TestSortedFlowsHaveTheirHeaderBehind sorts a reply, and has the reply of another bridge follow flows without a
// header.
func TestSortedFlowsHaveTheirHeaderBehind(t *testing.T) {
	header, first, _ := strings.Cut(flows, "\n")
	header += "\n" // the first flow has its own
	for name, c := range map[string]struct {
		text string
		want [][2]string
	}{
		"sorted": {first + flow + header, [][2]string{{"dump-flows br-int OpenFlow13", flows + flow}}},
		"sorted, a blank": {first + flow + " " + header + "\n$ ls\n",
			[][2]string{{"dump-flows br-int OpenFlow13", flows + flow}}},
		"another reply": {first + header + flow,
			[][2]string{{"dump-flows br-int", first}, {"dump-flows OpenFlow13", header + flow}}},
	} {
		expect.Equal(t, found("$ ovs-ofctl dump-flows br-int | sort\n"+c.text), c.want, name)
	}
}

// TestOutputsOfOneLineOfCommands has commands whose outputs begin each in its way, and some that can't be told.
func TestOutputsOfOneLineOfCommands(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want [][2]string
	}{
		"each": {"$ ovs-ofctl show br-int; ovs-ofctl dump-flows br-int; ovs-ofctl dump-groups br-int; ovs-appctl fdb/show br-int\n" + ports + flows + groups + fdb,
			[][2]string{{"show br-int OpenFlow13", ports}, {"dump-flows br-int OpenFlow13", flows},
				{"dump-groups br-int OpenFlow13", groups}, {"fdb.show br-int", fdb}}},
		"two bridges": {"$ ovs-ofctl dump-flows br0 && ovs-ofctl show br1 && ovs-ofctl dump-flows br1\n" +
			flows + flow + ports + flows,
			[][2]string{{"dump-flows br0 OpenFlow13", flows + flow}, {"show br1 OpenFlow13", ports},
				{"dump-flows br1 OpenFlow13", flows}}},
		"the same of two bridges": {"$ ovs-ofctl dump-flows br0; ovs-ofctl dump-flows br1; ovs-appctl fdb/show br0; ovs-appctl fdb/show br1; ovs-appctl dpctl/dump-conntrack\n" + flows + flow + flow + flows + flow + fdb + fdb + "tcp,orig=(src=10.0.0.1),reply=(src=10.0.0.2)\nudp,orig=(src=10.0.0.2),reply=(src=10.0.0.1)\n",
			[][2]string{{"dump-flows br0 OpenFlow13", flows + flow + flow}, {"dump-flows br1 OpenFlow13", flows + flow},
				{"fdb.show br0", fdb}, {"fdb.show br1", fdb},
				{"dpctl.dump-conntrack", "tcp,orig=(src=10.0.0.1),reply=(src=10.0.0.2)\nudp,orig=(src=10.0.0.2),reply=(src=10.0.0.1)\n"}}},
		"a long line": {"$ " + strings.Repeat("sudo -u openvswitch /usr/bin/ovs-appctl upcall/show && ", 30) +
			"ovs-ofctl dump-flows br1\n" + flows, [][2]string{{"dump-flows br1 OpenFlow13", flows}}},
		"one without a beginning": {"$ ovs-vsctl show; uptime; ovs-ofctl dump-flows br-int\n" + shown + flows,
			[][2]string{{"ovs-vsctl.show", shown}, {"dump-flows br-int OpenFlow13", flows}}},
	} {
		expect.Equal(t, found(c.text), c.want, name)
	}
}

// TestCommandsInTitles reads the command lines in what trackers and documents put above a block.
func TestCommandsInTitles(t *testing.T) {
	want := [][2]string{{"dump-flows br-int OpenFlow13", flows}}
	for _, title := range []string{
		"<details><summary>ovs-ofctl dump-flows br-int</summary>\n\n```",
		"<summary><b>ovs-ofctl dump-flows br-int</b></summary>\n", "Output of `ovs-ofctl dump-flows br-int`:\n\n```",
		"`ovs-ofctl dump-flows br-int` prints\n```", "{noformat:title=ovs-ofctl dump-flows br-int}",
		"{code:bash|title=ovs-ofctl dump-flows br-int|borderStyle=solid}", "h3. ovs-ofctl dump-flows br-int\n{code}",
	} {
		expect.Equal(t, found("Hello\n\n"+title+"\n"+flows+"```\nBye\n"), want, title)
	}
}

// TestBlanksOfOutputs changes the blanks and the empty lines of outputs that have no empty lines themselves.
func TestBlanksOfOutputs(t *testing.T) {
	const command = "root@n1:~# ovs-vsctl show\n"
	show, more := [2]string{"n1 ovs-vsctl.show", shown}, [2]string{"n1 show br-int OpenFlow13", ports}
	text := command + shown + "root@n1:~# ovs-ofctl show br-int\n" + ports
	for name, changed := range map[string]string{
		"doubled newlines":     strings.ReplaceAll(text, "\n", "\n\n"),
		"doubled, of Windows":  strings.ReplaceAll(text, "\n", "\r\n\r\n"),
		"an empty line":        strings.Replace(text, "        Port", "\n        Port", 1),
		"indented":             "    " + strings.ReplaceAll(text, "\n", "\n    "),
		"indented by two":      "A list:\n\n  " + strings.ReplaceAll(text, "\n", "\n  "),
		"blanks without width": strings.ReplaceAll(text, ": ", ":\u200b "),
		"tabs": strings.NewReplacer("\n            ", "\n\t\t\t", "\n        ", "\n\t\t", "\n    ",
			"\n\t").Replace(text),
		"a port in bold": strings.NewReplacer("Port eth0", "**Port eth0**", " 1(p1)", " **1(p1)**", "LIVE",
			"<b>LIVE</b>").Replace(text),
		"arrows and remarks": strings.NewReplacer("Port eth0", "Port eth0   <--- here", "state:    LIVE",
			"state:    LIVE  # why?").Replace(text),
		"ports in tabs":        strings.ReplaceAll(text, "\n 1(", "\n\t1("),
		"ports without blanks": strings.ReplaceAll(text, "\n 1(", "\n1("),
		"prose behind":         text + "\nThe bridge has lost its port. Interface eth0 is down.\n",
	} {
		expect.Equal(t, found(changed), [][2]string{show, more}, name)
	}
}

// TestWhatStandsInAnOutput has lines of logs in a dump, and headings behind outputs.
func TestWhatStandsInAnOutput(t *testing.T) {
	const line = "2026-05-07T06:44:05.386Z|00011|bridge|INFO|bridge br0: added interface eth0 on port 1\n"
	read := ticket.Read("$ ovs-ofctl dump-flows br-int\n" + flows + line + line + line + line + flow)
	if len(read.Pieces) != 1 || read.Pieces[0].Text != flows+flow || read.Pieces[0].Partial != nil ||
		read.Log != strings.Repeat(line, 4) {
		t.Errorf("%+v", read)
	}
	for _, heading := range []string{"On node b:", "## Host b", "**Node b**"} {
		expect.Equal(t, found("On node a:\n# ovs-appctl fdb/show br-int\n"+fdb+"\n"+heading+
			"\n\n# ovs-ofctl dump-flows br-int\n"+flows),
			[][2]string{{"a fdb.show br-int", fdb + "\n"}, {"b dump-flows br-int OpenFlow13", flows}}, heading)
	}
}

// TestWrappedOutputsAreJoined wraps connections and the options of interfaces, and has the marks of blocks behind
// outputs.
func TestWrappedOutputsAreJoined(t *testing.T) {
	const (
		connections = "udp,orig=(src=192.168.24.11,dst=192.168.24.12,sport=62001,dport=6081),reply=(src=192.168.24.12,dst=192.168.24.11,sport=6081,dport=62001),id=1429817151,status=CONFIRMED\n" +
			"icmpv6,orig=(src=fd00::1,dst=fd00::2,id=1,type=128,code=0),reply=(src=fd00::2,dst=fd00::1,id=1,type=129,code=0),zone=3\n"
		tunnel = "4b6b0d73-b824-4d6b-9ec7-584b4706f5c9\n    Bridge br-int\n        Port ovn-4c4c45-1\n            Interface ovn-4c4c45-1\n                type: geneve\n" +
			"                options: {csum=\"true\", key=flow, local_ip=\"192.168.24.11\", remote_ip=\"192.168.24.12\"}\n                bfd_status: {diagnostic=\"No Diagnostic\", state=up}\n"
	)
	want := [][2]string{{"n1 ovs-vsctl.show", tunnel}, {"n1 dpctl.dump-conntrack", connections}}
	text := "[root@n1 ~]# ovs-vsctl show\n" + tunnel + "[root@n1 ~]# ovs-appctl dpctl/dump-conntrack\n" + connections
	for name, changed := range map[string]string{
		"a terminal of 80":    wrapped(text, 80),
		"a terminal of 100":   wrapped(text, 100),
		"a mail":              strings.ReplaceAll(text, "key=flow, local_ip", "key=flow,\nlocal_ip"),
		"a mail that indents": strings.ReplaceAll(text, "\", remote_ip", "\",\n  remote_ip"),
		"empty lines":         strings.ReplaceAll(text, "                ", "\n                "),
		"blocks of AsciiDoc": "Hello\n\n----\n" +
			strings.Replace(text, "[root@n1 ~]# ovs-app", "----\n\nand\n\n----\n[root@n1 ~]# ovs-app", 1) + "----\n\nThanks\n",
		"blocks behind a title": "h3. Hello\n\n{code:bash}\n" +
			strings.Replace(text, "[root@n1 ~]# ovs-app", "{code}\n{code:bash|title=x}\n[root@n1 ~]# ovs-app", 1) + "{code}\n",
	} {
		expect.Equal(t, found(changed), want, name)
	}
	for _, fence := range []string{"{code:bash}", "{noformat}", "```", "~~~"} {
		expect.Equal(t, found("# ovs-ofctl dump-flows br-int\n"+flows+fence+"\n"+fence+"\n# ovs-ofctl dump-groups br-int\n"+
			groups+fence+"\n"),
			[][2]string{{"dump-flows br-int OpenFlow13", flows}, {"dump-groups br-int OpenFlow13", groups}}, fence)
	}
}

// TestOutputsBehindSentences takes outputs whose beginning is known behind a command in a sentence, and no prose.
func TestOutputsBehindSentences(t *testing.T) {
	for what, output := range map[string]string{"ovs-appctl fdb/show br-int": fdb, "ovs-ofctl show br-int": ports,
		"ovs-appctl dpctl/dump-conntrack": "tcp,orig=(src=10.0.0.1),reply=(src=10.0.0.2)\n"} {
		for _, sentence := range []string{"Output of `%s`:", "This is %s:", "## %s", "12:00:01 root@n1:~# %s",
			"[12:00:01] root@n1:~# %s", "┌──(root㉿n1)-[~]\n└─# %s", "╭─root@n1 ~\n╰─# %s"} {
			pieces := ticket.Read(strings.Replace(sentence, "%s", what, 1) + "\n" + output).Pieces
			if len(pieces) != 1 || pieces[0].Text != output {
				t.Errorf("%s, %s: %+v", sentence, what, pieces)
			}
		}
		expect.Equal(t, found("Please attach "+what+"\nand the logs. Regards\n"), nil, what)
	}
}

// TestArrowsOfActionsAreNoQuotations wraps actions in the middle of "->".
func TestArrowsOfActionsAreNoQuotations(t *testing.T) {
	const moved = " cookie=0x2, duration=5s, table=0, n_packets=0, n_bytes=0, priority=7,in_port=1 actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],set_field:0x1->in_port,resubmit(,37)\n"
	want := [][2]string{{"dump-flows br-int OpenFlow13", flows + moved}}
	for _, behind := range []string{"SRC[]-", "0x1-", "SRC[]->", "0x1->"} {
		at := strings.Index(moved, behind) + len(behind)
		expect.Equal(t, found("# ovs-ofctl dump-flows br-int\n"+flows+moved[:at]+"\n"+moved[at:]), want, behind)
		expect.Equal(t, found("> # ovs-ofctl dump-flows br-int\n> "+
			strings.ReplaceAll(flows+moved[:at]+"\n"+moved[at:], "\n", "\n> ")), want, behind+" in a mail")
	}
}

// TestGroupsAndMetersAreWhole wraps groups, and has meters, whose first lines end like a line that is cut.
func TestGroupsAndMetersAreWhole(t *testing.T) {
	const (
		buckets = "OFPST_GROUP_DESC reply (OF1.3) (xid=0x2):\n group_id=7,type=select,bucket=weight:100,actions=ct(commit,table=16,nat(dst=10.244.1.3:8080)),bucket=weight:100,actions=ct(commit,table=16,nat(dst=10.244.2.3:8080))\n"
		meters  = "OFPST_METER_CONFIG reply (OF1.3) (xid=0x2):\nmeter=1 kbps burst stats bands=\ntype=drop rate=1000 burst_size=100\n\nmeter=2 pktps stats bands=\ntype=drop rate=20\n"
	)
	for width := 60; width < 140; width++ {
		expect.Equal(t, found("$ ovs-ofctl dump-groups br-int\n"+wrapped(buckets, width)),
			[][2]string{{"dump-groups br-int OpenFlow13", buckets}}, width)
	}
	pieces := ticket.Read("$ ovs-ofctl dump-meters br-int\n" + meters).Pieces
	if len(pieces) != 1 || pieces[0].Partial != nil || strings.Count(pieces[0].Text, "rate=") != 2 {
		t.Errorf("%+v", pieces)
	}
}

// TestActionsThatBeginLikeAFlowAreJoined wraps a flow at 80 columns before an arrow to a field that flows begin with.
func TestActionsThatBeginLikeAFlowAreJoined(t *testing.T) {
	const loops = " cookie=0x3c43a14, duration=95.863s, table=64, n_packets=2, n_bytes=84, priority=100,reg10=0x1/0x1,reg15=0x2,metadata=0x3 actions=push:NXM_OF_IN_PORT[],set_field:ANY->in_port,resubmit(,65),pop:NXM_OF_IN_PORT[]\n"
	for shift := range 20 { // the cookie has up to 16 digits
		text := flows + strings.Replace(loops, "0x3c43a14", "0x3c43a14"+strings.Repeat("0", shift), 1) + flow
		expect.Equal(t, found("# ovs-ofctl dump-flows br-int\n"+wrapped(text, 80)),
			[][2]string{{"dump-flows br-int OpenFlow13", text}}, shift)
	}
}

// TestMarksRoundEntries puts what people write round an entry, and asks for the entry. What is no mark is named, and
// its entry is not taken.
func TestMarksRoundEntries(t *testing.T) {
	whole := [][2]string{{"dump-flows br-int OpenFlow13", flows + flow}}
	bare := strings.TrimSpace(flow)
	for _, marked := range []string{
		"**" + bare + "**  <==== HERE!", "(1) " + bare, "a) " + bare, "→ " + bare, "[here] " + bare, "10:01:02.345 " + bare,
		"2026-05-07T06:44:05Z " + bare,
		"{color:red}" + bare + "{color}", `<span style="color:red">` + bare + "</span>", "<b>" + bare + "</b>",
		"| " + bare + " |", "• " + bare, bare + " (this one)", bare + " !!!", bare + " ?",
		strings.Replace(bare, "priority=7", "**priority=7**", 1),
		strings.Replace(bare, "actions=output:2", "<b>actions=output:2</b>", 1),
		strings.Replace(bare, "in_port=1", "`in_port=1`", 1),
	} {
		expect.Equal(t, found("$ ovs-ofctl dump-flows br-int\n"+flows+marked+"\n"), whole, marked)
	}
	for _, aliased := range []string{
		strings.Replace(flow, "table=0", "table=0(classifier)", 1),
		strings.Replace(flow, "table=0", "table=0(main table)", 1),
	} {
		expect.Equal(t, found("$ ovs-ofctl dump-flows br-int\n"+flows+aliased), whole, aliased)
	}
	const resubmits = " cookie=0x2, duration=5s, table=in, n_packets=1, n_bytes=60, priority=7 actions=resubmit(,acl),resubmit(2,out),ct(commit,table=nat),goto_table:out\n"
	expect.Equal(t, found("$ ovs-ofctl dump-flows br-int\n"+
		flows+strings.NewReplacer("=in", "=in(ingress)", ",acl)", ",acl(acl_table))", "2,out)", "2,out(3))", "=nat",
		"=nat(NAT)", ":out", ":out(3)").Replace(resubmits)),
		[][2]string{{"dump-flows br-int OpenFlow13", flows + resubmits}})
	partial := [][2]string{{"dump-flows br-int OpenFlow13 partial", flows}}
	for _, marked := range []string{"~~" + bare + "~~", "n2: " + bare, "HERE: " + bare, "The flow " + bare} {
		expect.Equal(t, found("$ ovs-ofctl dump-flows br-int\n"+flows+marked+"\n"), partial, marked)
	}
	expect.Equal(t, found("$ ovs-ofctl dump-groups br-int\n"+groups+"(2) group_id=8,type=all,bucket=actions=output:2\n"),
		[][2]string{{"dump-groups br-int OpenFlow13", groups + " group_id=8,type=all,bucket=actions=output:2\n"}})
}

// TestLinesThatWereLeftOut has what stands for lines that were left out, and what a command prints that does not end,
// behind and between entries; and remarks that say something else.
func TestLinesThatWereLeftOut(t *testing.T) {
	const command = "$ ovs-ofctl dump-flows br-int\n"
	for _, line := range []string{
		"...", "…", " . . .", "[...]", "etc.", "-- More --", "--More--(12%)", "lines 1-23", "...skipping...",
		"(100 more lines)", "... 35 similar flows for the other ports ...", "/* lots of similar flows */", "--",
		"8< ------ 8<", "[output trimmed for brevity]", "(more flows omitted)", "<output omitted>", "# truncated",
		"and so on", "Some other flows are not shown here", "^C", "Killed", "Terminated",
		"packet_write_wait: Connection to 10.0.0.1 port 22: Broken pipe",
		"ovs-ofctl: OpenFlow packet receive failed (End of file)", "command terminated with exit code 137",
		"2026-05-07T06:44:05Z|00001|fatal_signal|WARN|terminating with signal 14 (Alarm clock)",
	} {
		for name, text := range map[string]string{"behind": flows + flow + line + "\n",
			"between": flows + line + "\n" + flow} {
			expect.Equal(t, found(command+text), [][2]string{{"dump-flows br-int OpenFlow13 partial", flows + flow}},
				name+" "+line)
		}
	}
	for _, line := range []string{"; the next one drops", "<!-- why? -->", "^^^^^ reachable", "---", "(END)",
		"This is the last one of its table.", "2026-05-07T06:44:05Z|00001|ofp_util|WARN|normalization changed ofp_match",
		"real    0m0.005s"} {
		expect.Equal(t, found(command+flows+line+"\n"+flow), [][2]string{{"dump-flows br-int OpenFlow13", flows + flow}},
			line)
	}
	expect.Equal(t, found(command+flows+"\nWhen I removed many rules, the other ports worked.\n"),
		[][2]string{{"dump-flows br-int OpenFlow13", flows}}, "a sentence below")
	for name, text := range map[string]string{"hunks": "@@ -1,2 +1,3 @@\n" + flows + "+" + flow,
		"diff": flows + "1c1\n< " + second + "---\n> " + flow} {
		expect.Equal(t, found(command+text), [][2]string{{"dump-flows br-int OpenFlow13 partial", flows + flow}}, name)
	}
	for name, c := range map[string]struct{ command, text string }{
		"ovs-vsctl show": {"ovs-vsctl show", shown}, "ovs-ofctl show": {"ovs-ofctl show br-int", ports},
		"fdb/show": {"ovs-appctl fdb/show br-int", fdb},
	} {
		for _, line := range []string{"...", "[snip]", "        (more ports)", "--More--", "<output omitted>"} {
			pieces := ticket.Read("$ " + c.command + "\n" + c.text + line + "\n").Pieces
			if len(pieces) != 1 || pieces[0].Partial == nil || strings.TrimSpace(pieces[0].Text) != strings.TrimSpace(c.text) {
				t.Errorf("%s, %q: %+v", name, line, pieces)
			}
		}
	}
}

// TestPartsOfDumps has the ways of shells and of people to print a part of a dump, and some that print all of it.
func TestPartsOfDumps(t *testing.T) {
	const part, whole = "dump-flows br-int OpenFlow13 partial", "dump-flows br-int OpenFlow13"
	for line, want := range map[string]string{
		"$ ovs-ofctl dump-flows br-int |& grep priority=1":                           part,
		"$ ovs-ofctl dump-flows br-int |\n> grep priority=1":                         part,
		"$ ovs-ofctl dump-flows br-int | \\\n    grep priority=1":                    part,
		"$ { ovs-ofctl dump-flows br-int; } | grep priority=1":                       part,
		"$ (ovs-ofctl dump-flows br-int; date) | grep priority=1":                    part,
		"$ for i in 1; do ovs-ofctl dump-flows br-int; done | head -1":               part,
		"$ ovs-ofctl dump-flows br-int > /tmp/x; grep priority=1 /tmp/x":             part,
		"$ ovs-ofctl dump-flows br-int >/tmp/x && head -1 /tmp/x":                    part,
		"$ ovs-ofctl dump-flows br-int > /tmp/x; cat /tmp/x | tail -1":               part,
		"$ ovs-ofctl dump-flows br-int > >(head -1)":                                 part,
		"$ ovs-ofctl dump-flows br-int # only table 0":                               part,
		"Every 2.0s: ovs-ofctl dump-flows br-int | grep x   n1: Fri Nov 27 10:0 026": "n1 " + part,
		"Relevant part of `ovs-ofctl dump-flows br-int`:":                            part,
		"Excerpt of ovs-ofctl dump-flows br-int:":                                    part,
		"Some flows from `ovs-ofctl dump-flows br-int`:":                             part,
		"$ ovs-ofctl dump-flows br-int > /tmp/x; cat /tmp/x":                         whole,
		"$ ovs-ofctl dump-flows br-int | tee /tmp/x; head /tmp/y":                    whole,
		"$ ovs-ofctl \\\n  dump-flows br-int":                                        whole,
		"$ (ovs-ofctl dump-flows br-int)":                                            whole,
		"$ ovs-ofctl dump-flows br-int &":                                            whole,
		"$ ovs-ofctl dump-flows br-int # the bridge":                                 whole,
		"Every 2.0s: ovs-ofctl dump-flows br-int      n1: Fri Nov 27 10:00:00 2026":  "n1 " + whole,
		"All flows from `ovs-ofctl dump-flows br-int`:":                              whole,
	} {
		expect.Equal(t, found(line+"\n"+flows), [][2]string{{want, flows}}, line)
	}
	for line, want := range map[string]string{
		"[root@n1 ~]# head -20 flows.txt": " partial", "$ grep -v drop flows.txt": " partial",
		"$ cat flows.txt | grep ip": " partial", "$ cat flows.txt": "",
	} {
		expect.Equal(t, found(line+"\n"+flows), [][2]string{{"dump-flows OpenFlow13" + want, flows}}, line)
	}
}

// TestShowsOfSeveralNodesAreApart has the outputs of ovs-vsctl show of two nodes below one command line.
func TestShowsOfSeveralNodesAreApart(t *testing.T) {
	other := strings.Replace(shown, "4b6b0d73", "5b6b0d73", 1)
	for _, command := range []string{"$ ovs-vsctl show", "$ for i in a b; do ssh $i ovs-vsctl show; done",
		"$ pssh -h hosts -i ovs-vsctl show"} {
		expect.Equal(t, found(command+"\n"+shown+other), [][2]string{{"ovs-vsctl.show", shown}, {"ovs-vsctl.show", other}},
			command)
	}
}

// TestWhatIsNoOutputIsNamed checks what is said of text below a command line that the command does not print.
func TestWhatIsNoOutputIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"$ ovs-ofctl dump-flows br0\novs-ofctl: br0 is not a bridge or a socket\n":            `line 1: what stands below ovs-ofctl dump-flows is not its output: "ovs-ofctl: br0 is not a bridge or a socket"`,
		"Hello\n$ ovs-vsctl show\n1: Bridge br0\n2: Port p1\n":                                `line 2: what stands below ovs-vsctl show is not its output: "1: Bridge br0"`,
		"$ ovs-vsctl show\novs-vsctl: unix:/run/openvswitch/db.sock: database connection f\n": `line 1: what stands below ovs-vsctl show is not its output: "ovs-vsctl: unix:/run/openvswitch/db.sock: database connection f"`,
		"$ ovs-vsctl show\n" + shown:                                                          "",
		"Please attach ovs-vsctl show\nand the logs.\n":                                       "",
		"$ ovs-ofctl dump-flows br0\n$ ovs-vsctl show\n$ ls\n":                                "",
	} {
		expect.Equal(t, strings.Join(ticket.Read(text).Unfit, "\n"), want, text)
	}
}

// TestOutputsOfALoop has the flows of two bridges below a loop, which prints the name of each bridge, and loops that
// do not.
func TestOutputsOfALoop(t *testing.T) {
	const loop = "[root@n1 ~]# for i in $(ovs-vsctl list-br); do echo \"== $i\"; ovs-ofctl dump-flows $i; done\n"
	for _, name := range []string{"== %s", "%s", "--- %s ---", "%s:", "### Bridge %s", "*** %s ***"} {
		of := func(bridge string) string { return strings.Replace(name, "%s", bridge, 1) + "\n" }
		expect.Equal(t, found(loop+of("br-int")+flows+of("br-ex")+flows+flow),
			[][2]string{{"n1 dump-flows br-int OpenFlow13", flows}, {"dump-flows br-ex OpenFlow13", flows + flow}}, name)
	}
	unnamed := [][2]string{{"dump-flows OpenFlow13", flows}, {"dump-flows OpenFlow13", flows + flow}}
	for _, line := range []string{"$ for i in a b; do ovs-ofctl dump-flows $i; done",
		"$ ovs-vsctl list-br | xargs -n1 ovs-ofctl dump-flows",
		"$ while read i; do ovs-ofctl dump-flows \"$i\"; done < bridges"} {
		expect.Equal(t, found(line+"\n"+flows+flows+flow), unnamed, line)
	}
}
