package restore

import (
	"slices"
	"strings"
	"testing"
)

// TestLongLinesAreSkipped checks that a line that no command prints does not end
// the reading of a file.
func TestLongLinesAreSkipped(t *testing.T) {
	text := "a\r\n" + strings.Repeat("x", 3*maxLine) + "\nb\n" + strings.Repeat("y", maxLine) + "\n\nc"
	var lines []string
	err := eachLine(strings.NewReader(text), func(line string) error { lines = append(lines, line); return nil })
	if err != nil || !slices.Equal(lines, []string{"a", "b", "", "c"}) {
		t.Errorf("%v: %.100q", err, lines)
	}
}
