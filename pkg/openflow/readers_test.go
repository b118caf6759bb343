package openflow

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/oracle/captures"
)

// allFlows reads a dump to its end.
func allFlows(r io.Reader) (flows []Flow, problems []Problem) {
	for f, p := range Flows(r) {
		if p != nil {
			problems = append(problems, *p)
		} else {
			flows = append(flows, f)
		}
	}
	return flows, problems
}

func texts(flows []Flow) []string {
	var list []string
	for _, f := range flows {
		list = append(list, f.Text)
	}
	return list
}

// dumps returns the outputs of the openvswitch plugin in the real reports.
func dumps(t testing.TB) map[string][]byte {
	t.Helper()
	reports := captures.Reports(t)
	found := map[string][]byte{}
	for _, report := range reports {
		dir := captures.Unpack(t, report)
		files, _ := filepath.Glob(filepath.Join(dir, "*/sos_commands/openvswitch/*"))
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.Base(report)+"/"+filepath.Base(file)] = raw
		}
	}
	return found
}

// grep counts matching lines, as grep -c does.
func grep(pattern string, raw []byte) int {
	re, n := regexp.MustCompile(pattern), 0
	for scanner := bufio.NewScanner(bytes.NewReader(raw)); scanner.Scan(); {
		if re.Match(scanner.Bytes()) {
			n++
		}
	}
	return n
}

// TestRealDumps checks that every entry in the dumps of the captures is found, and that
// an error message in place of data is reported.
func TestRealDumps(t *testing.T) {
	statistic := regexp.MustCompile(`(^|,)(duration|n_packets|n_bytes|idle_age|hard_age)=`)
	kinds := map[string]int{}
	for name, raw := range dumps(t) {
		command := name[strings.Index(name, "/")+1:]
		failed := grep(`ovs-ofctl:`, raw) > 0
		var entries, want, lost, messages int
		count := func(list []Problem) {
			for _, p := range list {
				if p.Lost {
					lost++
				}
				messages++
			}
		}
		switch {
		case strings.Contains(command, "dump-flows_") && strings.HasPrefix(command, "ovs-ofctl"),
			strings.Contains(command, "bridge.dump-flows"):
			flows, problems := allFlows(bytes.NewReader(raw))
			for _, f := range flows {
				match, _, ok := cutActions(f.Text)
				if !ok || statistic.MatchString(match) {
					t.Errorf("%s line %d: %s", name, f.Line, f.Text)
				}
			}
			entries, want = len(flows), grep(`actions=`, raw)
			count(problems)
			kinds["flows"] += entries
		case strings.Contains(command, "dump-groups_"):
			groups, problems := Groups(bytes.NewReader(raw))
			entries, want = len(groups), grep(`group_id=`, raw)
			count(problems)
			kinds["groups"] += entries
		case strings.Contains(command, "dump-meters_"):
			meters, problems := Meters(bytes.NewReader(raw))
			for _, m := range meters {
				if !strings.Contains(m.Text, "bands=type=") {
					t.Errorf("%s: %s", name, m.Text)
				}
			}
			entries, want = len(meters), grep(`^meter=`, raw)
			count(problems)
			kinds["meters"] += entries
		case strings.Contains(command, "dump-tlv-map_"):
			mappings, problems := TLVMap(bytes.NewReader(raw))
			entries, want = len(mappings), grep(`tun_metadata`, raw)
			count(problems)
			kinds["mappings"] += entries
		case strings.Contains(command, "meter-stats_"):
			entries, want = len(MeterAges(bytes.NewReader(raw))), grep(`^meter:`, raw)
			kinds["ages"] += entries
			messages = grep(`ovs-ofctl:`, raw)
		case strings.HasPrefix(command, "ovs-ofctl") && strings.Contains(command, "show_"):
			d := Show(bytes.NewReader(raw))
			entries, want = len(d.Ports), grep(`^ ([0-9]+|LOCAL)\(`, raw)
			if len(d.DatapathID) != 16 {
				t.Errorf("%s: datapath id %q", name, d.DatapathID)
			}
			kinds["ports"] += entries
		default:
			continue
		}
		if entries != want || lost > 0 || failed != (messages > 0) {
			t.Errorf("%s: %d of %d entries, %d lost, %d problems, an error text: %v", name, entries, want, lost, messages,
				failed)
		}
	}
	for _, kind := range []string{"flows", "groups", "meters", "mappings", "ages", "ports"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s in all the captures", kind)
		}
	}
}

func TestFlows(t *testing.T) {
	const header = "OFPST_FLOW reply (OF1.5) (xid=0x2):\n"
	for _, c := range []struct {
		what, dump string
		want       []string
		problems   int
		lost       int
	}{
		{"with statistics", header + " cookie=0x1, duration=12.3s, table=3, n_packets=1, n_bytes=2, idle_timeout=60, hard_timeout=5, idle_age=3, hard_age=4, send_flow_rem priority=10,ip,nw_src=1.2.3.4 actions=output:1\n",
			[]string{"cookie=0x1,table=3,send_flow_rem,priority=10,ip,nw_src=1.2.3.4 actions=output:1"}, 0, 0},
		{"flags without commas", header + " cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, send_flow_rem check_overlap reset_counts no_byte_counts importance=9, priority=1,in_port=\"a b,c\",tcp actions=drop\n",
			[]string{"cookie=0x0,table=0,send_flow_rem,reset_counts,no_byte_counts,importance=9,priority=1,in_port=\"a b,c\",tcp actions=drop"}, 0, 0},
		{"offloaded", header + " cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, n_offload_packets=0, n_offload_bytes=0, priority=0 actions=NORMAL\n",
			[]string{"cookie=0x0,table=0,priority=0 actions=NORMAL"}, 0, 0},
		{"timeouts in learn", header + " cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, idle_timeout=9, priority=1 actions=learn(table=2,idle_timeout=10,hard_timeout=300,fin_idle_timeout=5,priority=7,cookie=0x5,NXM_OF_VLAN_TCI[0..11],output:NXM_OF_IN_PORT[])\n",
			[]string{"cookie=0x0,table=0,priority=1 actions=learn(table=2,idle_timeout=10,hard_timeout=300,fin_idle_timeout=5,priority=7,cookie=0x5,NXM_OF_VLAN_TCI[0..11],output:NXM_OF_IN_PORT[])"}, 0, 0},
		{"a note that looks like actions", header +
			" cookie=0x0, table=0, priority=1,in_port=\"actions=x\" actions=output:\"p, actions=1\"\n",
			[]string{"cookie=0x0,table=0,priority=1,in_port=\"actions=x\" actions=output:\"p, actions=1\""}, 0, 0},
		{"an escaped quote in a name", header + " cookie=0x0, table=0, priority=1,in_port=\"a\\\", actions=\" actions=drop\n",
			[]string{"cookie=0x0,table=0,priority=1,in_port=\"a\\\", actions=\" actions=drop"}, 0, 0},
		{"of ovs-save", " priority=0 actions=NORMAL\n cookie=0x5, table=1, priority=2,ip actions=drop\n actions=drop\n",
			[]string{"priority=0 actions=NORMAL", "cookie=0x5,table=1,priority=2,ip actions=drop", " actions=drop"}, 0, 0},
		{"of ovs-save, the default flow first", " actions=NORMAL\n", []string{" actions=NORMAL"}, 0, 0},
		{"of bridge/dump-flows", "duration=3s, n_packets=0, n_bytes=0, priority=0,actions=NORMAL\ntable_id=254, duration=3s, n_packets=0, n_bytes=0, priority=2,recirc_id=0,actions=drop\n",
			[]string{"priority=0 actions=NORMAL", "table_id=254,priority=2,recirc_id=0 actions=drop"}, 0, 0},
		{"CR LF", strings.ReplaceAll(header+" cookie=0x0, table=0, priority=1 actions=drop\n", "\n", "\r\n"),
			[]string{"cookie=0x0,table=0,priority=1 actions=drop"}, 0, 0},
		{"the last line has no end", header + " cookie=0x0, table=0 actions=drop\n cookie=0x1, table=0, priority=1 actions=output:1",
			[]string{"cookie=0x0,table=0 actions=drop"}, 1, 1},
		{"a flow alone", " cookie=0x0, table=0, priority=1 actions=drop", []string{"cookie=0x0,table=0,priority=1 actions=drop"}, 0, 0},
		{"several replies", "OFPST_FLOW reply (OF1.5) (xid=0x2): flags=[more]\n cookie=0x0, table=0 actions=drop\n" + header + " cookie=0x1, table=0 actions=drop\n",
			[]string{"cookie=0x0,table=0 actions=drop", "cookie=0x1,table=0 actions=drop"}, 0, 0},
		{"the last reply is missing", "NXST_FLOW reply (xid=0x4): flags=[more]\n cookie=0x0, table=0 actions=drop\n cookie=0x1, table=0 actions=resubm",
			[]string{"cookie=0x0,table=0 actions=drop"}, 1, 1},
		{"a cut reply of several", header + " cookie=0x0, table=0 actions=drop\nOFPST_FLOW reply (OF1.5) (xid=0x2): flags=[more]\n", []string{"cookie=0x0,table=0 actions=drop"}, 1, 1},
		{"the old header", "NXST_FLOW reply (xid=0x4):\n cookie=0x0, table=0 actions=drop\n",
			[]string{"cookie=0x0,table=0 actions=drop"}, 0, 0},
		{"an error", "ovs-ofctl: br0 is not a bridge or a socket\n", nil, 1, 0},
		{"no common version", "2026-01-02T03:04:05Z|00001|vconn|WARN|unix:/x/br0.mgmt: version negotiation failed (we support version 0x06, peer supports version 0x04)\novs-ofctl: br0: failed to connect to socket (Protocol error)\n", nil, 2, 0},
		{"an alarm in the middle", header + " cookie=0x0, table=0 actions=drop\n2026-01-02T03:04:05Z|00001|fatal_signal|WARN|terminating with signal 14 (Alarm clock)\n", nil, 2, 1},
		{"a decode error", header + " cookie=0x0, table=0 actions=drop\n ***decode error: OFPBMC_BAD_FIELD***\n00000000  06 13 00 58 00 00 00 02-00 01 00 00 00 00 00 00 |...X............|\n00000010  00 48\n", []string{"cookie=0x0,table=0 actions=drop"}, 1, 1},
		{"cut in its last line", header + " cookie=0x0, table=0 actions=drop\n cookie=0x1, duration=3s, tab",
			[]string{"cookie=0x0,table=0 actions=drop"}, 1, 1},
		{"cut in its first line, in the statistics",
			"ytes=0, priority=7,ip actions=drop\n cookie=0x1, duration=1s, table=0, n_packets=0, n_bytes=0, priority=1 actions=drop\n", []string{"cookie=0x1,table=0,priority=1 actions=drop"}, 1, 1},
		{"cut in its first line, before the table", "table=0, n_packets=0, n_bytes=0, priority=7,ip actions=drop\n", nil, 1,
			1},
		{"cut in its first line, in the cookie",
			"okie=0x5, duration=1s, table=0, n_packets=0, n_bytes=0, priority=7,ip actions=drop\n", nil, 1, 1},
		{"cut in its first line, in the match",
			"src=1.2.3.4 actions=drop\n cookie=0x1, duration=1s, table=0, n_packets=0, n_bytes=0, priority=1 actions=drop\n",
			[]string{"cookie=0x1,table=0,priority=1 actions=drop"}, 1, 1},
		{"cut in its first line, in the actions",
			"->NXM_NX_REG0[],resubmit(,5)\n cookie=0x1, duration=1s, table=0, n_packets=0, n_bytes=0, priority=1 actions=drop\n",
			[]string{"cookie=0x1,table=0,priority=1 actions=drop"}, 1, 1},
		{"nothing", "", nil, 0, 0},
		{"no flows", header, nil, 0, 0},
	} {
		flows, problems := allFlows(strings.NewReader(c.dump))
		lost := 0
		for _, p := range problems {
			if p.Lost {
				lost++
			}
			if p.Reason == "" || p.Line < 1 || p.Line > strings.Count(c.dump, "\n")+1 {
				t.Errorf("%s: %+v", c.what, p)
			}
		}
		expect.Equal(t, texts(flows), c.want, c.what, problems)
		expect.Equal(t, len(problems), c.problems, "problems", c.what, problems)
		expect.Equal(t, lost, c.lost, "lost", c.what, problems)
	}
}

// TestCutBeginningIsNoticed checks that, wherever the beginning of a dump was cut off, a
// problem or Flow.Headless reports it, and that no part of a flow passes for a flow.
func TestCutBeginningIsNoticed(t *testing.T) {
	const dump = `OFPST_FLOW reply (OF1.5) (xid=0x2):
 cookie=0x5, duration=7.1s, table=3, n_packets=0, n_bytes=0, idle_timeout=60, priority=7,tcp,reg0=0x1/0x1,nw_src=10.0.0.1 actions=load:0x1->NXM_NX_REG0[],resubmit(,5)
 cookie=0x6, duration=7.2s, table=4, n_packets=0, n_bytes=0, ip actions=drop
`
	whole, _ := allFlows(strings.NewReader(dump))
	for cut := 1; cut < strings.Index(dump, " cookie=0x6"); cut++ {
		flows, problems := allFlows(strings.NewReader(dump[cut:]))
		if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Lost }) && !(len(flows) > 0 && flows[0].Headless) {
			t.Errorf("cut at %d, not noticed: %.40q", cut, dump[cut:])
		}
		for _, f := range flows {
			if !slices.Contains(texts(whole), f.Text) {
				t.Errorf("cut at %d: %q passes for a flow", cut, f.Text)
			}
		}
	}
}

// TestLongLinesAreReported checks that a line that is too long is reported, and that the
// lines around it are read.
func TestLongLinesAreReported(t *testing.T) {
	long := " cookie=0x1, table=0 actions=" + strings.Repeat("output:1,", maxLine/9-10) + "output:1\n"
	dump := "OFPST_FLOW reply (OF1.5) (xid=0x2):\n" + long + " cookie=0x2, table=0 actions=" +
		strings.Repeat("x", maxLine) + "\n cookie=0x3, table=0 actions=drop\n"
	flows, problems := allFlows(strings.NewReader(dump))
	if len(flows) != 2 || len(flows[0].Text) < maxLine-200 || flows[1].Line != 4 || len(problems) != 1 ||
		problems[0].Line != 3 || !problems[0].Lost {
		t.Errorf("%d flows, %v", len(flows), problems)
	}
	broken := io.MultiReader(strings.NewReader(" cookie=0x1, table=0 actions=drop\n cookie"),
		iotest.ErrReader(errors.New("input/output error")))
	flows, problems = allFlows(broken)
	if len(flows) != 1 || len(problems) == 0 || !strings.Contains(problems[len(problems)-1].Text, "input/output error") {
		t.Errorf("a read error: %q %v", texts(flows), problems)
	}
}

func TestStopsWhenAsked(t *testing.T) {
	for range Flows(strings.NewReader(strings.Repeat(" cookie=0x1, table=0 actions=drop\n", 5))) {
		break
	}
}

// TestFlowAt reads each flow again by its offset.
func TestFlowAt(t *testing.T) {
	dump := "duration=1s, n_packets=0, n_bytes=0, priority=1,ip,actions=drop\r\n\n\tnone\n" +
		" cookie=0x1, table=1, priority=2,ip actions=" + strings.Repeat("note:00,", 20000) + "drop\n" +
		strings.Repeat("x", maxLine+1) + "\n cookie=0x2, table=2, priority=3,ip actions=load:0x1->NXM_NX_REG0[]"
	count := 0
	for flow, problem := range Flows(strings.NewReader(dump)) {
		if problem != nil {
			continue
		}
		count++
		again, err := FlowAt(strings.NewReader(dump), flow.At)
		if err != nil || again.Text != flow.Text {
			t.Errorf("line %d: %v: %.200q, first it was %.200q", flow.Line, err, again.Text, flow.Text)
		}
	}
	expect.Equal(t, count, 3, "flows")
	if flow, err := FlowAt(strings.NewReader(dump), int64(len(dump))); err == nil {
		t.Errorf("a flow at the end: %+v", flow)
	}
}

func TestKeys(t *testing.T) {
	flow := func(text string) Flow { return Flow{Text: text} }
	f := flow(`cookie=0x5,table=3,priority=7,in_port="a, actions=9",ip actions=set_field:1->reg0,note:00`)
	expect.Equal(t, f.Actions(), "set_field:1->reg0,note:00", "actions")
	expect.Equal(t, f.WithActions("drop"), `cookie=0x5,table=3,priority=7,in_port="a, actions=9",ip actions=drop`,
		"with other actions")
	if flow("cookie=0x6,ip actions=drop").Criteria() != flow("table_id=0,cookie=0x5,priority=32768,ip actions=drop").Criteria() {
		t.Error("the criteria of a flow contain its cookie")
	}
	same := [][2]string{
		{"cookie=0x5,table=0,priority=32768,ip actions=drop", "cookie=0x5,ip actions=output:1"},
		{"cookie=0x5,table=1,send_flow_rem,importance=3,priority=2,ip actions=drop",
			"cookie=0x5,table=1,priority=2,ip actions=drop"},
	}
	for _, pair := range same {
		expect.Equal(t, flow(pair[0]).Key(), flow(pair[1]).Key(), pair[0])
	}
	for _, other := range []string{"cookie=0x6,ip actions=drop", "cookie=0x5,tcp actions=drop",
		"cookie=0x5,table=1,ip actions=drop", "cookie=0x5,priority=1,ip actions=drop"} {
		if flow(other).Key() == flow(same[0][0]).Key() {
			t.Errorf("%q has the key of another flow", other)
		}
	}
}

func TestGroups(t *testing.T) {
	dump := "OFPST_GROUP_DESC reply (OF1.5) (xid=0x2):\n" +
		" group_id=1,type=select,selection_method=hash,fields(ip_src,ip_dst),bucket=bucket_id:0,weight:100,actions=ct(commit,table=20,zone=NXM_NX_REG11[0..15],nat(dst=10.0.0.1:80),exec(set_field:0x2/0x2->ct_mark))\n" +
		" group_id=4294967040,type=all\n"
	groups, problems := Groups(strings.NewReader(dump))
	if len(problems) > 0 || len(groups) != 2 || groups[0].ID != 1 || groups[1].ID != 4294967040 || groups[0].Line != 2 ||
		!strings.HasSuffix(groups[0].Text, "->ct_mark))") {
		t.Errorf("%+v %v", groups, problems)
	}
	groups, problems = Groups(strings.NewReader("weight:100,actions=output:1\n group_id=2,type=all\novs-ofctl: no\n"))
	if len(groups) != 1 || len(problems) != 2 || !problems[0].Lost || problems[1].Lost {
		t.Errorf("%+v %v", groups, problems)
	}
}

func TestMeters(t *testing.T) {
	dump := "OFPST_METER_CONFIG reply (OF1.5) (xid=0x2):\n" +
		"meter=1 kbps burst stats bands=\ntype=drop rate=100 burst_size=5\n\n" +
		"meter=2 pktps bands=\ntype=drop rate=1\ntype=dscp_remark rate=50 prec_level=1\n\n" +
		"meter=controller pktps bands=\ntype=drop rate=100\n" +
		"meter=slowpath kbps bands=\ntype=drop rate=7\n" +
		"meter=3 kbps bands=\n"
	meters, problems := Meters(strings.NewReader(dump))
	want := []Entry{
		{2, 1, "meter=1 kbps burst stats bands=type=drop rate=100 burst_size=5"},
		{5, 2, "meter=2 pktps bands=type=drop rate=1 type=dscp_remark rate=50 prec_level=1"},
		{9, 0xfffffffe, "meter=controller pktps bands=type=drop rate=100"},
		{11, 0xfffffffd, "meter=slowpath kbps bands=type=drop rate=7"},
		{13, 3, "meter=3 kbps bands="},
	}
	expect.Equal(t, meters, want)
	expect.Equal(t, problems, nil)
	meters, problems = Meters(strings.NewReader("type=drop rate=1\nmeter=4 kbps bands=\ntype=drop rate=2\novs-ofctl: none of the usable flow formats (OpenFlow13) is among the allowed flow formats (OpenFlow10)\n"))
	if len(meters) != 1 || len(problems) != 2 || !problems[0].Lost || problems[1].Lost {
		t.Errorf("%+v %v", meters, problems)
	}
	ages := MeterAges(strings.NewReader("OFPST_METER reply (OF1.5) (xid=0x2):\nmeter:1 flow_count:0 packet_in_count:0 byte_in_count:0 duration:702.951s bands:\n0: packet_count:0 byte_count:0\n\nmeter:controller flow_count:0 packet_in_count:0 byte_in_count:0 duration:0.016s bands:\n"))
	expect.Equal(t, ages, map[uint32]float64{1: 702.951, 0xfffffffe: 0.016})
}

func TestTLVMap(t *testing.T) {
	const start = "NXT_TLV_TABLE_REPLY (OF1.5) (xid=0x2):\n max option space=256 max fields=64\n allocated option space=132\n\n mapping table:\n"
	want := []Entry{{0, 0, "{class=0x102,type=0x80,len=4}->tun_metadata0"},
		{0, 63, "{class=0,type=0,len=124}->tun_metadata63"}}
	for what, table := range map[string]string{
		"blanks": "  class  type  length  match field\n ------  ----  ------  --------------\n  0x102  0x80       4  tun_metadata0\n      0     0     124  tun_metadata63\n",
		"tabs":   " class\ttype\tlength\tmatch field\n -----\t----\t------\t-----------\n 0x102\t0x80\t4\ttun_metadata0\n 0\t0\t124\ttun_metadata63\n",
	} {
		mappings, problems := TLVMap(strings.NewReader(start + table))
		for i := range mappings {
			mappings[i].Line = 0
		}
		expect.Equal(t, mappings, want, what)
		expect.Equal(t, problems, nil, what)
	}
	mappings, problems := TLVMap(strings.NewReader("2026-01-02T03:04:05Z|00001|vconn|WARN|x: version negotiation failed (we support version 0x01, peer supports version 0x04)\novs-ofctl: br0: failed to connect to socket (Protocol error)\n 0x1 0x2 4\n"))
	if len(mappings) > 0 || len(problems) != 3 || problems[0].Lost || problems[1].Lost || !problems[2].Lost {
		t.Errorf("%+v %v", mappings, problems)
	}
}

func TestShow(t *testing.T) {
	d := Show(strings.NewReader(`OFPT_FEATURES_REPLY (xid=0x2): dpid:0000fedcba987654
n_tables:254, n_buffers:0
capabilities: FLOW_STATS TABLE_STATS PORT_STATS QUEUE_STATS ARP_MATCH_IP
actions: output enqueue set_vlan_vid
 1(eth0): addr:aa:55:aa:55:00:0f
     config:     PORT_DOWN NO_FLOOD
     state:      LINK_DOWN
     current:    10GB-FD COPPER
 2("p (1): x"): addr:aa:55:aa:55:00:10
     config:     0
     state:      LIVE
 LOCAL(br0): addr:fe:dc:ba:98:76:54
     config:     PORT_DOWN
     state:      LINK_DOWN
OFPT_GET_CONFIG_REPLY (xid=0x4): frags=normal miss_send_len=0
`))
	want := Description{DatapathID: "0000fedcba987654", Fragments: "normal", HasNoFlood: true, Ports: []Port{
		{1, "eth0", "aa:55:aa:55:00:0f", []string{"PORT_DOWN", "NO_FLOOD"}, []string{"LINK_DOWN"}},
		{2, "p (1): x", "aa:55:aa:55:00:10", nil, []string{"LIVE"}},
		{PortLocal, "br0", "fe:dc:ba:98:76:54", []string{"PORT_DOWN"}, []string{"LINK_DOWN"}},
	}}
	expect.Equal(t, d, want)
	for i, down := range []bool{true, false, true} {
		expect.Equal(t, d.Ports[i].Down(), down, d.Ports[i])
	}
	if d := Show(strings.NewReader("ovs-ofctl: br0 is not a bridge or a socket\n")); d.DatapathID != "" ||
		len(d.Ports) > 0 {
		t.Errorf("an error: %+v", d)
	}
}

// TestShowRepeatedPort checks that a port that is printed often is one port.
func TestShowRepeatedPort(t *testing.T) {
	const port = " 7(%s): addr:aa:55:aa:55:00:07\n     config:     %s\n     state:      0\n"
	text := strings.Repeat(fmt.Sprintf(port, "p7", "NO_FLOOD"), 1000) + fmt.Sprintf(port, strings.Repeat("x", 1000),
		"PORT_DOWN") +
		fmt.Sprintf(port, "p7", strings.Repeat("NO_FWD NO_RECV ", 100))
	d := Show(strings.NewReader(text))
	if len(d.Ports) != 1 || d.Ports[0].Name != "p7" || !slices.Equal(d.Ports[0].Config, []string{"NO_FWD", "NO_RECV"}) {
		t.Errorf("%d ports: %.200v", len(d.Ports), d.Ports)
	}
	var many strings.Builder
	for i := range 2 * maxPorts {
		fmt.Fprintf(&many, " %d(p): addr:aa:55:aa:55:00:07\n", i)
	}
	expect.Equal(t, len(Show(strings.NewReader(many.String())).Ports), maxPorts, "ports")
}

func TestHasError(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "\n\n": false, "OFPST_FLOW reply (OF1.5) (xid=0x2):\n cookie=0x0 actions=drop\n": false,
		"OFPST_FLOW reply (OF1.5) (xid=0x2):\novs-ofctl: x\n": true, "ovs-appctl: cannot connect\n": true,
		"2026-01-02T03:04:05Z|00001|unixctl|WARN|failed to connect to x\novs-appctl: y\n": true,
		" port  VLAN  MAC                Age\n    1     0  aa:55:aa:55:00:01    1\n":      false,
	} {
		expect.Equal(t, HasError(strings.NewReader(text)), want, text)
	}
}

func TestReferences(t *testing.T) {
	var r References
	r.Add("table=0,tun_metadata3=0x1/0xf,tun_metadata40 actions=meter:5,group:7,controller(max_len=1,meter_id=6),move:NXM_NX_TUN_METADATA1[0..7]->NXM_NX_REG0[0..7],note:00.group:9")
	r.Add("group_id=12,type=all,bucket=actions=group:8,meter:5")
	want := References{Meters: map[uint32]bool{5: true, 6: true}, Groups: map[uint32]bool{7: true, 8: true, 9: true},
		TLVs: map[uint32]bool{3: true, 40: true, 1: true}}
	expect.Equal(t, r, want)
}

// TestDumpEndedBySignalYieldsNoPartialFlow checks that, wherever a signal cut off a
// dump, no part of a flow is taken for a flow, and a problem reports the loss.
func TestDumpEndedBySignalYieldsNoPartialFlow(t *testing.T) {
	const alarm = "2026-01-02T10:00:00Z|00001|fatal_signal|WARN|terminating with signal 14 (Alarm clock)\n"
	const first = "OFPST_FLOW reply (OF1.5) (xid=0x2):\n cookie=0x1, duration=1s, table=0, n_packets=0, n_bytes=0, priority=1,ip actions=output:123\n"
	dump := first + " cookie=0x2, duration=1s, table=0, n_packets=0, n_bytes=0, priority=2,ip actions=output:12,output:34,resubmit(,5)\n"
	whole, _ := allFlows(strings.NewReader(dump))
	for cut := len(first); cut <= len(dump); cut++ {
		for _, between := range []string{"", "\n", "\n \n"} {
			flows, problems := allFlows(strings.NewReader(dump[:cut] + between + alarm))
			for _, f := range flows {
				if !slices.Contains(texts(whole), f.Text) {
					t.Errorf("cut at %d, %q: %q passes for a flow", cut, between, f.Text)
				}
			}
			if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Lost }) {
				t.Errorf("cut at %d, %q: no problem is lost data: %v", cut, between, problems)
			}
		}
	}
}
