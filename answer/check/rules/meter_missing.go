package rules

import (
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// meterMissing finds ACLs that log with a meter that does not exist.
func meterMissing() rule.Rule {
	return rule.Rule{
		Name: "meter-missing", Severity: rule.Warning,
		Needs:   []rule.Data{rule.NB(matchedTables(rule.All("Meter", "name"))...)},
		Follows: "nothing limits how many packets are logged",
		Sources: []string{"ovn-nb(5), ACL, meter", "controller/ofctrl.c of OVN: could not find meter"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			meters := map[string]bool{}
			if err := d.NB.Each("Meter", func(row ovsdb.Row) { meters[row.String("name")] = true }, "name"); err != nil {
				return err
			}
			return eachMatched(d, n, func(m matched) {
				if m.table == "ACL" && m.log && m.meter != "" && !meters[m.meter] {
					found(rule.Finding{What: fmt.Sprintf("%s logs with meter %s, which does not exist", d.Title("ACL", m.uuid), m.meter),
						Evidence: []string{inNB("ACL", m.uuid, "meter")}, Next: []rule.Next{historyOf(m.uuid), rule.Ask("history", "nb", "--table", "Meter")}})
				}
			})
		}),
	}
}
