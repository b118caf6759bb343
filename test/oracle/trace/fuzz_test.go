package trace

import (
	"strings"
	"testing"

	"ovs-offline/test/oracle/captures"
)

// traceSeeds adds traces of live nodes, and text that no switch prints.
func traceSeeds(f *testing.F) {
	n := 0
	captures.Captured(f, "*", 4096, func(content []byte) {
		if n++; strings.Contains(string(content), "Datapath actions: ") && n%5 == 0 {
			f.Add(string(content))
		}
	})
	f.Add(live)
	f.Add("Datapath actions: ),(,\nrecirc_id=99999999999999999999999999\n#")
	f.Add("Datapath actions: " + strings.Repeat("clone(", 200) + "1" + strings.Repeat(")", 200) + "\n")
	f.Add(" -> learned that it is flooding\nflooding\nDatapath actions: push_vlan(vid=1),2,pop_vlan,trunc(9),tnl_push(\n")
}

func FuzzNormalise(f *testing.F) {
	traceSeeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		once := Normalise(text)
		for _, line := range once {
			if strings.Contains(line, "\n") {
				t.Errorf("a line that holds a line break: %q", line)
			}
		}
		if c := Compare(text, text); !c.Whole || !c.Results || !c.Actions {
			t.Errorf("the trace differs from itself: %+v", c)
		}
	})
}

func FuzzReadPackets(f *testing.F) {
	captures.Packets(f, func(content []byte) { f.Add(string(content)) })
	f.Add("a|b\n")
	f.Add("br0|--ct-next trk|in_port=1|2\n#\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ReadPackets(strings.NewReader(text))
		if err != nil {
			return
		}
		if lines := strings.Count(text, "\n") + 1; len(list) > lines {
			t.Errorf("%d packets from %d lines", len(list), lines)
		}
		for _, p := range list {
			if args := p.Args(); len(args) < 4 || args[0] != "ofproto/trace" || args[2] != p.Bridge || args[3] != p.Flow {
				t.Errorf("the arguments of %+v are %q", p, args)
			}
		}
	})
}
