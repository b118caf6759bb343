package draw_test

import (
	"bytes"
	"regexp"
	"testing"

	"ovs-offline/answer/reach"
	"ovs-offline/answer/reach/draw"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/test/check/expect"
)

// TestUnknownIsNotTheColourOfUnreachable has a cell with each verdict: only one whose verdicts are known says that no
// port is reachable.
func TestUnknownIsNotTheColourOfUnreachable(t *testing.T) {
	port := []reach.Port{{Protocol: "tcp", Number: 80}, {Protocol: "tcp", Number: 81}}
	verdicts := [][]answer.Verdict{{answer.Reachable, answer.Reachable}, {answer.Unreachable, answer.Unreachable},
		{answer.OneWay, answer.Unreachable}, {answer.Undetermined, answer.Undetermined},
		{answer.Unreachable, answer.Undetermined}, {reach.Mixed, reach.Mixed}, {answer.Ambiguous, answer.Unreachable},
		{answer.Reachable, answer.Undetermined}, nil}
	d := &reach.Document{Matrix: &reach.Matrix{Ports: port, From: []reach.Group{{Name: "a"}}}}
	for column, of := range verdicts {
		d.To = append(d.To, reach.Group{Name: "b"})
		for i, verdict := range of {
			cell := reach.Cell{From: "a", To: "b", Port: port[i], Verdict: verdict, Column: column,
				Asked: []reach.Answer{{From: "a", To: "b", Verdict: verdict}}}
			d.Cells = append(d.Cells, cell)
			d.Count(cell)
		}
	}
	var page bytes.Buffer
	if err := draw.HTML(&page, d); err != nil {
		t.Fatal(err)
	}
	var classes []string
	for _, m := range regexp.MustCompile(`<td class="([a-z0-9]+)" title`).FindAllStringSubmatch(page.String(), -1) {
		classes = append(classes, m[1])
	}
	expect.Equal(t, classes, []string{"s10", "s0", "s0", "unknown", "unknown", "unknown", "unknown", "s5", "none"})
}
