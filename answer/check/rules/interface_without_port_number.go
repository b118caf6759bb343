package rules

import (
	"context"
	"fmt"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/snapshot/node"
	"ovs-offline/workdir"
)

// interfaceWithoutPortNumber finds the interfaces that ovs-vswitchd could not open: their ofport
// is -1, and mostly they have an error.
func interfaceWithoutPortNumber() rule.Rule {
	return rule.Rule{
		Name: "interface-without-port-number", Severity: rule.Error,
		Needs:   []rule.Data{rule.Either(rule.OVS(), rule.Printed("Interface", "name", "ofport", "error"), rule.Output(workdir.RecordedSwitchShow))},
		Follows: "no packet enters or leaves by this interface",
		Sources: []string{"ovs-vswitchd.conf.db(5), Interface, ofport and error"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			bridges, err := n.Bridges()
			if err != nil {
				return err
			}
			hints := map[string]string{}
			for i := range node.Interfaces(bridges...) {
				if bridge := i.Port.Bridge; strings.HasPrefix(i.Type, "dpdk") && bridge.DatapathType != "netdev" {
					hints[i.Name] = fmt.Sprintf("; its type is %s, and bridge %s does not have datapath_type=netdev", i.Type, bridge.Name)
				}
			}
			_, err = eachInterface(n, func(name, number, problem, seen string) {
				what := fmt.Sprintf("interface %s has no OpenFlow port", name)
				switch {
				case problem != "":
					what = fmt.Sprintf("interface %s could not be added: %s%s", name, problem, hints[name])
				case number != "-1":
					return
				}
				found(rule.Finding{What: what, Evidence: []string{seen}, Next: []rule.Next{rule.OnTheNode("ovs-vsctl list Interface", name), rule.OnTheNode("ip link show", name)}})
			})
			return err
		},
	}
}

// eachInterface calls look with the name of each interface of a node, its number, "-1" for none, its error, and where these were read:
// in the database, or else in what ovs-vsctl list printed, or else in ovs-vsctl show, which has no numbers. whole is false if others may exist.
func eachInterface(n *rule.Node, look func(name, number, problem, seen string)) (whole bool, err error) {
	if n.OVS != nil {
		return true, n.OVS.Each("Interface", func(row ovsdb.Row) {
			number := ""
			if ofport, known := row.Int("ofport"); known && ofport < 0 {
				number = "-1"
			}
			look(row.String("name"), number, row.String("error"), "Interface "+row.String("name")+" in conf.db: ofport, error")
		}, "name", "ofport", "error")
	}
	printed, whole, err := n.Printed("Interface", "name", "ofport", "error")
	for _, row := range printed {
		look(row.Column("name"), row.Column("ofport"), row.Column("error"), "ovs-vsctl list Interface: ofport, error")
	}
	if err != nil || len(printed) > 0 {
		return whole, err
	}
	shown, err := n.Shown()
	if shown == nil || err != nil {
		return false, err
	}
	for _, iface := range shown.Below("Interface") {
		look(iface.Name, "", iface.Text("error"), "ovs-vsctl show: error of "+iface.Name)
	}
	return true, nil
}
