package rules

import (
	"context"
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/phrase"
)

// northdBehind finds the logical switches, routers and ports of the northbound database that the
// southbound one lacks.
func northdBehind() rule.Rule {
	return rule.Rule{
		Name: "northd-behind", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(rule.All("Logical_Switch", "_uuid", "name"), routers(), switchPorts()), rule.SB(datapaths(), bindings())},
		Follows: "changes of the northbound database do not reach the nodes",
		Sources: []string{"ovn-northd(8)", "ovn-sb(5), Datapath_Binding and Port_Binding"},
		Deployment: func(_ context.Context, d *rule.Deployment, found func(rule.Finding)) error {
			if d.NB == nil || d.SB == nil || d.NB.Changed.Sub(d.SB.Changed) < -settleTime {
				return nil // the copy of the southbound database is the newer one
			}
			datapaths, err := ovn.Datapaths(d.SB)
			if err != nil {
				return err
			}
			made := map[string]bool{}
			for _, datapath := range datapaths {
				made[datapath.Northbound] = true
			}
			bindings, err := d.Bindings()
			if err != nil {
				return err
			}
			var missing []string
			for _, kind := range []struct{ table, word string }{{"Logical_Switch", "switch"}, {"Logical_Router", "router"}} {
				err := d.NB.Each(kind.table, func(row ovsdb.Row) {
					if enabled := row.Bools("enabled"); !made[row.UUID] && !slices.Contains(enabled, false) {
						missing = append(missing, kind.word+" "+row.String("name"))
					}
				}, "name", "enabled")
				if err != nil {
					return err
				}
			}
			err = d.NB.Each("Logical_Switch_Port", func(row ovsdb.Row) {
				if _, bound := bindings[row.String("name")]; !bound && !slices.Contains(row.Bools("enabled"), false) {
					missing = append(missing, ovn.PortTitle(row.String("name"), row.Map("external_ids")))
				}
			}, "name", "external_ids", "enabled")
			if err != nil || len(missing) == 0 {
				return err
			}
			slices.Sort(missing)
			found(rule.Finding{At: d.SB.Changed, What: fmt.Sprintf("ovn-northd has not made %s of the northbound database: %s", phrase.Count(len(missing), "row"), phrase.FirstNames(missing)),
				Evidence: []string{"Logical_Switch, Logical_Router and Logical_Switch_Port in the northbound database, and Datapath_Binding and Port_Binding in the southbound one"},
				Next:     []string{"ovs-offline timeline --program ovn-northd", "on the central node: ovn-appctl -t ovn-northd status"}})
			return nil
		},
	}
}
