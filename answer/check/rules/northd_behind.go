package rules

import (
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
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
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			if d.SB == nil || d.NB.Changed.Sub(d.SB.Changed) < -settleTime {
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
			for _, s := range n.Switches {
				if !made[s.UUID] {
					missing = append(missing, "switch "+s.Name)
				}
			}
			for _, r := range n.Routers {
				if !made[r.UUID] && !r.Disabled {
					missing = append(missing, "router "+r.Name)
				}
			}
			for _, p := range n.SwitchPorts {
				if _, bound := bindings[p.Name]; !bound && !p.Disabled {
					missing = append(missing, p.Title())
				}
			}
			if len(missing) == 0 {
				return nil
			}
			slices.Sort(missing)
			found(rule.Finding{At: d.SB.Changed, What: fmt.Sprintf("ovn-northd has not made %s of the northbound database: %s", phrase.Count(len(missing), "row"), phrase.FirstNames(missing)),
				Evidence: []string{"Logical_Switch, Logical_Router and Logical_Switch_Port in the northbound database, and Datapath_Binding and Port_Binding in the southbound one"},
				Next:     []rule.Next{rule.Ask("timeline", "--program", "ovn-northd"), rule.Elsewhere("on the central node", "ovn-appctl -t ovn-northd status")}})
			return nil
		}),
	}
}
