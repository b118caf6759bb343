package restore

import (
	"context"
	"strings"
	"testing"

	"ovs-offline/replica/report"
)

// TestMuchToSay: a step may have a million things to say. The worst are told
// first, the rest is counted.
func TestMuchToSay(t *testing.T) {
	const many = 100_000
	n := &Node{Report: report.New()}
	err := Run(t.Context(), n, []Step{{"talk", func(_ context.Context, _ *Node, o *report.Outcome) error {
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
		t.Errorf("the worst is not told first: %s, %.100q", r.Status, r.Details)
	}
	if len(r.Details)+r.More != many+1 {
		t.Errorf("%d are told and %d counted", len(r.Details), r.More)
	}
	if size := len(strings.Join(r.Details, "")); size > 100_000 {
		t.Errorf("the details have %d bytes", size)
	}
}
