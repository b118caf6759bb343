package check

import (
	"cmp"
	"slices"

	"ovs-offline/answer/rule"
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
	return err
}
