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

// driftFindings returns a finding for each difference, the largest first, and one finding for the differences beyond the bound. Where the
// databases may explain all of them, or lines that can't be used what is missing, it returns one finding for these.
func driftFindings(report *drift.Report) (list []rule.Finding) {
	if caveats := report.Caveats(); len(caveats) > 0 && report.Differing() > 0 {
		f := doubtful(report, report.Differing(), strings.Join(caveats, "; "))
		f.Follows = "if the databases are of the moment of the flows, packets take another way than they say"
		return []rule.Finding{f}
	}
	missing := report.Missing
	if report.Unread > 0 && len(missing) > 0 {
		f := doubtful(report, drift.Entries(missing), phrase.Count(report.Unread, "line")+" of its dumps can't be used, which may have been these")
		f.Rule, f.Follows, missing = unreadFlows, "whether the node had them is not known", nil
		list = append(list, f)
	}
	for _, kind := range []struct {
		of   []drift.Difference
		what string
	}{{missing, lacks}, {report.Extra, "has, and should not have,"}, {report.Altered, "has altered"}} {
		for i := range kind.of {
			if d := &kind.of[i]; !isForeign(d) {
				f := differs(report, len(d.Entries), kind.what+" "+d.String())
				f.Follows = effectOf(d, kind.what == lacks)
				if d.Row == "Port_Binding" {
					f.Port = d.UUID
				}
				list = append(list, f)
			}
		}
	}
	return append(largest(report, list), foreign(report)...)
}

// lacks is what is said of missing entries.
const lacks = "lacks"

// effectOf returns what follows from a difference for packets, "" for what the rule says.
func effectOf(d *drift.Difference, missing bool) string {
	stage := ""
	if len(d.Stages) > 0 {
		stage = d.Stages[0]
	}
	switch {
	case d.Stale:
		return "packets that match go the way of a row that was deleted"
	case !missing:
		return ""
	case d.Northbound == "ACL":
		return "other rules decide about its packets: what it allows may be dropped, and what it drops may pass"
	case d.Northbound == "Load_Balancer":
		return "connections to its VIPs fail, or are not balanced"
	case strings.HasPrefix(stage, "output: from logical to physical"):
		return "packets for it do not come out"
	case strings.HasPrefix(stage, "input: from physical to logical"):
		return "packets that come in by it are dropped"
	case strings.HasPrefix(stage, "output: to other chassis"):
		return "packets for it do not reach the other nodes"
	}
	return ""
}

// differs returns a finding about entries of a node.
func differs(report *drift.Report, entries int, how string) rule.Finding {
	return rule.Finding{Symptom: true, Weight: entries, What: report.Bridge + " " + how, Evidence: []string{"the flows that OVN " + report.Running.OVN + " computes from the databases"},
		Next: []rule.Next{rule.Ask("drift", "--detail")}}
}

// doubtful returns the finding about entries that differ for another reason than a fault of the node, perhaps.
func doubtful(report *drift.Report, entries int, why string) rule.Finding {
	f := differs(report, entries, "")
	f.Severity, f.What = rule.Warning, fmt.Sprintf("%s of %s differ%s from what OVN computes, and this may be no fault: %s", phrase.Count(entries, "entry"), report.Bridge,
		map[bool]string{true: "s"}[entries == 1], why)
	return f
}

// largest returns the largest findings, and one for the others.
func largest(report *drift.Report, list []rule.Finding) []rule.Finding {
	if len(list) <= mostDifferences {
		return list
	}
	slices.SortStableFunc(list, func(a, b rule.Finding) int { return b.Weight - a.Weight })
	entries := 0
	for _, f := range list[mostDifferences-1:] {
		entries += f.Weight
	}
	return append(list[:mostDifferences-1], differs(report, 0, fmt.Sprintf("differs in %d more ways from what OVN computes, by %s", len(list)-mostDifferences+1, phrase.Count(entries, "entry"))))
}

// unreadFlows is the name of the findings about what may have been in lines that can't be used.
const unreadFlows = "flows-unread"

// foreignFlow is the name of the findings about flows that no ovn-controller wrote: no other finding explains them.
const foreignFlow = "foreign-flow"

func isForeign(d *drift.Difference) bool {
	return d.Words == rules.Foreign && d.Entries[0].Kind == flowdiff.KindFlow && d.Entries[0].Recorded != ""
}

// foreign returns the findings about flows that no ovn-controller wrote.
func foreign(report *drift.Report) (list []rule.Finding) {
	for i := range report.Extra {
		d := &report.Extra[i]
		if !isForeign(d) {
			continue
		}
		f := differs(report, len(d.Entries), "")
		f.Rule, f.Symptom, f.What = foreignFlow, false, fmt.Sprintf("someone added %s to %s: %s", phrase.Count(len(d.Entries), "flow"), report.Bridge, phrase.Shorten(d.Entries[0].Recorded, 200))
		if packets := d.Entries[0].Packets; packets != "" {
			f.What += fmt.Sprintf(" (%s packets)", packets)
		}
		f.Follows = "packets that match take another way than the databases say"
		list = append(list, f)
	}
	return list
}
