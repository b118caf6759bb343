package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/ovsdb"
)

// chassisPrivateAlone finds rows of Chassis_Private whose chassis was deleted.
func chassisPrivateAlone() rule.Rule {
	return rule.Rule{
		Name: "chassis-private-alone", Severity: rule.Warning,
		Needs:   []rule.Data{rule.SB(rule.Some("Chassis_Private", "_uuid", "name", "chassis"))},
		Follows: "a CMS still counts the node: neutron lists an agent of a node that is gone",
		Sources: []string{"ovn-sb(5), Chassis_Private, chassis"},
		Deployment: func(_ context.Context, d *rule.Deployment, found func(rule.Finding)) error {
			return d.SB.Each("Chassis_Private", func(row ovsdb.Row) {
				if len(row.UUIDs("chassis")) == 0 {
					found(rule.Finding{What: fmt.Sprintf("the southbound database has private data of chassis %s, which does not exist", row.String("name")),
						Evidence: []string{inSB("Chassis_Private", row.String("name"), "chassis")}, Next: []rule.Next{historyOfBound(row.UUID)}})
				}
			}, "name", "chassis")
		},
	}
}
