package show_test

import (
	"strings"
	"testing"

	"ovs-offline/internal/show"
	"ovs-offline/test/check/expect"
)

// TestFoldBreaksNoCommand folds a sentence with a command line to all widths: lines end between words only, and the
// command line is whole.
func TestFoldBreaksNoCommand(t *testing.T) {
	const command = "ovs-offline image add --from 24.03 --name 'a b'"
	text := "no program is of the node's release; to run what the node ran: " + command + "; then start again, on /a/path"
	for width := range 120 {
		folded := show.Fold(text, width, "  ")
		if !strings.Contains(folded, command) {
			t.Fatalf("%d columns: %q", width, folded)
		}
		expect.Equal(t, strings.Join(strings.Fields(folded), " "), text, width, "columns")
		for line := range strings.SplitSeq(folded, "\n") {
			isOne := strings.Contains(line, command) || !strings.Contains(strings.TrimSpace(line), " ")
			if width > 0 && len(line) > width && !isOne {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
}

// TestTextsKeepTheirIndent prints two lines on a terminal of 30 columns and where there is none.
func TestTextsKeepTheirIndent(t *testing.T) {
	for width, want := range map[int]string{
		30: "  next: on the node,\n      ovn-appctl inc-engine/recompute\n      (before OVN 21.03:\n      recompute)\n    and more\n",
		0:  "  next: on the node, ovn-appctl inc-engine/recompute (before OVN 21.03: recompute)\n    and more\n",
	} {
		var out strings.Builder
		page := show.Page{Out: &out, Width: width}
		page.Text("  next: on the node, %s (before OVN 21.03: recompute)\n    and more\n", "ovn-appctl inc-engine/recompute")
		expect.Equal(t, out.String(), want, width, "columns")
	}
}
