package retrace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/answer/retrace"
	"ovs-offline/collect"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/local"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// question is a packet, and what becomes of it by the flows of the switch.
type question struct {
	port    int // of the destination
	options []string
	verdict retrace.Verdict
	ends    string // a part of the ends
	where   string // the bridge and the table
	reason  string
}

// questions are the packets: the flows of startSwitch say what becomes of each.
func questions() []question {
	return []question{
		{port: 80, verdict: retrace.Delivered, ends: "(p2)", where: "br0 1"},
		{port: 81, verdict: retrace.Dropped, where: "br0 0", reason: "explicit drop"},
		{port: 82, verdict: retrace.Delivered, ends: "(p3)", where: "br0 2"},
		{port: 82, options: []string{"--ct-next", "trk,est"}, verdict: retrace.Dropped, where: "br0 2",
			reason: "explicit drop"},
		{port: 83, verdict: retrace.Undetermined, where: "br0 0"},
		{port: 84, verdict: retrace.Controller, ends: "controller", where: "br0 0"},
		{port: 85, verdict: retrace.Delivered, ends: "(q1)", where: "br1 0"},
		{port: 86, verdict: retrace.Dropped, where: "br0 0", reason: "explicit drop"}, // the tunnel has no route
		{port: 87, verdict: retrace.Dropped, where: "br0 0", reason: "sent to its input port"},
		{port: 88, verdict: retrace.Delivered, ends: "(p4)", where: "br0 0"},
		{port: 89, verdict: retrace.Dropped, where: "br0 0", reason: "missing flow"},
		{port: 90, verdict: retrace.Delivered, ends: "(p2)", where: "br1 0"},
	}
}

func startSwitch(t *testing.T) *ovs.Switch {
	t.Helper()
	s := ovs.Start(t)
	s.Vsctl("add-br", "br0", "--", "set", "bridge", "br0", "fail-mode=secure", "--", "add-br", "br1", "--", "set",
		"bridge", "br1", "fail-mode=secure")
	for i := range 4 {
		s.Vsctl("add-port", "br0", fmt.Sprintf("p%d", i+1), "--", "set", "interface", fmt.Sprintf("p%d", i+1), "type=dummy",
			fmt.Sprintf("ofport_request=%d", i+1))
	}
	s.Vsctl("add-port", "br0", "a", "--", "set", "interface", "a", "type=patch", "options:peer=b", "ofport_request=10",
		"--",
		"add-port", "br1", "b", "--", "set", "interface", "b", "type=patch", "options:peer=a", "ofport_request=1", "--",
		"add-port", "br1", "q1", "--", "set", "interface", "q1", "type=dummy", "ofport_request=2", "--",
		"add-port", "br0", "vx", "--", "set", "interface", "vx", "type=vxlan", "options:remote_ip=10.9.9.9",
		"ofport_request=20")
	s.Ofctl("-O", "OpenFlow13", "add-group", "br0", "group_id=5,type=select,bucket=output:2,bucket=output:3")
	for _, flow := range []string{
		"priority=10,in_port=1,tcp,tp_dst=80,actions=resubmit(,1)", "priority=10,in_port=1,tcp,tp_dst=81,actions=drop",
		"priority=10,in_port=1,tcp,tp_dst=82,actions=ct(table=2,zone=7)",
		"priority=10,in_port=1,tcp,tp_dst=83,actions=group:5",
		"priority=10,in_port=1,tcp,tp_dst=84,actions=controller(max_len=128)",
		"priority=10,in_port=1,tcp,tp_dst=85,actions=output:10",
		"priority=10,in_port=1,tcp,tp_dst=86,actions=output:20", "priority=10,in_port=1,tcp,tp_dst=87,actions=output:1",
		"priority=10,in_port=1,tcp,tp_dst=88,actions=resubmit(,9),output:4",
		"priority=10,in_port=1,tcp,tp_dst=90,actions=resubmit(,3)", "table=3,actions=NORMAL",
		"cookie=0x99,table=1,priority=5,tcp,actions=set_field:0x5->reg1,output:2",
		"table=2,ct_state=+trk+new,tcp,actions=ct(commit,zone=7),output:3", "table=2,ct_state=+trk+est,tcp,actions=drop",
	} {
		s.Ofctl("-O", "OpenFlow13", "add-flow", "br0", flow)
	}
	s.Ofctl("add-flow", "br1", "in_port=1,actions=output:2")
	return s
}

// asked is a question, and what the switch printed.
type asked struct {
	question
	flow, text string
}

// TestTracesOfASwitchMeanWhatItDid asks an ovs-vswitchd about packets, pastes what it prints into tickets of several
// forms, and checks what is read of them.
func TestTracesOfASwitchMeanWhatItDid(t *testing.T) {
	s := startSwitch(t)
	var all []asked
	for _, q := range questions() {
		flow := fmt.Sprintf("in_port=1,tcp,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,tp_src=1000,tp_dst=%d", q.port)
		all = append(all, asked{q, flow, s.Appctl(append([]string{"ofproto/trace", "br0", flow}, q.options...)...)})
	}
	shown := s.Appctl("dpif/show")
	for name, form := range map[string]struct {
		write func(asked) string
		flat  bool
	}{
		"a terminal": {func(a asked) string {
			return fmt.Sprintf("[root@n1 ~]# ovs-appctl ofproto/trace br0 '%s' %s\n%s", a.flow, strings.Join(a.options, " "),
				a.text)
		}, false},
		"a mail": {func(a asked) string {
			return "> " + strings.ReplaceAll(fmt.Sprintf("$ sudo ovs-appctl -t ovs-vswitchd ofproto/trace br0 \\\n  %s\n%s",
				a.flow, a.text), "\n", "\n> ") + "\nI see.\n"
		}, false},
		"Markdown without command lines": {func(a asked) string { return "I asked:\n\n```\n" + a.text + "```\n\n" }, false},
		"a log": {func(a asked) string {
			var b strings.Builder
			for line := range strings.Lines(a.text) {
				fmt.Fprintf(&b, "2026-11-29 10:00:%02d.%d 77 DEBUG x [-] %s", b.Len()%60, b.Len(), line)
			}
			return b.String()
		}, false},
		"Jira": {func(a asked) string {
			var b strings.Builder
			for line := range strings.Lines("kubectl exec -it ovs-x -- ovs-appctl ofproto/trace br0 " + a.flow + "\n" + a.text) {
				b.WriteString(strings.TrimLeft(line, " "))
			}
			return b.String()
		}, true},
	} {
		ticket := "# ovs-appctl dpif/show\n" + shown + "\n"
		for _, a := range all {
			ticket += form.write(a)
		}
		read := readTicket(t, ticket)
		if len(read.Traces) != len(all) {
			t.Errorf("%s: %d traces, want %d", name, len(read.Traces), len(all))
			continue
		}
		for i, a := range all {
			got := read.Traces[i]
			what := fmt.Sprintf("%s, port %d\n%s", name, a.port, a.text)
			expect.Equal(t, got.Verdict, a.verdict, what)
			expect.Equal(t, got.Reason, a.reason, what)
			expect.Equal(t, got.InPort, "1 (p1)", what)
			expect.Equal(t, len(got.Lacks), 0, what)
			if !strings.Contains(strings.Join(got.Ends, "; "), a.ends) {
				t.Errorf("%s: ends %q", what, got.Ends)
			}
			if got.Where == nil || !form.flat && fmt.Sprint(got.Where.Bridge, " ", got.Where.Table) != a.where {
				t.Errorf("%s: %+v", what, got.Where)
			}
			if got.Again.NotAsked == "" {
				t.Errorf("%s: %+v", what, got.Again)
			}
		}
	}
}

// readTicket collects a text, and reads the traces in it.
func readTicket(t *testing.T, text string) *retrace.Document {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "wd")
	path := filepath.Join(t.TempDir(), "ticket.md")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	wd, err := workdir.Lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = collect.Collect(t.Context(), wd, collect.Files{Paths: []string{path}}, collect.Options{})
	wd.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	return readFolder(t, folder)
}

// readFolder reads the traces in a workdir, whose replica runs as local processes if it runs.
func readFolder(t *testing.T, folder string) *retrace.Document {
	t.Helper()
	nodes, err := snapshot.OpenNodes(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	read, err := retrace.Read(t.Context(), nodes, func(*snapshot.Node) retrace.Replica { return local.Replica{} })
	if err != nil {
		t.Fatal(err)
	}
	return read
}

const head = "Flow: tcp,in_port=1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,tp_dst=80\n\nbridge(\"br0\")\n-------------\n 0. in_port=1, priority 10\n"

// TestWhatWasNotPastedLeavesTheVerdictOpen checks traces that end before their end.
func TestWhatWasNotPastedLeavesTheVerdictOpen(t *testing.T) {
	for name, c := range map[string]struct{ text, missing string }{
		"no datapath actions":      {head + "    output:2\n", "ends before the datapath actions"},
		"a further pass":           {head + "    ct(table=1)\n\nFinal flow: unchanged\nMegaflow: x\nDatapath actions: ct,recirc(0x5)\n", "recirc(0x5)"},
		"cut datapath actions":     {head + "    ct(table=1)\n\nFinal flow: unchanged\nMegaflow: x\nDatapath actions: ct(zone=5,nat(src=10.0\n", "are cut off"},
		"actions with an ellipsis": {head + "    output:2\n\nFinal flow: unchanged\nMegaflow: x\nDatapath actions: set(eth(src=00:00:00:00:00:01)),2...\n", "are cut off"},
		"a cut further pass": {head + "    ct(table=1)\n\nFinal flow: unchanged\nMegaflow: x\nDatapath actions: ct,recirc(0x5)\n\n" + strings.Repeat("=", 79) + "\nrecirc(0x5) - resume conntrack\n" + strings.Repeat("=", 79) +
			"\n\nFlow: recirc_id=0x5,tcp,in_port=1\n\nbridge(\"br0\")\n-----\n    thaw\n        Resuming from table 1\n",
			"the pass after recirc(0x5)"},
	} {
		read := readTicket(t, "Look:\n"+c.text)
		if len(read.Traces) != 1 || read.Traces[0].Verdict != retrace.Undetermined ||
			!strings.Contains(strings.Join(read.Traces[0].Missing, "; "), c.missing) || !read.IsIncomplete() {
			t.Errorf("%s: %+v", name, read.Traces)
		}
	}
}

// TestPartsOfAnOutputAreReadWithTheCommandLine checks outputs that grep or tail has shortened.
func TestPartsOfAnOutputAreReadWithTheCommandLine(t *testing.T) {
	for _, filter := range []string{"tail -1", "grep Datapath", "tail -n 3"} {
		read := readTicket(t, "$ ovs-appctl ofproto/trace br0 in_port=1,tcp | "+filter+
			"\nFinal flow: unchanged\nMegaflow: recirc_id=0,in_port=1\nDatapath actions: 7\n$ date\n")
		if len(read.Traces) != 1 || read.Traces[0].Verdict != retrace.Delivered ||
			!strings.Contains(read.Traces[0].Ends[0], "port 7") || len(read.Traces[0].Lacks) == 0 || !read.IsIncomplete() {
			t.Errorf("%s: %+v", filter, read.Traces)
		}
	}
}
