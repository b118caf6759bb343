package cmd

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/replica/report"
)

// TestMuchToPrint: what a step says is printed up to a point, and the rest counted.
func TestMuchToPrint(t *testing.T) {
	step := report.Result{Step: "talk", Status: report.Failed, More: 5000}
	for i := range 1000 {
		step.Details = append(step.Details, strconv.Itoa(i))
	}
	r := &report.Report{Steps: []report.Result{step}}
	var started, reported bytes.Buffer
	printSteps(&started, r)
	(&options{IO: IO{Out: &reported}}).printAllSteps(r)
	for what, said := range map[string]string{"start": started.String(), "report": reported.String()} {
		if lines := strings.Count(said, "\n"); lines > 110 || !strings.Contains(said, "and 5900 more") {
			t.Errorf("%s prints %d lines:\n%.2000s", what, lines, said)
		}
	}
}
