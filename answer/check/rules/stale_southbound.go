package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// patience is how long ovn-northd may take to follow a change.
const patience = 10 * time.Second

// staleSouthbound finds datapaths and ports of the southbound database that the northbound one no longer
// has. It judges databases only where the southbound one has a later transaction than the northbound one by
// more than ovn-northd needs: a copy that was made earlier has what was deleted later.
func staleSouthbound() rule.Rule {
	return rule.Rule{
		Name: "stale-southbound", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(networkTables()...), rule.SB(datapaths(), bindings())},
		Follows: "nodes still have the flows of what was deleted, and a new one of the name may not work",
		Sources: []string{"ovn-northd(8)", "ovn-sb(5), Datapath_Binding and Port_Binding"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			if d.SB == nil || d.NB.Changed.IsZero() || d.SB.Changed.Before(d.NB.Changed.Add(patience)) {
				return nil
			}
			networks := map[string]bool{}
			for _, s := range n.Switches {
				networks[s.UUID] = true
			}
			for _, r := range n.Routers {
				networks[r.UUID] = true
			}
			datapaths, err := ovn.Datapaths(d.SB)
			if err != nil {
				return err
			}
			var stale []string
			for _, datapath := range datapaths {
				if datapath.Northbound != "" && !networks[datapath.Northbound] {
					stale = append(stale, datapath.String())
				}
			}
			bindings, err := d.Bindings()
			if err != nil {
				return err
			}
			for port, b := range bindings {
				bare := strings.TrimPrefix(port, "cr-")
				if n.Ports[port] == nil && n.RouterPorts[port] == nil && (b.Type != "chassisredirect" || n.Ports[bare] == nil && n.RouterPorts[bare] == nil) {
					stale = append(stale, b.Title())
				}
			}
			if len(stale) > 0 {
				slices.Sort(stale)
				found(rule.Finding{What: fmt.Sprintf("the southbound database still has %s that the northbound one has not: %s", phrase.Count(len(stale), "row"), phrase.FirstNames(stale)), At: d.SB.Changed,
					Evidence: []string{"Datapath_Binding and Port_Binding in the southbound database, which changed after the northbound one by " + phrase.Duration(d.SB.Changed.Sub(d.NB.Changed))},
					Next:     []rule.Next{rule.Ask("history", "nb", "--limit", "20"), rule.Elsewhere("on the node with the databases", "ovn-appctl -t ovn-northd status")}})
			}
			return nil
		}),
	}
}
