package doctor_test

import (
	"bytes"
	"strings"
	"testing"

	"ovs-offline/internal/show"
	"ovs-offline/replica/doctor"
)

// TestLinesOfAnErrorAreLines prints an error of two lines, as engines answer with: no escape sequence takes the place of
// the line break.
func TestLinesOfAnErrorAreLines(t *testing.T) {
	var out bytes.Buffer
	report := doctor.Report{Checks: []doctor.Check{{Name: "podman", State: doctor.Broken,
		What: "no image fits:\nit has no ovs-vswitchd"}}}
	report.Print(&show.Page{Out: &out})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || strings.Contains(out.String(), `\n`) || !strings.HasSuffix(lines[2], "  it has no ovs-vswitchd") {
		t.Errorf("printed %q", lines)
	}
}
