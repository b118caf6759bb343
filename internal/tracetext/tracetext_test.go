package tracetext_test

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/internal/tracetext"
	"ovs-offline/test/check/expect"
)

// The texts are what ofproto/trace of Open vSwitch 3.1 and ovn-trace of OVN 23.03 printed.
const (
	resubmit = `Flow: tcp,in_port=1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=1000,tp_dst=80,tcp_flags=0

bridge("br0")
-------------
 0. tcp,in_port=1,tp_dst=80, priority 10
    resubmit(,1)
 1. tcp,nw_src=10.0.0.1, priority 5, cookie 0x99
    set_field:0x5->reg1
    output:2

Final flow: tcp,reg1=0x5,in_port=1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=1000,tp_dst=80,tcp_flags=0
Megaflow: recirc_id=0,eth,tcp,in_port=1,nw_src=10.0.0.1,nw_frag=no,tp_dst=80
Datapath actions: 2
`
	twoPasses = `Flow: tcp,in_port=1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=1000,tp_dst=82,tcp_flags=0

bridge("br0")
-------------
 0. tcp,in_port=1,tp_dst=82, priority 10
    ct(table=2,zone=7)
    drop
     -> A clone of the packet is forked to recirculate. The forked pipeline will be resumed at table 2.
     -> Sets the packet to an untracked state, and clears all the conntrack fields.

Final flow: unchanged
Megaflow: recirc_id=0,eth,tcp,in_port=1,nw_frag=no,tp_dst=82
Datapath actions: ct(zone=7),recirc(0x1)

===============================================================================
recirc(0x1) - resume conntrack with default ct_state=trk|new (use --ct-next to customize)
===============================================================================

Flow: recirc_id=0x1,ct_state=new|trk,ct_zone=7,eth,tcp,in_port=1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=1000,tp_dst=82,tcp_flags=0

bridge("br0")
-------------
    thaw
        Resuming from table 2
 2. ct_state=+new+trk,tcp, priority 32768, cookie 0x77
    ct(commit,zone=7)
    drop
     -> Sets the packet to an untracked state, and clears all the conntrack fields.
    output:3

Final flow: unchanged
Megaflow: recirc_id=0x1,ct_state=+new+trk,eth,tcp,in_port=1,nw_frag=no
Datapath actions: ct(commit,zone=7),3
`
	slow = `Flow: udp,in_port=1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=0,tp_dst=0

bridge("br0")
-------------
 0. in_port=1, priority 10
    output:1
     >> skipping output to input port

Final flow: unchanged
Megaflow: recirc_id=0,eth,udp,in_port=1,nw_frag=no
Datapath actions: drop
This flow is handled by the userspace slow path because it:
  - Uses action(s) not supported by datapath.
`
	old = "Bridge: br0\nFlow: tcp,in_port=1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02\n\nRule: table=0 cookie=0 in_port=1\nOpenFlow actions=resubmit(,1)\n\n" +
		"\tResubmitted flow: unchanged\n\tResubmitted regs: reg0=0x0\n\tResubmitted  odp: drop\n\tResubmitted megaflow: in_port=1\n\tNo match\n\nFinal flow: unchanged\nMegaflow: in_port=1\nDatapath actions: drop\n"
	logical = `# tcp,reg14=0x1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:09,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=0,tp_dst=80,tcp_flags=0

ingress(dp="sw0", inport="p1")
------------------------------
 0. ls_in_check_port_sec (northd.c:8432): 1, priority 50, uuid a22d14db
    reg0[15] = check_in_port_sec();
    next;
 6. ls_in_pre_stateful (northd.c:6140): reg0[0] == 1, priority 100, uuid e7c7b42d
    ct_next;

ct_next(ct_state=est|trk /* default (use --ct to customize) */)
---------------------------------------------------------------
26. ls_in_l2_unknown (northd.c:8381): outport == "none", priority 50, uuid 6345017d
    drop;
`
)

func all() []string { return []string{resubmit, twoPasses, slow, old, logical} }

// eachLine changes each line of a text.
func eachLine(text string, change func(i int, line string) string) string {
	var b strings.Builder
	i := 0
	for line := range strings.Lines(text) {
		b.WriteString(change(i, strings.TrimSuffix(line, "\n")) + "\n")
		i++
	}
	return b.String()
}

// TestTracesAreFoundInTheFormsOfTexts checks that a trace is found whole, and as the tool printed it, in the forms in
// which people and programs show it.
func TestTracesAreFoundInTheFormsOfTexts(t *testing.T) {
	forms := map[string]func(string) string{
		"alone": func(text string) string { return text },
		"in prose": func(text string) string {
			return "Hello\n\nI asked and saw:\n" + text + "\nThat is not what I want.\nBye\n"
		},
		"indented": func(text string) string {
			return eachLine(text, func(_ int, line string) string { return strings.TrimRight("    "+line, " ") })
		},
		"a log": func(text string) string {
			return eachLine(text, func(i int, line string) string {
				return fmt.Sprintf("2026-11-29 10:%02d:%02d.%d 1234 INFO tool [-] %s", i/60, i%60, i*7, line)
			})
		},
		"syslog": func(text string) string {
			return eachLine(text, func(i int, line string) string {
				return strings.TrimRight(fmt.Sprintf("Nov 29 10:00:%02d n1 tool[77]: %s", i%60, line), " ")
			})
		},
		"a message of a log": func(text string) string { return "2026-11-29T10:00:00Z INFO result: " + text },
	}
	for form, change := range forms {
		for i, want := range all() {
			if form == "a message of a log" && i == 3 { // the line of the bridge has the prefix, and that of the flow none
				continue
			}
			found := tracetext.Find(change(want))
			if len(found) != 1 || found[0].Text != want || found[0].Lacks != nil || found[0].Flat {
				t.Errorf("%s, text %d: %d traces %+v", form, i, len(found), found)
			}
		}
	}
}

// TestTerminalsWrapTraces checks lines that a terminal has broken.
func TestTerminalsWrapTraces(t *testing.T) {
	for _, width := range []int{80, 100, 120} {
		for i, want := range []string{resubmit, twoPasses, slow} {
			got := tracetext.Find(wrapped(want, width))
			text := ""
			if len(got) == 1 {
				text = strings.Join(strings.Fields(got[0].Text), "")
			}
			if text != strings.Join(strings.Fields(want), "") {
				t.Errorf("width %d, text %d: %d traces\n%s", width, i, len(got), wrapped(want, width))
			}
		}
	}
}

func wrapped(text string, width int) (all string) {
	for line := range strings.Lines(text) {
		for len(line) > width+1 {
			all, line = all+line[:width]+"\n", line[width:]
		}
		all += line
	}
	return all
}

// TestTracesWithoutIndentation checks that the indentation is put back, and that this is said.
func TestTracesWithoutIndentation(t *testing.T) {
	for i, want := range []string{resubmit, slow, old} {
		flat := eachLine(want, func(_ int, line string) string { return strings.TrimLeft(line, " \t") })
		found := tracetext.Find(strings.ReplaceAll(flat, "\n>> ", "\n"))
		if len(found) != 1 || found[0].Flat != (want != old) || want != old &&
			strings.ReplaceAll(found[0].Text, "\n- ", "\n  - ") != want {
			t.Errorf("text %d: %+v", i, found)
		}
	}
	if found := tracetext.Find(strings.ReplaceAll(eachLine(twoPasses,
		func(_ int, line string) string { return strings.TrimLeft(line, " ") }), strings.Repeat("=", 79)+"\n",
		"")); len(found) != 1 || strings.Count(found[0].Text, "====\n") != 2 {
		t.Errorf("%+v", found)
	}
}

// TestWhatIsNotWholeIsNamed checks outputs of which a part was left out.
func TestWhatIsNotWholeIsNamed(t *testing.T) {
	at := strings.Index(resubmit, " 1. tcp")
	for text, want := range map[string]string{
		resubmit[:at]:                           "it ends before its datapath actions",
		resubmit[:at] + "...\n" + resubmit[at:]: "lines were left out in 1 places",
		resubmit[:at] + "[snip]\n":              "lines were left out in 1 places|it ends before its datapath actions",
		twoPasses[:len(twoPasses)-40]:           "",
	} {
		found := tracetext.Find(text)
		if len(found) != 1 || want != "" && strings.Join(found[0].Lacks, "|") != want {
			t.Errorf("%s\n%+v", text, found)
		}
	}
}

// TestSeveralTracesAreFoundInTheirOrder checks traces that follow each other, also a cut one.
func TestSeveralTracesAreFoundInTheirOrder(t *testing.T) {
	at := strings.Index(resubmit, " 1. tcp")
	text := resubmit[:at] + slow + "Text.\n$ ovs-appctl ofproto/trace br0 'in_port=1, udp' -generate\n" + old + logical +
		"$ ovn-trace sw0 'inport == \"p1\"'\n" + logical
	var got []string
	for _, trace := range tracetext.Find(text) {
		got = append(got, fmt.Sprint(trace.Tool, trace.Words, len(trace.Text) > 100, len(trace.Lacks)))
	}
	expect.Equal(t, got, []string{"ofproto/trace[] true 1", "ofproto/trace[] true 0",
		"ofproto/trace[ovs-appctl ofproto/trace br0 in_port=1, udp -generate] true 0",
		"ovn-trace[] true 0", `ovn-trace[ovn-trace sw0 inport == "p1"] true 0`})
}

// TestFormatIsReadBack checks that a file of traces has all of them.
func TestFormatIsReadBack(t *testing.T) {
	var text string
	for i, content := range all() {
		one := tracetext.Find(content)[0]
		one.Origin = fmt.Sprintf("a b.md, line %d", i)
		one.Words = []string{"ovs-appctl", "ofproto/trace", "br0", `it's "a" flow, \x`, ""}
		if one.Tool == tracetext.Logical {
			one.Words[1] = "ovn-trace"
		}
		one.Lacks = []string{"a part"}
		text += one.Format()
	}
	back := tracetext.Read(text)
	if len(back) != len(all()) {
		t.Fatalf("%d traces of %d", len(back), len(all()))
	}
	for i, one := range back {
		if one.Text != all()[i] || one.Words[3] != `it's "a" flow, \x` || len(one.Words) != 5 ||
			one.Origin != fmt.Sprintf("a b.md, line %d", i) || len(one.Lacks) != 1 {
			t.Errorf("%+v", one)
		}
	}
}

// TestQuestions checks what command lines ask, and that no text of one becomes an option.
func TestQuestions(t *testing.T) {
	for line, want := range map[string]tracetext.Question{
		"ovs-appctl ofproto/trace br-int in_port=1,tcp": {Bridge: "br-int",
			Flow: "in_port=1,tcp"},
		"ovs-appctl -t ovs-vswitchd ofproto/trace br-int in_port=1,tcp -generate": {Bridge: "br-int",
			Flow: "in_port=1,tcp"},
		"ovs-appctl ofproto/trace --ct-next trk,est --names br0 in_port=1 --ct-next=trk": {Bridge: "br0", Flow: "in_port=1",
			States: []string{"trk,est", "trk"}, Names: true},
		"ovs-appctl ofproto/trace br0 in_port=1, tcp, tp_dst=80": {Bridge: "br0",
			Flow: "in_port=1,tcp,tp_dst=80"},
		"ovs-appctl ofproto/trace br0 in_port=1 ffffffffffff00000000000108004500001c": {Bridge: "br0", Flow: "in_port=1"},
		"ovs-appctl ofproto/trace ovs-system in_port(1),eth()":                        {},
		"ovs-appctl ofproto/trace --ct-next --db=x br0 in_port=1":                     {Bridge: "br0", Flow: "in_port=1"},
		"ovn-trace --ct=new --ct=$(x) --lb-dst=1.2.3.4:80 --db=tcp:x:1 sw0 inport==\"a\"": {Datapath: "sw0",
			Microflow: `inport==a`, States: []string{"new"}, Options: []string{"--lb-dst=1.2.3.4:80"}},
		"ovn-trace --ovs 'inport == \"a\" && tcp'": {Microflow: `inport == "a" && tcp`},
	} {
		found := tracetext.Find("$ " + line + "\n" +
			map[bool]string{true: logical, false: resubmit}[strings.HasPrefix(line, "ovn")])
		if len(found) != 1 {
			t.Errorf("%s: %d traces", line, len(found))
			continue
		}
		expect.Equal(t, fmt.Sprintf("%+v", found[0].Question()), fmt.Sprintf("%+v", want), line)
	}
	for _, text := range []string{"", "-t /tmp/x", "--names", "a b;c\n", strings.Repeat("in_port=1,", 1<<14)} {
		if tracetext.CheckFlow(text) == nil {
			t.Errorf("%.40q is taken for a flow", text)
		}
	}
}

// FuzzFind gives any text to the reader.
func FuzzFind(f *testing.F) {
	for _, text := range all() {
		f.Add(text)
		f.Add("$ ovs-appctl ofproto/trace br0 in_port=1\n> " + strings.ReplaceAll(text, "\n", "\n> "))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, trace := range tracetext.Find(text) {
			if trace.Text == "" || len(trace.Text) > 200*len(text)+200 {
				t.Errorf("a trace of %d bytes in %d", len(trace.Text), len(text))
			}
			trace.Question()
			back := tracetext.Read(trace.Format())
			if len(back) != 1 {
				t.Errorf("%d traces in the file of one", len(back))
			}
		}
	})
}
