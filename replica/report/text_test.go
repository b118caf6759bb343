package report_test

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/internal/show"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

func TestReportCountsUnlistedEntries(t *testing.T) {
	r := &report.Report{
		Bridges: []report.BridgeReport{{Name: "br0", Counts: map[workdir.Dump]*report.Counts{
			workdir.Flows: {Rejected: 20000, Rewritten: 1}, workdir.Groups: {Rejected: 5}}}},
		Rejected:  make([]report.Item, 12),
		Rewritten: make([]report.Item, 1),
	}
	var out, warnings bytes.Buffer
	page := &show.Page{Out: &out, Err: &warnings}
	r.Print(page)
	r.PrintSummary(page, "report.json")
	for _, want := range []string{"not in the replica (20005, the first 12 are listed):\n",
		"that ovs-ofctl accepts (1):\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if !strings.Contains(warnings.String(), "warning: 19995 more entries are rejected\n") {
		t.Errorf("start printed\n%s", warnings.String())
	}
}

func TestPrintedDetailsAreBounded(t *testing.T) {
	step := report.Result{Step: "talk", Status: report.Failed, More: 5000}
	for i := range 1000 {
		step.Details = append(step.Details, strconv.Itoa(i))
	}
	r := &report.Report{Steps: []report.Result{step}}
	var started, reported bytes.Buffer
	r.PrintSummary(&show.Page{Out: io.Discard, Err: &started}, "report.json")
	r.Print(&show.Page{Out: &reported, Err: io.Discard})
	for what, printed := range map[string]string{"start": started.String(), "report": reported.String()} {
		if lines := strings.Count(printed, "\n"); lines > 120 || !strings.Contains(printed, "and 5900 more") {
			t.Errorf("%s prints %d lines:\n%.2000s", what, lines, printed)
		}
	}
}

// TestPrintedNamespacesAreBounded prints the summary of a report with a thousand network namespaces that are not as they were
// recorded, beside some that were left out.
func TestPrintedNamespacesAreBounded(t *testing.T) {
	r := &report.Report{NamespacesProblem: "3097 more are not"}
	for i := range 1000 {
		n := report.NewNamespace(strconv.Itoa(i))
		n.RejectUnnamed(report.FilterRules, 1, "none")
		r.Namespaces = append(r.Namespaces, *n)
	}
	var started bytes.Buffer
	r.PrintSummary(&show.Page{Out: io.Discard, Err: &started}, "report.json")
	printed := started.String()
	for _, want := range []string{"network namespaces of the node are missing: 3097 more are not",
		"980 network namespaces more are not as they were recorded"} {
		if lines := strings.Count(printed, "\n"); lines > 40 || !strings.Contains(printed, want) {
			t.Errorf("%d lines without %q:\n%.2000s", lines, want, printed)
		}
	}
}
