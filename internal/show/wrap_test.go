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
