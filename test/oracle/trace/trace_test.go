package trace

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ovs-offline/test/oracle/captures"
)

// live is an output of ofproto/trace with everything in which two runs may differ.
const live = `Flow: ip,in_port=1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02

bridge("br-int")
----------------
 0. in_port=1, priority 100, cookie 0x1
    set_field:0x1/0xffff->reg13
    meter:5
    resubmit(,8)
 8. priority 0
    ct(table=9)
    drop
     -> A clone of the packet is forked to recirculate. The forked pipeline will be resumed at table 9.
     -> Sets the packet to an untracked state, and clears all the conntrack fields.

Final flow: ip,reg13=0x1,in_port=1
Megaflow: recirc_id=0,ct_state=-trk,ip,in_port=1,nw_frag=no
Datapath actions: meter(3),ct,recirc(0x1f)

===============================================================================
recirc(0x1f) - resume conntrack with default ct_state=trk|new (use --ct-next to customize)
===============================================================================

Final flow: recirc_id=0x1f,ct_state=new|trk,ip,reg13=0x1,in_port=1
Megaflow: recirc_id=0x1f,ct_state=+new-est+trk,ip,in_port=1,nw_ttl=64,nw_frag=no
Datapath actions: dec_ttl(),p1,p2,push_vlan(vid=5,pcp=0),p3,p1,userspace(pid=4294967295,controller(reason=1,dont_send=0))
`

func TestDifferencesBetweenRunsAreIgnored(t *testing.T) {
	for what, edit := range map[string][]string{
		"nothing":                  {"x", "x"},
		"the recirculation id":     {"0x1f", "0x2a"},
		"its number in decimal":    {"0x1f", "31"},
		"the order of a flood":     {"p1,p2,push_vlan", "p2,p1,push_vlan"},
		"another flood":            {"p3,p1,userspace", "p1,p3,userspace"},
		"the pid of an upcall":     {"pid=4294967295", "pid=7"},
		"the datapath's meter id":  {"meter(3)", "meter(0)"},
		"dec_ttl with parentheses": {"dec_ttl()", "dec_ttl"},
		"blanks at an end":         {"drop\n", "drop  \r\n"},
		"empty lines at the end":   {"dont_send=0))\n", "dont_send=0))\n\n\n"},
		"the oracle's own line":    {"Flow: ip", "# 1|x|y\nFlow: ip"},
	} {
		other := strings.ReplaceAll(live, edit[0], edit[1])
		if what != "nothing" && other == live {
			t.Fatalf("%s: the edit changes nothing", what)
		}
		c := Compare(live, other)
		if !c.Whole || !c.Results || !c.Actions || c.First != "" || c.Equal != c.Lines {
			t.Errorf("%s: %+v", what, c)
		}
	}
}

// TestOtherDifferencesCount makes one change at a time, in each part of a trace.
func TestOtherDifferencesCount(t *testing.T) {
	for _, c := range []struct {
		what, old, new   string
		results, actions bool // whether the lines are still equal
	}{
		{"a cookie", "cookie 0x1", "cookie 0x2", true, true},
		{"a priority", "priority 100", "priority 99", true, true},
		{"an OpenFlow meter", "meter:5", "meter:6", true, true},
		{"a table", "resubmit(,8)", "resubmit(,9)", true, true},
		{"a remark", "forked to recirculate", "dropped", true, true},
		{"a line less", "    resubmit(,8)\n", "", true, true},
		{"a line more", "    drop\n", "    drop\n    drop\n", true, true},
		{"two lines swapped", "    meter:5\n    resubmit(,8)\n", "    resubmit(,8)\n    meter:5\n", true, true},
		{"the final flow", "Final flow: ip,reg13=0x1,", "Final flow: ip,reg13=0x2,", false, true},
		{"the megaflow", "nw_ttl=64", "nw_ttl=63", false, true},
		{"recirculation instead of none", "Megaflow: recirc_id=0,", "Megaflow: recirc_id=0x5,", false,
			false}, // the next id then becomes the second
		{"an id that was given out before", "Megaflow: recirc_id=0x1f", "Megaflow: recirc_id=0x20", false, true},
		{"no action", "dec_ttl(),p1,p2,push_vlan(vid=5,pcp=0),p3,p1,", "", false, false},
		{"a port", "p1,p2,push_vlan", "p1,p4,push_vlan", false, false},
		{"a port less", "p1,p2,push_vlan", "p1,push_vlan", false, false},
		{"a port twice", "p1,p2,push_vlan", "p1,p2,p2,push_vlan", false, false},
		{"a port on the other side of an action", "p2,push_vlan(vid=5,pcp=0),p3", "push_vlan(vid=5,pcp=0),p2,p3", false,
			false},
		{"a VLAN", "vid=5", "vid=6", false, false},
		{"a meter less", "meter(3),ct", "ct", false, false},
		{"dec_ttl with ids", "dec_ttl()", "dec_ttl(1,2)", false, false},
		{"dec_ttl less", "dec_ttl(),", "", false, false},
		{"an upcall's reason", "reason=1", "reason=2", false, false},
		{"a second traversal less", live[strings.Index(live, "\n===="):], "", false, false},
	} {
		other := strings.Replace(live, c.old, c.new, 1)
		if other == live {
			t.Fatalf("%s: the edit changes nothing", c.what)
		}
		for _, pair := range [][2]string{{live, other}, {other, live}} {
			got := Compare(pair[0], pair[1])
			if got.Whole || got.Results != c.results || got.Actions != c.actions || got.First == "" {
				t.Errorf("%s: %+v", c.what, got)
			}
		}
	}
}

// TestOnlyOutputsAreSorted includes actions without parentheses, which look like
// ports, and whose order matters.
func TestOnlyOutputsAreSorted(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		equal bool
	}{
		{"1,2,3", "3,1,2", true},
		{"pop_vlan,2", "2,pop_vlan", false},
		{"1,pop_vlan,2", "1,2,pop_vlan", false},
		{"1,pop_vlan,2,3", "1,pop_vlan,3,2", true},
		{"ct_clear,2", "2,ct_clear", false},
		{"pop_eth,2", "2,pop_eth", false},
		{"dec_ttl,1", "1,dec_ttl", false},
		{"p1,clone(p2,p3),p4", "p1,clone(p3,p2),p4", true},
		{"p1,clone(p2,p3),p4", "p4,clone(p2,p3),p1", false},
		{"clone(set(eth(src=1)),p2),p3", "clone(p2,set(eth(src=1))),p3", false},
		{`"p 1",2`, `2,"p 1"`, true},
		{"drop", "", false},
		{"trunc(100),1,2", "trunc(100),2,1", false},
		{"trunc(100),1,2,3", "trunc(100),1,3,2", true},
		{`"p,1",2`, `2,"p,1"`, true},
		{`"p,1",2`, `"p,2",1`, false},
		{"sample(sample=50.0%,actions(1,2)),check_pkt_len(size=1514,gt(3,4),le(5))",
			"sample(sample=50.0%,actions(2,1)),check_pkt_len(size=1514,gt(4,3),le(5))", true},
		{"check_pkt_len(size=1514,gt(3),le(5))", "check_pkt_len(size=1514,gt(5),le(3))", false},
		{"ct(commit,force)", "ct(force,commit)", false},
		{"1", "1,1", false},
	} {
		got := Compare("Datapath actions: "+c.a+"\n", "Datapath actions: "+c.b+"\n")
		if got.Whole != c.equal || got.Actions != c.equal || got.Results != c.equal {
			t.Errorf("%s and %s: %+v", c.a, c.b, got)
		}
	}
}

// TestRecirculationIDsAreNumbered compares where the same id occurs, not the ids.
func TestRecirculationIDsAreNumbered(t *testing.T) {
	lines := func(ids ...string) string {
		return "Datapath actions: ct,recirc(" + ids[0] + ")\nDatapath actions: ct,recirc(" + ids[1] +
			")\nMegaflow: recirc_id=" + ids[2] + ",eth\n"
	}
	for _, c := range []struct {
		a, b  string
		equal bool
	}{
		{lines("0x1", "0x2", "0x1"), lines("0x9", "0x8", "0x9"), true},
		{lines("0x1", "0x2", "0x1"), lines("0x2", "0x1", "0x2"), true},
		{lines("0x1", "0x2", "0x1"), lines("0x1", "0x2", "0x2"), false},
		{lines("0x1", "0x1", "0x1"), lines("0x1", "0x2", "0x1"), false},
		{lines("0x1", "0x2", "0"), lines("0x1", "0x2", "0x3"), false},
		{lines("0x1", "0x2", "0"), lines("0x3", "0x4", "0"), true},
	} {
		if got := Compare(c.a, c.b); got.Whole != c.equal {
			t.Errorf("%s\n%s\n%+v", c.a, c.b, got)
		}
	}
}

func TestReadPacketsNamesLineOfError(t *testing.T) {
	got, err := ReadPackets(strings.NewReader("# x\n\nbr-int|--ct-next trk,est --ct-next trk|in_port=1,ip\n br0 || tcp,tp_dst=80|odd \n"))
	want := []Packet{{"br-int", []string{"--ct-next", "trk,est", "--ct-next", "trk"}, "in_port=1,ip"},
		{"br0", []string{}, "tcp,tp_dst=80|odd"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %q", err, got)
	}
	if args := got[0].Args(); !reflect.DeepEqual(args,
		[]string{"ofproto/trace", "--names", "br-int", "in_port=1,ip", "--ct-next", "trk,est", "--ct-next", "trk"}) {
		t.Errorf("%q", args)
	}
	if _, err := ReadPackets(strings.NewReader("a|b|c\nnonsense\n")); err == nil ||
		!strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}

// TestRealTracesDiffer compares each recorded trace with itself and with that of the
// packet before it.
func TestRealTracesDiffer(t *testing.T) {
	for _, node := range []string{"ovn-openstack-compute", "ovn-kubernetes-worker"} {
		folder := filepath.Join("../../../testdata/captures", node)
		f, err := os.Open(filepath.Join(folder, "packets"))
		if err != nil {
			t.Fatal(err)
		}
		packets, err := ReadPackets(f)
		f.Close()
		if err != nil || len(packets) < 30 {
			t.Fatalf("%s: %d packets, %v", node, len(packets), err)
		}
		dir := captures.Unpack(t, filepath.Join(folder, "live-traces.tar.xz"))
		files, err := filepath.Glob(filepath.Join(dir, "live", "*"))
		if err != nil || len(files) != len(packets) {
			t.Fatalf("%s: %d traces of %d packets, %v", node, len(files), len(packets), err)
		}
		var before string
		results := 0
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := string(raw)
			if !strings.Contains(text, "\nDatapath actions: ") {
				continue // an error message: the switch did not accept the packet
			}
			results++
			if c := Compare(text, text); !c.Whole || c.Lines < 10 {
				t.Errorf("%s: %+v", file, c)
			}
			if c := Compare(before, text); c.Whole {
				t.Errorf("%s equals the one before", file)
			}
			before = text
		}
		if results < len(files)*3/4 {
			t.Errorf("%s: only %d of %d traces have results", node, results, len(files))
		}
	}
}
