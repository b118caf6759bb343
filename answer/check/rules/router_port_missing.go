package rules

import (
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// routerPortMissing finds connections of a router that lack one end: a port of a switch, or of another
// router, that names a port that does not exist, or that does not name it in turn.
func routerPortMissing() rule.Rule {
	return rule.Rule{
		Name: "router-port-missing", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(networkTables()...)},
		Follows: "no packet goes from the one to the other",
		Sources: []string{"ovn-nb(5), Logical_Switch_Port, options:router-port", "ovn-nb(5), Logical_Router_Port, peer"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			for _, s := range n.Switches {
				for _, p := range s.Ports {
					end := p.Options["router-port"]
					if p.Type != "router" || n.RouterPorts[end] != nil && n.RouterPorts[end].Router != nil {
						continue
					}
					what := fmt.Sprintf("%s of %s leads to router port %s, which does not exist", p.Title(), d.Title("Logical_Switch", s.UUID), end)
					if end == "" {
						what = fmt.Sprintf("%s of %s is for a router, and names no port of one", p.Title(), d.Title("Logical_Switch", s.UUID))
					}
					found(rule.Finding{What: what, Evidence: []string{inNB("Logical_Switch_Port", p.Name, "options:router-port")},
						Next: []rule.Next{historyOf(p.UUID), rule.Ask("history", "nb", "--table", "Logical_Router_Port")}})
				}
			}
			for _, r := range n.Routers {
				for _, p := range r.Ports {
					peer := n.RouterPorts[p.Peer]
					if p.Peer == "" || peer != nil && peer.Peer == p.Name {
						continue
					}
					what := fmt.Sprintf("port %s of %s has peer %s, which does not exist", p.Name, d.Title("Logical_Router", r.UUID), p.Peer)
					if peer != nil {
						what = fmt.Sprintf("port %s of %s has peer %s, which has another peer", p.Name, d.Title("Logical_Router", r.UUID), p.Peer)
					}
					found(rule.Finding{What: what, Evidence: []string{inNB("Logical_Router_Port", p.Name, "peer")}, Next: []rule.Next{historyOf(p.UUID)}})
				}
			}
			return nil
		}),
	}
}
