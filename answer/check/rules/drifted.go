package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/drift"
	"ovs-offline/answer/flowdiff"
	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
	"ovs-offline/snapshot/rules"
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
			for _, f := range driftFindings(report) {
				found(f)
			}
			if report.Verdict == drift.Undetermined {
				return fmt.Errorf("undetermined: %s", report.Why)
			}
			return nil
		},
	}
}

// mostDifferences bounds the findings on one node, so that they do not hide others.
const mostDifferences = 5

// driftFindings returns a finding for each difference, the largest first, and one finding for the differences beyond the bound. If the
// databases may explain all of them, it returns one finding.
func driftFindings(report *drift.Report) (list []rule.Finding) {
	evidence := "the flows that OVN " + report.Running.OVN + " computes from the databases"
	next := []rule.Next{rule.Ask("drift", "--detail")}
	if caveats := report.Caveats(); len(caveats) > 0 && report.Differing() > 0 {
		return []rule.Finding{{Severity: rule.Warning, What: fmt.Sprintf("%s of %s differ%s from what OVN computes, and this may be no fault: %s",
			phrase.Count(report.Differing(), "entry"), report.Bridge, map[bool]string{true: "s"}[report.Differing() == 1], strings.Join(caveats, "; ")), Evidence: []string{evidence},
			Follows: "if the databases are of the moment of the flows, packets take another way than they say", Next: next}}
	}
	for _, kind := range []struct {
		of   []drift.Difference
		what string
	}{{report.Missing, "lacks"}, {report.Extra, "has, and should not have,"}, {report.Altered, "has altered"}} {
		for i := range kind.of {
			d := &kind.of[i]
			f := rule.Finding{Weight: len(d.Entries), What: fmt.Sprintf("%s %s %s", report.Bridge, kind.what, d.String()), Evidence: []string{evidence}, Next: next}
			if e := d.Entries[0]; d.Words == rules.Foreign && e.Kind == flowdiff.KindFlow && e.Recorded != "" {
				f.What = fmt.Sprintf("someone added %s to %s: %s", phrase.Count(len(d.Entries), "flow"), report.Bridge, phrase.Shorten(e.Recorded, 200))
				if e.Packets != "" {
					f.What += fmt.Sprintf(" (%s packets)", e.Packets)
				}
				f.Follows = "packets that match take another way than the databases say"
			}
			list = append(list, f)
		}
	}
	if len(list) <= mostDifferences {
		return list
	}
	slices.SortStableFunc(list, func(a, b rule.Finding) int { return b.Weight - a.Weight })
	entries := 0
	for _, f := range list[mostDifferences-1:] {
		entries += f.Weight
	}
	return append(list[:mostDifferences-1], rule.Finding{What: fmt.Sprintf("%s differs in %d more ways from what OVN computes, by %s", report.Bridge,
		len(list)-mostDifferences+1, phrase.Count(entries, "entry")), Evidence: []string{evidence}, Next: next})
}
