package trace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/trace/answer"
	"ovs-offline/trace/host"
)

// trustOf returns how faithful the replica of a node is.
func trustOf(ctx context.Context, h *host.Host, wd *workdir.Dir) (answer.Node, error) {
	r, err := replica.Report(wd)
	if errors.Is(err, fs.ErrNotExist) { // start writes it last
		return answer.Node{}, fmt.Errorf("node %s: the start of its replica has not ended: wait for it, or start it again with: ovs-offline start", h.Name)
	}
	if err != nil {
		return answer.Node{}, err
	}
	shown, err := h.Ask(ctx, replica.CountCommand)
	if err != nil {
		return answer.Node{}, err
	}
	n := answer.Node{Name: h.Name, Restored: 100, Warnings: slices.Clone(h.Remarks)}
	n.Synthesised = r.Synthesised != nil
	if changes := replica.Changes(wd, r, shown); changes != "" {
		n.Doubts = append(n.Doubts, "the replica was changed since its start ("+changes+"), so answers may be wrong: ovs-offline start restores it")
	}
	collected, restored := 0, 0
	for _, b := range r.Bridges {
		for _, c := range b.Counts {
			collected += c.Collected
			restored += c.Restored
		}
	}
	if collected > 0 {
		n.Restored = 100 * float64(restored) / float64(collected)
	}
	for _, step := range r.Steps {
		if step.Status == report.Failed {
			n.Doubts = append(n.Doubts, failed(step))
		}
	}
	if text := r.Origin.Sentence(); text != "" {
		n.Doubts = append(n.Doubts, text)
	}
	if !r.Restored() {
		n.Warnings = append(n.Warnings, fmt.Sprintf("the replica has not all that was collected: %s", wd.ReportFile()))
	}
	if r.Recorded.OVS != r.Running.OVS && r.Recorded.OVS != "" {
		n.Warnings = append(n.Warnings, fmt.Sprintf("recorded with Open vSwitch %s, running %s", r.Recorded.OVS, r.Running.OVS))
	}
	return n, nil
}

// failed returns why a step of the start casts doubt on answers: the first of its details, and
// the number of the others.
func failed(r report.Result) string {
	text := "its start could not restore " + r.Step
	if len(r.Details) > 0 {
		text += ": " + r.Details[0]
	}
	if more := len(r.Details) - 1 + r.More; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}
