package rules

import (
	"cmp"
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// controllerNotConnected finds the OpenFlow controllers and the OVSDB managers that are configured
// and to which there is no connection.
func controllerNotConnected() rule.Rule {
	return rule.Rule{
		Name: "controller-not-connected", Severity: rule.Error,
		Needs:   []rule.Data{rule.Either(rule.Printed("Controller", "target", "is_connected", "status"), rule.Printed("Manager", "target", "is_connected", "status"))},
		Follows: "the controller gets no packets and changes no flows; with fail_mode=standalone the bridge forwards by MAC addresses",
		Sources: []string{"ovs-vswitchd.conf.db(5), Controller and Manager: is_connected, status"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			bridges := map[string]string{}
			err := n.OVS.Each("Bridge", func(row ovsdb.Row) {
				for _, uuid := range row.UUIDs("controller") {
					bridges[uuid] = " of bridge " + row.String("name")
				}
			}, "name", "controller")
			if err != nil {
				return err
			}
			for _, table := range []struct{ name, word string }{{"Controller", "the OpenFlow controller"}, {"Manager", "the OVSDB manager"}} {
				printed, _, err := n.Printed(table.name, "target", "is_connected", "status")
				if err != nil {
					return err
				}
				for _, row := range printed {
					if row.Column("is_connected") == "false" && !listens(row) {
						status := file.PrintedMap(row.Column("status"))
						found(rule.Finding{What: fmt.Sprintf("%s %s%s is not connected: %s", table.word, row.Column("target"), bridges[row.UUID], cmp.Or(status["last_error"], status["state"], "no reason was recorded")),
							Evidence: []string{"ovs-vsctl list " + table.name + ": is_connected, status"},
							Next:     []rule.Next{rule.Ask("timeline", "--grep", row.Column("target"))}})
					}
				}
			}
			return nil
		},
	}
}

// listens reports whether the switch waits for connections at the target, of which there need not
// be one.
func listens(row ovsdb.Record) bool {
	target := row.Column("target")
	return len(target) > 0 && target[0] == 'p' // ptcp:, pssl:, punix:
}
