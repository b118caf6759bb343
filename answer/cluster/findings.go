package cluster

import (
	"ovs-offline/answer/rule"
)

// Findings returns the problems of a report as findings of a check. Notes are left out.
func Findings(report *Report) (findings []rule.Finding) {
	severities := map[Severity]rule.Severity{Error: rule.Error, Warning: rule.Warning}
	for _, c := range report.Clusters {
		for _, p := range c.Problems {
			severity, wanted := severities[p.Severity]
			if !wanted {
				continue
			}
			f := rule.Finding{Rule: "raft-" + string(p.Kind), Severity: severity, What: p.What, Evidence: p.Evidence, At: p.At, Follows: p.Follows,
				Next: []rule.Next{rule.Ask("cluster")}, Sources: []string{"ovsdb(7), Clustered Database Service Model", "ovsdb-server(1), cluster commands"}}
			for _, step := range p.Repair {
				f.Next = append(f.Next, step.Next())
			}
			findings = append(findings, f)
		}
	}
	rule.Sort(findings)
	return findings
}
