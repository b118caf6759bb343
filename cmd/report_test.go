package cmd

import (
	"bytes"
	"strings"
	"testing"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// TestReportCountsWhatItDoesNotName: a report names a part of very many entries.
func TestReportCountsWhatItDoesNotName(t *testing.T) {
	r := &report.Report{
		Bridges: []report.BridgeReport{{Name: "br0", Counts: map[workdir.Dump]*report.Counts{
			workdir.Flows: {Rejected: 20000, Rewritten: 1}, workdir.Groups: {Rejected: 5}}}},
		Rejected:  make([]report.Item, 12),
		Rewritten: make([]report.Item, 1),
	}
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out, warnings bytes.Buffer
	o := options{IO: IO{Out: &out, Err: &warnings}}
	o.printWhole(r)
	o.printReport(wd, r)
	for _, want := range []string{"not in the replica (20005, the first 12 are named):\n", "that ovs-ofctl reads (1):\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if !strings.Contains(warnings.String(), "warning: 19995 more entries are set aside\n") {
		t.Errorf("start says\n%s", warnings.String())
	}
}
