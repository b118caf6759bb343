package rules

import (
	"fmt"

	"ovs-offline/answer/check/rule"
	"ovs-offline/internal/ovsdb"
)

// meterMissing finds ACLs that log with a meter that does not exist.
func meterMissing() rule.Rule {
	return rule.Rule{
		Name: "meter-missing", Severity: rule.Warning,
		Follows: "nothing limits how many packets are logged",
		Sources: []string{"ovn-nb(5), ACL, meter", "controller/ofctrl.c of OVN: could not find meter"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *rule.Northbound, found func(rule.Finding)) error {
			all, err := matches(d, n)
			if err != nil {
				return err
			}
			meters := map[string]bool{}
			if err := d.NB.Each("Meter", func(row ovsdb.Row) { meters[row.String("name")] = true }, "name"); err != nil {
				return err
			}
			for _, m := range all {
				if name := m.row.String("meter"); m.table == "ACL" && m.row.Bool("log") && name != "" && !meters[name] {
					found(rule.Finding{What: fmt.Sprintf("%s logs with meter %s, which does not exist", d.Title("ACL", m.row.UUID), name),
						Evidence: []string{inNB("ACL", m.row.UUID, "meter")}, Next: []string{historyOf(m.row.UUID), "ovs-offline exec ovn-nbctl meter-list"}})
				}
			}
			return nil
		}),
	}
}
