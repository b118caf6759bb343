package show

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/mattn/go-runewidth"
)

// printTable prints a table of a step's details for a terminal of some width; 0 is no
// terminal.
func printTable(width int) []string {
	var out bytes.Buffer
	t := (&Page{Out: &out, Width: width}).Table("step", "rejected", "pid", "details")
	t.AppendRow(table.Row{"datapath ports", 0, "",
		"br-int: no dpctl/show was collected: the live datapath's port numbers are unknown\nbreth0: ネットワーク"})
	t.AppendRow(table.Row{"flows", 0, "", ""})
	t.Render()
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestTablesFitTheTerminal(t *testing.T) {
	for _, width := range []int{40, 60, 80} {
		lines := printTable(width)
		for _, line := range lines {
			if n := runewidth.StringWidth(line); n > width {
				t.Errorf("a line of %d columns on a terminal of %d: %q", n, width, line)
			}
		}
		text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
		if strings.Contains(text, "REJECTED") || !strings.Contains(text, "breth0: ネットワーク flows") {
			t.Errorf("it has an empty column, or it lacks text:\n%s", strings.Join(lines, "\n"))
		}
	}
}

func TestTablesHaveNoTrailingSpaces(t *testing.T) {
	for _, width := range []int{0, 60, 200} {
		for _, line := range printTable(width) {
			if strings.HasSuffix(line, " ") {
				t.Errorf("width %d: %q", width, line)
			}
		}
	}
	if lines := printTable(0); len(lines) != 4 || !strings.Contains(lines[0], "REJECTED") {
		t.Errorf("a table that is not for a terminal is changed:\n%s", strings.Join(lines, "\n"))
	}
}
