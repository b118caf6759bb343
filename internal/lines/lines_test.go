package lines_test

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/internal/lines"
	"ovs-offline/test/check/expect"
)

// TestLongLinesAreSkipped checks that lines of any length up to the limit are whole, and that a longer
// one costs nothing but itself.
func TestLongLinesAreSkipped(t *testing.T) {
	longest := strings.Repeat("a", lines.Longest)
	for name, c := range map[string]struct {
		text    string
		want    []string
		skipped int
	}{
		"":                     {"", nil, 0},
		"without an end":       {"a\nb", []string{"a", "b"}, 0},
		"empty lines":          {"\n\na\r\n", []string{"", "", "a"}, 0},
		"longer than a buffer": {strings.Repeat("b", 200_000) + "\nc\n", []string{strings.Repeat("b", 200_000), "c"}, 0},
		"the longest":          {longest + "\nc\n", []string{longest, "c"}, 0},
		"too long":             {"a\n" + longest + "bb\nc\n", []string{"a", "c"}, 1},
		"too long at the end":  {"a\n" + longest + "bb", []string{"a"}, 1},
		"twice":                {longest + "bb\n" + longest + "bb\nc", []string{"c"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			skipped, err := lines.Read(strings.NewReader(c.text),
				func(line []byte) error { got = append(got, string(line)); return nil })
			if err != nil {
				t.Fatal(err)
			}
			expect.Equal(t, skipped, c.skipped)
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%d lines, not %d, or other ones", len(got), len(c.want))
			}
		})
	}
}
