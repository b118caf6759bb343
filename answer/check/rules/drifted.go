package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/drift"
	"ovs-offline/answer/rule"
	"ovs-offline/workdir"
)

// mostDrift is the size in bytes of the dumps of a node above which its flows are not computed again:
// that would take minutes, and much memory.
const mostDrift = 64 << 20

// drifted finds the nodes that do not have the flows that ovn-controller computes from the databases. It
// runs OVN's programs on copies.
func drifted() rule.Rule {
	return rule.Rule{
		Name: "drift", Severity: rule.Error, Slow: true,
		Needs:   []rule.Data{rule.OVS(), rule.SB(), rule.Dumps()},
		Follows: "packets take another way than the databases say",
		Sources: []string{"ovn-controller(8)"},
		Node: func(ctx context.Context, n *rule.Node, found func(rule.Finding)) error {
			settings, err := n.Settings()
			if err != nil || !settings.Configured() || n.Deployment.SB == nil {
				return err
			}
			if bridges, err := n.Dir.DumpedBridges(workdir.Flows); err != nil || len(bridges) == 0 {
				return err
			}
			if size := n.Dir.DumpBytes(); size > mostDrift {
				return fmt.Errorf("the dumps have %d MiB: to compute the flows takes minutes, and the command drift does it", size>>20)
			}
			report, err := n.Programs.Drift(ctx, n.Dir, nil)
			if err != nil {
				return err
			}
			for _, list := range []struct {
				of   []drift.Difference
				what string
			}{{report.Missing, "lacks"}, {report.Extra, "has, and should not have,"}, {report.Altered, "has altered"}} {
				for i := range list.of {
					d := &list.of[i]
					found(rule.Finding{Weight: len(d.Entries), What: fmt.Sprintf("%s %s %s", report.Bridge, list.what, d.String()),
						Evidence: []string{"the flows that OVN " + report.Running.OVN + " computes from the databases"},
						Next:     []rule.Next{rule.Ask("drift", "--detail")}})
				}
			}
			if report.Verdict == drift.Undetermined {
				return fmt.Errorf("undetermined: %s", report.Why)
			}
			return nil
		},
	}
}
