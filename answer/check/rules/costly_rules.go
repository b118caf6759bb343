package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/flows"
	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
	"ovs-offline/workdir"
)

// Bounds of the numbers of flows above which a rule has a finding.
const (
	manyProducts   = 1000 // of one rule that multiplies out
	mostDuplicates = 5    // pairs that are listed
)

// costlyRules finds what top finds: rules that multiply out into many flows, rules that are there twice,
// and flows that no row of the databases has made.
func costlyRules() rule.Rule {
	return rule.Rule{
		Name: "costly-rules", Severity: rule.Warning, Slow: true,
		Needs:   []rule.Data{rule.Dumps()},
		Follows: "each flow takes memory and time on the node",
		Sources: []string{"ovn-architecture(7)", "ovs-fields(7), conjunctive match fields"},
		Case: func(ctx context.Context, c *rule.Case, found func(rule.Finding)) error {
			sources, err := withFlows(c)
			if err != nil || len(sources) == 0 {
				return err
			}
			const listed = 10
			top, counted, err := flows.Count(ctx, sources, flows.ByRule, listed)
			if err != nil {
				return err
			}
			defer top.Close()
			if err := top.Examine(ctx); err != nil {
				return err
			}
			for name, unknown := range top.UnknownOf {
				if !settled(c, name) {
					continue
				}
				found(rule.Finding{Rule: "flows-of-no-row", Nodes: rule.OnNode(name), What: fmt.Sprintf("the integration bridge has %s with a cookie that no row of the southbound database has", phrase.Count(unknown, "flow")),
					Follows:  "a row was deleted and its flows stayed, or another program wrote them: packets take a way that OVN does not know",
					Evidence: []string{"ovs-ofctl dump-flows: cookie"}, Next: []rule.Next{rule.Ask("drift"), rule.Ask("top")}})
			}
			for _, p := range top.Products {
				if p.Flows >= manyProducts {
					found(rule.Finding{Rule: "rule-multiplies-out", Nodes: rule.OnNode(p.Node), Weight: p.Flows,
						What:     fmt.Sprintf("%s became %s: %s", p.Name, phrase.Count(p.Flows, "flow"), p.Text()),
						Evidence: []string{p.Row + " " + p.UUID, fmt.Sprintf("ovs-ofctl dump-flows %s, table %d", p.Bridge, p.Table)},
						Next:     []rule.Next{rule.Ask("top"), rule.Ask("flows", "--policy", p.Name)}})
				}
			}
			for i, d := range top.Duplicates {
				if i == mostDuplicates || d.Rows[0].Table != "ACL" { // ovn-northd makes logical flows twice by itself
					break
				}
				var names []string
				for _, row := range d.Rows {
					names = append(names, row.Name)
				}
				found(rule.Finding{Rule: "rule-twice", What: fmt.Sprintf("%s have one match at one priority in %s: %s", phrase.Count(len(d.Rows), "rule"), d.Where, phrase.FirstNames(names)),
					Follows:  "only one of them decides about a packet, and which one is not defined",
					Evidence: []string{fmt.Sprintf("priority %d, match %s", d.Priority, phrase.Shorten(d.Match, 200))}, Next: []rule.Next{rule.Ask("top")}})
			}
			if counted.Lost > 0 {
				return fmt.Errorf("%s of the dumps can't be read", phrase.Count(counted.Lost, "line"))
			}
			return nil
		},
	}
}

// settled reports whether the southbound database of a node had not changed for some time when its
// flows were recorded: otherwise flows may be of rows that the copy does not have yet, or has no longer.
func settled(c *rule.Case, node string) bool {
	for _, n := range c.Nodes() {
		if n.Name != node {
			continue
		}
		manifest, err := n.Manifest()
		if err != nil {
			return false
		}
		switched := manifest.Collection(workdir.OVS)
		return switched != nil && !switched.Recorded.IsZero() && switched.Recorded.Sub(n.Deployment.SB.Changed) >= settleTime
	}
	return false
}

// withFlows returns the nodes with dumps of flows and a southbound database, as top takes them.
func withFlows(c *rule.Case) (sources []flows.Source, err error) {
	for _, n := range c.Nodes() {
		bridges, err := n.Dir.DumpedBridges()
		if err != nil {
			return nil, err
		}
		if len(bridges) > 0 && n.Deployment.SB != nil {
			sources = append(sources, flows.Source{Name: n.Name, Dir: n.Dir})
		}
	}
	return sources, nil
}
