package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/ovsdb/file"
)

// interfaceDown finds the interfaces without a link. Internal interfaces count only if they have a
// logical port: the one with the name of its bridge is down on many healthy nodes.
func interfaceDown() rule.Rule {
	return rule.Rule{
		Name: "interface-down", Severity: rule.Error,
		Needs:   []rule.Data{rule.Printed("Interface", "name", "type", "admin_state", "link_state", "external_ids")},
		Follows: "no packet enters or leaves by this interface",
		Sources: []string{"ovs-vswitchd.conf.db(5), Interface, admin_state and link_state"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			printed, err := n.Printed("Interface", "name", "type", "admin_state", "link_state", "external_ids")
			for _, row := range printed {
				name, port := row.Column("name"), file.PrintedMap(row.Column("external_ids"))["iface-id"]
				kind := row.Column("type")
				if kind != "" && kind != "system" && kind != "dpdk" && (kind != "internal" || port == "") {
					continue
				}
				state := ""
				switch {
				case row.Column("admin_state") == "down":
					state = "is switched off"
				case row.Column("link_state") == "down":
					state = "has no link"
				default:
					continue
				}
				if port != "" {
					name += " of port " + port
				}
				found(rule.Finding{What: fmt.Sprintf("interface %s %s", name, state), Evidence: []string{"ovs-vsctl list Interface: admin_state, link_state"},
					Next: []rule.Next{rule.OnTheNode("ip link show", row.Column("name"))}})
			}
			return err
		},
	}
}
