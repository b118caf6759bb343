package trace

import (
	"strings"
	"testing"

	"ovs-offline/internal/seeds"
)

// traceSeeds are what live nodes said, and text that no switch says.
func traceSeeds(f *testing.F) {
	n := 0
	seeds.Captured(f, "*", 4096, func(content []byte) {
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
				t.Errorf("a line with a break in it: %q", line)
			}
		}
		if c := Compare(text, text); !c.Whole || !c.Results || !c.Actions {
			t.Errorf("not equal to itself: %+v", c)
		}
	})
}

// FuzzTranslate: rewriting numbers to themselves changes nothing, and rewriting
// them there and back neither.
func FuzzTranslate(f *testing.F) {
	traceSeeds(f)
	there := Ports{"1": "101", "2": "102", "3": "103", "101": "1", "102": "2", "103": "3"}
	same := Ports{"1": "1", "2": "2"}
	f.Fuzz(func(t *testing.T, text string) {
		line, _, _ := strings.Cut(text, "\n")
		if got := same.Translate(line); got != line {
			t.Errorf("%q becomes %q", line, got)
		}
		if got := there.Translate(there.Translate(line)); got != line {
			t.Errorf("%q comes back as %q", line, got)
		}
	})
}

func FuzzReadPackets(f *testing.F) {
	seeds.Packets(f, func(content []byte) { f.Add(string(content)) })
	f.Add("a|b\n")
	f.Add("br0|--ct-next trk|in_port=1|2\n#\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ReadPackets(strings.NewReader(text))
		if err != nil {
			return
		}
		if lines := strings.Count(text, "\n") + 1; len(list) > lines {
			t.Errorf("%d packets of %d lines", len(list), lines)
		}
		for _, p := range list {
			if args := p.Args(); len(args) < 4 || args[0] != "ofproto/trace" || args[2] != p.Bridge || args[3] != p.Flow {
				t.Errorf("%+v runs %q", p, args)
			}
		}
	})
}
