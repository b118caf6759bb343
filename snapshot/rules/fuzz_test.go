package rules

import (
	"strings"
	"testing"
)

// FuzzConjunctions reads any dump: what is found of conj_id stands in the text.
func FuzzConjunctions(f *testing.F) {
	f.Add(" cookie=0x1, table=44, priority=2002,conj_id=3,ip actions=drop\n cookie=0x0, table=44, ip,nw_src=10.0.0.1 actions=conjunction(3,1/2)\n")
	f.Add("conj_id=0x10,ip actions=drop\nconj_id=4294967296 actions=drop\nconj_id= actions=\n")
	f.Fuzz(func(t *testing.T, text string) {
		found := ReadConjunctions(strings.NewReader(text))
		if len(found) > strings.Count(text, "conj_id=") || found[0] != (Flow{}) {
			t.Errorf("%q has %v", text, found)
		}
	})
}
