package set

import (
	"cmp"
	"errors"
	"fmt"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/snapshot"
)

// PrintReports prints a line for the report of each node.
func PrintReports(p *show.Page, outcomes []snapshot.Outcome[*report.Report]) {
	t := p.Table("node", "result", "restored", "rejected", "different", "placeholders", "lost", "recorded", "running")
	for _, outcome := range outcomes {
		name, r := terminal.Escape(outcome.Node.Name), outcome.Value
		if outcome.Err != nil {
			t.AppendRow([]any{name, stateOf(outcome.Err), "", "", "", "", "", "", ""})
			continue
		}
		t.AppendRow([]any{name, r.Summary(), r.RestoredShare(),
			r.Total(func(c *report.Counts) int { return c.Rejected }), r.Total(func(c *report.Counts) int { return c.Different }),
			r.Total(func(c *report.Counts) int { return c.Placeholders }), len(r.Lost), show.Versions(r.Recorded), show.Versions(r.Running)})
	}
	t.Render()
}

// PrintStatuses prints a line for each node of a set, or the whole status of the only one.
func PrintStatuses(p *show.Page, s *snapshot.Snapshot, outcomes []snapshot.Outcome[replica.Status]) {
	if len(s.Nodes()) == 1 {
		snapshot.PrintEach(p, outcomes, func(p *show.Page, v replica.Status) { v.Print(p) })
		return
	}
	p.Printf("Nodes in %s\n\n", terminal.Escape(s.Folder()))
	t := p.Table("node", "state", "runtime", "daemons", "flows loaded", "flows now", "problem")
	for _, outcome := range outcomes {
		t.AppendRow(statusRow(outcome))
	}
	t.Render()
	p.WarnEach("", s.Remarks())
}

// statusRow returns the line about a node.
func statusRow(outcome snapshot.Outcome[replica.Status]) []any {
	name := terminal.Escape(outcome.Node.Name)
	if outcome.Err != nil {
		return []any{name, stateOf(outcome.Err), "", "", "", "", terminal.Escape(outcome.Err.Error())}
	}
	s, answering, loaded, now, problem := outcome.Value, 0, 0, 0, ""
	for _, d := range s.Daemons {
		if d.Answers {
			answering++
		}
		if d.Problem != "" {
			problem = cmp.Or(problem, d.Role+": "+d.Problem)
		}
	}
	for _, f := range s.Flows {
		loaded, now = loaded+f.Loaded, now+f.Now
		problem = cmp.Or(problem, f.Problem)
	}
	return []any{name, s.Readiness(), s.Runtime, fmt.Sprintf("%d of %d", answering, len(s.Daemons)), loaded, now, terminal.Escape(problem)}
}

// stateOf returns the state of a node that has no status or report.
func stateOf(err error) string {
	if errors.Is(err, runtime.ErrNotRunning) || errors.Is(err, replica.ErrNoReport) {
		return "not started"
	}
	return "failed"
}
