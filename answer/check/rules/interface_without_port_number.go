package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovsdb"
)

// interfaceWithoutPortNumber finds the interfaces that ovs-vswitchd could not open: their ofport
// is -1, and mostly they have an error.
func interfaceWithoutPortNumber() rule.Rule {
	return rule.Rule{
		Name: "interface-without-port-number", Severity: rule.Error,
		Follows: "no packet enters or leaves by this interface",
		Sources: []string{"ovs-vswitchd.conf.db(5), Interface, ofport and error"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			return n.OVS.Each("Interface", func(row ovsdb.Row) {
				number, known := row.Int("ofport")
				problem := row.String("error")
				if problem == "" && (!known || number >= 0) {
					return
				}
				name := row.String("name")
				what := fmt.Sprintf("interface %s has no OpenFlow port", name)
				if problem != "" {
					what = fmt.Sprintf("interface %s could not be added: %s", name, problem)
				}
				found(rule.Finding{What: what, Evidence: []string{"Interface " + name + " in conf.db: ofport, error"},
					Next: []string{"ovs-offline exec ovs-vsctl list Interface " + name, "on the node: ip link show " + name}})
			}, "name", "ofport", "error")
		},
	}
}
