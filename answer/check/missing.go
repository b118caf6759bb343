package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/workdir"
)

// count counts the rules that have data to look at, and notes what the others lack. A case without a database is not judged: most
// rules read one.
func (r *Report) count(c *rule.Case, rules []rule.Rule) error {
	without := map[string]int{}
	for i := range rules {
		lacking, err := rules[i].Lacks(c)
		if err != nil {
			return err
		}
		if len(lacking) == 0 {
			r.Judged++
			r.judged[rules[i].Name] = true
		}
		for _, data := range lacking {
			without[data]++
		}
	}
	for name, rules := range without {
		r.Missing = append(r.Missing, Missing{name, rules})
	}
	slices.SortFunc(r.Missing, func(a, b Missing) int { return cmp.Or(b.Rules-a.Rules, cmp.Compare(a.Data, b.Data)) })
	database := rule.Rule{Needs: []rule.Data{rule.Either(rule.OVS(), rule.NB(), rule.SB())}}
	lacking, err := database.Lacks(c)
	if err == nil && len(lacking) > 0 {
		r.Unjudged = append(r.Unjudged, "what a database of Open vSwitch or OVN shows: none was collected")
	}
	return cmp.Or(err, r.countWithoutOVN(c))
}

// countWithoutOVN notes the nodes that use OVN, and of whose deployment no database was collected, or only the northbound one where
// another deployment has both.
func (r *Report) countWithoutOVN(c *rule.Case) error {
	southbound := slices.ContainsFunc(c.Deployments, func(d *rule.Deployment) bool { return d.SB != nil })
	for _, d := range c.Deployments {
		for _, n := range d.Nodes {
			settings, err := n.Settings()
			if err != nil {
				return err
			}
			switch {
			case d.SB != nil || !settings.Configured():
			case d.NB == nil:
				r.Unjudged = append(r.Unjudged, fmt.Sprintf("what a database of OVN shows: %s uses OVN, and no database of its deployment was collected: %s", n.Name, whyNone(n)))
			case southbound:
				r.Unjudged = append(r.Unjudged, fmt.Sprintf("what the southbound database shows: %s uses OVN, and no southbound database of its deployment was collected: %s", n.Name, whyNone(n)))
			}
		}
	}
	return nil
}

// whyNone says why collect found no database for a node, or else what to collect.
func whyNone(n *rule.Node) string {
	if manifest, err := n.Manifest(); err == nil {
		for _, collection := range manifest.Collections {
			for _, remark := range collection.Remarks {
				if _, reason, ok := strings.Cut(remark, workdir.LacksOVN); ok {
					return reason
				}
			}
		}
	}
	return "add the report of a controller, or its database files"
}
