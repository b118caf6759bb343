package restore

import (
	"os"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// TestLinesTooLong: a line that no command prints costs itself, not the file.
func TestLinesTooLong(t *testing.T) {
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{Workdir: wd, Report: report.New()}
	path := wd.Path() + "/lines"
	text := "a\r\n" + strings.Repeat("x", 3*longest) + "\nb\n" + strings.Repeat("y", longest) + "\n\nc"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines []string
	ok, err := n.eachLine(path, func(line string) error { lines = append(lines, line); return nil })
	if !ok || err != nil || !slices.Equal(lines, []string{"a", "b", "", "c"}) {
		t.Errorf("%v %v: %.100q", ok, err, lines)
	}
}
