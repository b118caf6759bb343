package portmap

import (
	"strings"
	"testing"

	"ovs-offline/test/oracle/captures"
)

// FuzzTranslate checks that translating numbers to themselves, or there and back,
// changes nothing.
func FuzzTranslate(f *testing.F) {
	n := 0
	captures.Captured(f, "*", 4096, func(content []byte) {
		if n++; strings.Contains(string(content), "Datapath actions: ") && n%5 == 0 {
			f.Add(string(content))
		}
	})
	f.Add("Datapath actions: push_vlan(vid=1),2,pop_vlan,trunc(9),tnl_push(\n")
	f.Add("Datapath actions: " + strings.Repeat("clone(", 200) + "1" + strings.Repeat(")", 200) + "\n")
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
