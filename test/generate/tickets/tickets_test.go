package tickets

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of forms into docs/inputs.md")

// TestFormsAreDocumented compares the table of forms in docs/inputs.md with the forms.
func TestFormsAreDocumented(t *testing.T) {
	const page, begin, end = "../../../docs/inputs.md",
		"<!-- forms: go test ./test/generate/tickets -run Documented -update -->\n", "<!-- end of forms -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no table of forms", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+Table()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != Table() {
		t.Errorf("the table of forms in %s is not that of the forms: write it with -update", page)
	}
}

// node is a small node, with lines as long as those of real flows.
func node() *Node {
	n := &Node{Name: "n1", Version: "OpenFlow13", Peer: "br1"}
	n.Outputs = append(n.Outputs, Output{SwitchShow, "", "ovs-vsctl show",
		"ed379305-0dbf-4c3f-bca5-396ba0aaea58\n    Bridge br0\n        Port p1\n            tag: 5\n            Interface p1\n    Bridge br1\n"})
	for _, bridge := range []string{"br0", "br1"} {
		var flows strings.Builder
		flows.WriteString("OFPST_FLOW reply (OF1.3) (xid=0x2):\n")
		for i := range 40 {
			fmt.Fprintf(&flows, " cookie=0x%d, duration=1.0s, table=%d, n_packets=%d, n_bytes=9, priority=%d,ip,in_port=1,dl_src=0a:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.%d actions=set_field:0x%d->reg0,set_field:10.99.0.1->ip_dst,resubmit(,%d)\n", i, i/9, i%3, 100-i, i, i, i/9+1)
			if i%7 == 0 {
				fmt.Fprintf(&flows, " cookie=0x%d, duration=1.0s, table=%d, n_packets=0, n_bytes=0, priority=9,arp actions=drop\n",
					i, i/9)
			}
		}
		n.Outputs = append(n.Outputs,
			Output{Show, bridge, "ovs-ofctl -O OpenFlow13 show " + bridge,
				"OFPT_FEATURES_REPLY (OF1.3) (xid=0x2): dpid:0000000000000001\n 1(p1): addr:aa:55:aa:55:00:01\n"},
			Output{Flows, bridge, "ovs-ofctl -O OpenFlow13 dump-flows " + bridge, flows.String()},
			Output{Groups, bridge, "ovs-ofctl -O OpenFlow13 dump-groups " + bridge,
				"OFPST_GROUP_DESC reply (OF1.3) (xid=0x2):\n group_id=1,type=all,bucket=actions=output:1\n"})
		n.Named = append(n.Named, Output{Flows, bridge, "ovs-ofctl -O OpenFlow13 --names dump-flows " + bridge,
			strings.ReplaceAll(flows.String(), "in_port=1", "in_port=p1")})
	}
	return n
}

// TestFormsAreDifferentTexts makes each form twice of the same node.
func TestFormsAreDifferentTexts(t *testing.T) {
	forms := Forms()
	if len(forms) < 25 {
		t.Errorf("%d forms, want 25", len(forms))
	}
	names, texts := map[string]bool{}, map[string]string{}
	for _, f := range forms {
		name := f.Kind + "/" + f.Name
		if names[name] || f.Kind == "" || f.Shows == "" {
			t.Errorf("%s is not named or described once", name)
		}
		names[name] = true
		text := f.Write(node())
		if text != f.Write(node()) {
			t.Errorf("%s: two texts of one node differ", name)
		}
		if other := texts[text]; text != "" && other != "" {
			t.Errorf("%s is the same as %s", name, other)
		}
		texts[text] = name
	}
}
