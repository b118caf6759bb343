package mcp

import (
	"errors"
	"fmt"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/set"
	"ovs-offline/workdir"
)

// Trust is how far a result can be relied on.
type Trust struct {
	Node     string   `json:"node"`
	Replica  string   `json:"replica" jsonschema:"how much of the recorded data the replica has"`
	Rejected int      `json:"rejected" jsonschema:"number of recorded entries that the replica does not have"`
	Examples []string `json:"rejected_examples,omitempty"`
	Recorded string   `json:"recorded_versions,omitempty"`
	Running  string   `json:"running_versions,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// trustIn returns the trust in the replica of a node.
func trustIn(node *set.Node, wd *workdir.Dir) *Trust {
	t := &Trust{Node: node.FolderName()}
	found, err := replica.Report(wd)
	if errors.Is(err, replica.ErrNoReport) {
		t.Replica = "no replica was started: the result is from the recorded files alone"
		return t
	}
	if err != nil {
		t.Replica = "not known: " + terminal.Escape(err.Error())
		return t
	}
	t.addReport(found)
	if warning := replica.TraceWarning(wd, found); warning != "" {
		t.Warnings = append(t.Warnings, warning)
	}
	return t
}

func (t *Trust) addReport(found *report.Report) {
	const most = 5
	t.Replica, t.Rejected = found.Sentence(), found.Total(func(counts *report.Counts) int { return counts.Rejected })
	t.Recorded, t.Running = found.Recorded.String(), found.Running.String()
	for _, item := range found.Rejected[:min(most, len(found.Rejected))] {
		t.Examples = append(t.Examples, terminal.Escape(fmt.Sprintf("%s, %s: %s: %s", item.Bridge, item.Dump, item.Reason, item.Text)))
	}
	for _, lost := range found.Lost[:min(most, len(found.Lost))] {
		t.Warnings = append(t.Warnings, "not collected: "+terminal.Escape(lost))
	}
	for _, remark := range found.Remarks[:min(most, len(found.Remarks))] {
		t.Warnings = append(t.Warnings, terminal.Escape(remark))
	}
}
