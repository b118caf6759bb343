package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/snapshot/node"
)

// logicalPortTwice finds the logical ports that several interfaces of a node name.
func logicalPortTwice() rule.Rule {
	return rule.Rule{
		Name: "logical-port-twice", Severity: rule.Error,
		Needs:   []rule.Data{rule.OVS()},
		Follows: "ovn-controller binds the port to one of the interfaces, and the others get no packets",
		Sources: []string{"ovn-controller(8), external_ids:iface-id", "binding_lport in controller/binding.c of OVN"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			bridges, err := n.Bridges()
			if err != nil {
				return err
			}
			bindings, err := n.Deployment.Bindings()
			settings, _ := n.Settings()
			of := map[string][]string{}
			for iface := range node.Interfaces(bridges...) {
				if id := iface.IDs["iface-id"]; id != "" && iface.Number >= 0 && iface.Type != "patch" && iface.Port.Bridge.Name == settings.Bridge() {
					of[id] = append(of[id], iface.Name)
				}
			}
			for id, names := range of {
				if len(names) > 1 {
					found(rule.Finding{What: fmt.Sprintf("%s of this node are of one logical port: %s (%s)", phrase.Count(len(names), "interface"), portTitle(bindings, id), phrase.FirstNames(names)),
						Evidence: []string{"Interface in conf.db: external_ids:iface-id=" + id},
						Next:     []rule.Next{rule.OnTheNode("ovs-vsctl --columns=name,ofport,external_ids find Interface", "external_ids:iface-id="+id)}})
				}
			}
			return err
		},
	}
}

// portTitle returns the name of a logical port that a user knows, also of one that is not bound.
func portTitle(bindings map[string]ovn.Binding, port string) string {
	if b, ok := bindings[port]; ok {
		return b.Title()
	}
	return "port " + port
}
