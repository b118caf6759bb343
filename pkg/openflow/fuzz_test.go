package openflow

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"ovs-offline/test/oracle/captures"
)

// header is the first line of a dump. Without it, the text that follows would be the
// first line, for which other rules apply, because it may have lost its beginning.
const header = "NXST_FLOW reply (xid=0x4):\n"

// seed adds seeds to a fuzz test: the captured files that match a pattern, and unusual
// texts that occur in dumps.
func seed(f *testing.F, pattern string) {
	f.Helper()
	captures.Captured(f, pattern, 2048, func(content []byte) { f.Add(content) })
	for _, text := range []string{
		"", "\n", "\x00", "OFPST_FLOW reply (OF1.5) (xid=0x2):\n cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=1,in_port=\"a b\" actions=learn(table=2,idle_timeout=5)\r\n",
		" ***decode error: OFPBMC_BAD_FIELD***\n00000000  06 13\n", "ovs-ofctl: x\n", " actions=",
		"priority=1 actions=\n\" actions=,((", "set_field:0x5/0xf->ip_dscp actions=set_field:3/0->mpls_label,igmp",
		"meter=1 kbps bands=\ntype=drop rate=1\n", "meter=controller bands=\r\rtype=", " group_id=99999999999,type=all\n",
		"0x1\t0x2\t4\ttun_metadata99999999999\n",
		" 1(eth0): addr:aa:55:aa:55:00:0f\n     config:     0\n", "igmp,igmp_type=1 actions=drop",
		"gtpu_flags=1 actions=drop",
		"***decode error: OFPBRC_BAD_TYPE***\n", "ovs-ofctl: br0 is not a bridge\n",
		"table=3,in_port=\"a,b(\" actions=note:00\n", ",actions=\n", "\"\\\" actions=x",
		"meter=controller pktps bands=\ntype=drop rate=1\ntype=drop rate=2\n", "type=drop\n",
		"0xffff 0xff 124 tun_metadata99999999999999\n", "a b c tun_metadata-1",
		" 99999999999999999999(x): addr:00:00:00:00:00:00\n     config:     PORT_DOWN\n     state:      0\n",
	} {
		f.Add([]byte(text))
	}
}

// oneLine checks a text that must be one line of ovs-ofctl's input.
func oneLine(t *testing.T, text string, input []byte) {
	t.Helper()
	if strings.Contains(text, "\n") {
		t.Errorf("%q has more than one line", text)
	}
	if len(text) > 100*len(input)+100 {
		t.Errorf("%d bytes were made of %d", len(text), len(input))
	}
}

func problem(t *testing.T, p Problem, before int) {
	t.Helper()
	if p.Line < before || len(p.Text) > 210 || p.Reason == "" {
		t.Errorf("after line %d: %+v", before, p)
	}
}

func FuzzFlows(f *testing.F) {
	seed(f, "*dump-flows*")
	f.Fuzz(func(t *testing.T, dump []byte) {
		last := 0
		for flow, p := range Flows(bytes.NewReader(dump)) {
			if p != nil {
				problem(t, *p, last)
				last = p.Line
				continue
			}
			if flow.Line <= last {
				t.Errorf("line %d after %d", flow.Line, last)
			}
			last = flow.Line
			oneLine(t, flow.Text, dump)
			again(t, flow)
		}
	})
}

// again checks that the text of a flow, read once more, gives the same flow.
func again(t *testing.T, flow Flow) {
	t.Helper()
	n := 0
	for second, p := range Flows(strings.NewReader(header + flow.Text + "\n")) {
		n++
		if p != nil || second.Text != flow.Text || second.Key() != flow.Key() || second.Criteria() != flow.Criteria() {
			t.Errorf("%q reads as %q (%v)", flow.Text, second.Text, p)
		}
	}
	if n != 1 {
		t.Errorf("%q is %d flows", flow.Text, n)
	}
	if with := flow.WithActions("drop"); (Flow{Text: with}).Actions() != "drop" {
		t.Errorf("%q with other actions is %q", flow.Text, with)
	}
	rewritten, _ := Rewrite(flow.Text)
	if twice, names := Rewrite(rewritten); twice != rewritten {
		t.Errorf("%q is rewritten to %q, and then to %q (%v)", flow.Text, rewritten, twice, names)
	}
	var r References
	r.Add(flow.Text)
}

// entries checks a reader of dumps whose entries are numbered.
func entries(t *testing.T, dump []byte, read func([]byte) ([]Entry, []Problem)) {
	t.Helper()
	list, problems := read(dump)
	for _, p := range problems {
		problem(t, p, 1)
	}
	last := 0
	for _, e := range list {
		if e.Line <= last {
			t.Errorf("line %d after %d", e.Line, last)
		}
		last = e.Line
		oneLine(t, e.Text, dump)
	}
}

func FuzzGroups(f *testing.F) {
	seed(f, "*dump-groups*")
	f.Fuzz(func(t *testing.T, dump []byte) {
		entries(t, dump, func(dump []byte) ([]Entry, []Problem) { return Groups(bytes.NewReader(dump)) })
		groups, _ := Groups(bytes.NewReader(dump))
		for _, g := range groups {
			if second, problems := Groups(strings.NewReader(g.Text)); len(second) != 1 || len(problems) > 0 ||
				second[0].Text != g.Text || second[0].ID != g.ID {
				t.Errorf("%q reads as %+v %v", g.Text, second, problems)
			}
		}
	})
}

func FuzzMeters(f *testing.F) {
	seed(f, "*dump-meters*")
	captures.Captured(f, "*meter-stats*", 2048, func(content []byte) { f.Add(content) })
	f.Fuzz(func(t *testing.T, dump []byte) {
		entries(t, dump, func(dump []byte) ([]Entry, []Problem) { return Meters(bytes.NewReader(dump)) })
		for id, age := range MeterAges(bytes.NewReader(dump)) {
			if math.IsNaN(age) || math.IsInf(age, 0) || age < 0 {
				t.Errorf("meter %d is %v seconds old", id, age)
			}
		}
	})
}

func FuzzTLVMap(f *testing.F) {
	seed(f, "*dump-tlv-map*")
	f.Fuzz(func(t *testing.T, dump []byte) {
		entries(t, dump, func(dump []byte) ([]Entry, []Problem) { return TLVMap(bytes.NewReader(dump)) })
	})
}

func FuzzShow(f *testing.F) {
	seed(f, "*_show_*")
	f.Fuzz(func(t *testing.T, text []byte) {
		d := Show(bytes.NewReader(text))
		if d.DatapathID != "" && len(d.DatapathID) != 16 {
			t.Errorf("datapath id %q", d.DatapathID)
		}
		for _, p := range d.Ports {
			if p.Number < 0 || p.Number > math.MaxUint32 || len(p.MAC) != 17 {
				t.Errorf("port %+v", p)
			}
			p.Down()
		}
		HasError(bytes.NewReader(text))
	})
}

// FuzzRewrite checks that rewriting adds no lines, and that rewriting twice is the
// same as rewriting once.
func FuzzRewrite(f *testing.F) {
	seed(f, "*dump-flows*")
	f.Fuzz(func(t *testing.T, raw []byte) {
		text := strings.ReplaceAll(string(raw), "\n", "")
		once, names := Rewrite(text)
		oneLine(t, once, raw)
		if (once == text) != (len(names) == 0) {
			t.Errorf("%q becomes %q by %q", text, once, names)
		}
		if twice, _ := Rewrite(once); twice != once {
			t.Errorf("%q becomes %q, then %q", text, once, twice)
		}
	})
}
