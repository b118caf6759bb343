package rules

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/answer/cluster"
	"ovs-offline/answer/rule"
	"ovs-offline/workdir"
)

// clusters finds what is wrong with clustered databases, from the files of their members, and else from
// what their servers printed and logged.
func clusters() rule.Rule {
	return rule.Rule{
		Name: "cluster", Severity: rule.Error, Slow: true,
		Needs:   []rule.Data{rule.Either(rule.NB(), rule.SB())},
		Follows: "the database is not served, or loses what is written",
		Sources: []string{"ovsdb(7), Clustered Database Service Model"},
		Case: func(ctx context.Context, c *rule.Case, found func(rule.Finding)) error {
			var dirs []*workdir.Dir
			for _, n := range c.Nodes() {
				dirs = append(dirs, n.Dir)
			}
			report, err := cluster.OfDirs(ctx, dirs...)
			if err != nil {
				return err
			}
			for _, finding := range cluster.Findings(report) {
				found(finding)
			}
			var unread []error
			for _, file := range report.Unjudged {
				unread = append(unread, fmt.Errorf("%s: %s", file.File, file.Reason))
			}
			return errors.Join(unread...)
		},
	}
}
