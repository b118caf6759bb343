package trace

import (
	"fmt"
	"slices"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/trace/answer"
	"ovs-offline/trace/host"
)

// trustOf returns how faithful the replica of a node is.
func trustOf(h *host.Host, wd *workdir.Dir) (answer.Node, error) {
	r, err := replica.Report(wd)
	if err != nil {
		return answer.Node{}, err
	}
	n := answer.Node{Name: h.Name, Restored: 100, Warnings: slices.Clone(h.Remarks)}
	n.Synthesised = r.Synthesised != nil
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
	if !r.Restored() {
		n.Warnings = append(n.Warnings, fmt.Sprintf("the replica has not all that was collected: %s", wd.ReportFile()))
	}
	if r.Recorded.OVS != r.Running.OVS && r.Recorded.OVS != "" {
		n.Warnings = append(n.Warnings, fmt.Sprintf("recorded with Open vSwitch %s, running %s", r.Recorded.OVS, r.Running.OVS))
	}
	return n, nil
}
