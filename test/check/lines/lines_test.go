package lines

import (
	"slices"
	"testing"
)

func TestDifferenceCountsEachLine(t *testing.T) {
	missing, extra := Difference([]string{"b", "a", "a", "c"}, []string{"c", "d", "a", "d", "c"})
	if !slices.Equal(missing, []string{"a", "b"}) || !slices.Equal(extra, []string{"c", "d", "d"}) {
		t.Errorf("missing %q, extra %q", missing, extra)
	}
	if missing, extra := Difference([]string{"a", "b"}, []string{"b", "a"}); len(missing)+len(extra) > 0 {
		t.Errorf("missing %q, extra %q", missing, extra)
	}
}

func TestWordsAreJoinedByQuotes(t *testing.T) {
	if got, want := Words(`  acl-add blue "outport == \"vm1\"" x"y z"  ""`),
		[]string{"acl-add", "blue", `outport == "vm1"`, "xy z", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
