package rules

import (
	"cmp"
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// tunnelDown finds the tunnels on which BFD or CFM says that the other end does not answer.
func tunnelDown() rule.Rule {
	return rule.Rule{
		Name: "tunnel-down", Severity: rule.Error,
		Needs:   []rule.Data{rule.Printed("Interface", "name", "options", "bfd", "bfd_status")},
		Follows: "gateways behind this tunnel are not used, and packets to the other node are lost",
		Sources: []string{"ovs-vswitchd.conf.db(5), Interface, bfd_status", "RFC 5880, 6.8.1"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			printed, _, err := n.Printed("Interface", "name", "options", "bfd", "bfd_status")
			if err != nil {
				return err
			}
			chassis, err := n.Deployment.Chassis()
			for _, row := range printed {
				status := file.PrintedMap(row.Column("bfd_status"))
				if file.PrintedMap(row.Column("bfd"))["enable"] != "true" || status["state"] == "" || status["state"] == "up" || status["state"] == "admin_down" {
					continue
				}
				diagnostic := cmp.Or(status["diagnostic"], "no diagnostic")
				found(rule.Finding{What: fmt.Sprintf("BFD of %s is %s (%s)", tunnelTitle(row, chassis), status["state"], diagnostic),
					Evidence: []string{"ovs-vsctl list Interface " + row.Column("name") + ": bfd_status"},
					Next:     []rule.Next{rule.Ask("timeline", "--grep", "bfd"), rule.Elsewhere("on both nodes", "ovs-appctl bfd/show", row.Column("name"))}})
			}
			return err
		},
	}
}

// tunnelTitle names a tunnel by the chassis at its other end.
func tunnelTitle(row ovsdb.Record, chassis []ovn.Chassis) string {
	remote := file.PrintedMap(row.Column("options"))["remote_ip"]
	for _, c := range chassis {
		for _, encap := range c.Encaps {
			if encap.IP == remote && remote != "" {
				return fmt.Sprintf("the tunnel %s to %s (%s)", row.Column("name"), c.Title(), remote)
			}
		}
	}
	return fmt.Sprintf("the tunnel %s to %s", row.Column("name"), cmp.Or(remote, "an unknown address"))
}
