package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/show"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// trustOf returns how faithful the replica of a node is, and what it lacks.
func trustOf(ctx context.Context, node *host.Host, wd *workdir.Dir) (trust answer.Fidelity, lacks *incomplete, err error) {
	start, err := replica.Report(wd)
	if errors.Is(err, replica.ErrNoReport) { // start writes it last
		return trust, nil, show.Advise(fmt.Errorf("node %s: the start of its replica has not ended: wait for it, or start it again with", node.Name), node.Name, "start")
	}
	if err != nil {
		return trust, nil, err
	}
	shown, err := node.Ask(ctx, replica.CountCommand)
	if err != nil {
		return trust, nil, err
	}
	trust = answer.Fidelity{Name: node.Name, Restored: 100, Warnings: slices.Clone(node.Remarks)}
	if start.Synthesised != nil {
		trust.Synthesised, trust.SynthesisedFrom = true, start.Synthesised.Origin()
	}
	if changes := replica.Changes(wd, start, shown); changes != "" {
		trust.Doubts = append(trust.Doubts, "the replica was changed since its start ("+changes+"), so answers may be wrong: a new start restores it")
	}
	collected, restored := 0, 0
	for _, b := range start.Bridges {
		for _, c := range b.Counts {
			collected += c.Collected
			restored += c.Restored
		}
	}
	if collected > 0 {
		trust.Restored = 100 * float64(restored) / float64(collected)
	}
	for _, step := range start.Steps {
		if step.Status == report.Failed {
			trust.Doubts = append(trust.Doubts, failureOf(step))
		}
	}
	manifest, err := wd.Manifest()
	if err != nil {
		return trust, nil, err
	}
	if start.Synthesised == nil {
		if lacks, err = readIncomplete(node, wd, manifest, start); err != nil {
			return trust, nil, err
		}
	}
	trust.Doubts = append(trust.Doubts, replica.DatabaseDoubts(manifest, start.Origin)...)
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		if manifest.FromPrinted(kind) != nil {
			trust.Warnings = append(trust.Warnings, fmt.Sprintf("its %s database was made from its printed tables: its report says what is assumed", kind.Title()))
		}
	}
	if start.Origin == nil {
		bridge, err := replica.IntegrationBridge(ctx, wd)
		if err != nil {
			return trust, nil, err
		}
		if _, err := os.Stat(wd.Database(workdir.SB)); bridge != "" && err != nil {
			trust.Warnings = append(trust.Warnings, "it has no OVN SB database: rules have no names, and what is missing among the flows is not known")
		}
	}
	if !start.Restored() {
		trust.Warnings = append(trust.Warnings, fmt.Sprintf("the replica has not all that was collected: %s", wd.ReportFile()))
	}
	if start.Recorded.OVS != start.Running.OVS && start.Recorded.OVS != "" {
		trust.Warnings = append(trust.Warnings, fmt.Sprintf("recorded with Open vSwitch %s, running %s", start.Recorded.OVS, start.Running.OVS))
	}
	return trust, lacks, nil
}

// failureOf returns why a step of the start casts doubt on answers: the first of its details, and
// the number of the others.
func failureOf(result report.Result) string {
	text := "its start could not restore " + result.Step
	if len(result.Details) > 0 {
		text += ": " + result.Details[0]
	}
	if more := len(result.Details) - 1 + result.More; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}
