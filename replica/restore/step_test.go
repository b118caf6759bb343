package restore

import (
	"context"
	"strings"
	"testing"

	"ovs-offline/replica/report"
)

// TestReportIsBounded checks that a step with very many details lists the worst ones
// first, and counts the rest.
func TestReportIsBounded(t *testing.T) {
	const many = 100_000
	n := &Replica{Report: report.New()}
	err := Run(t.Context(), n, []Step{{"many details", func(_ context.Context, _ *Replica, o *report.Outcome) error {
		for i := range many {
			o.Note(report.Approximated, "%d", i)
		}
		o.Note(report.Failed, "%s", strings.Repeat("long", many))
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r := n.Report.Steps[0]
	if r.Status != report.Failed || len(r.Details) == 0 || !strings.HasPrefix(r.Details[0], "long") {
		t.Errorf("the worst is not first: %s, %.100q", r.Status, r.Details)
	}
	if len(r.Details)+r.More != many+1 {
		t.Errorf("%d are listed and %d counted", len(r.Details), r.More)
	}
	if size := len(strings.Join(r.Details, "")); size > 100_000 {
		t.Errorf("the details have %d bytes", size)
	}
}
