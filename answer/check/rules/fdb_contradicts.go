package rules

import (
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// fdbContradicts finds MAC addresses of ports of a switch that were learned at another port, which has no
// addresses of its own. Ports to physical networks do not count: there, the packets of other nodes come
// back.
func fdbContradicts() rule.Rule {
	return rule.Rule{
		Name: "fdb-contradicts", Severity: rule.Warning,
		Needs:   []rule.Data{rule.NB(networkTables()...), rule.SB(datapaths(), bindings(), rule.All("FDB", "dp_key", "port_key", "mac"))},
		Follows: "something behind the other port sends with the MAC address of this one",
		Sources: []string{"ovn-sb(5), FDB", "ovn-northd(8), table ls_in_lookup_fdb"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			if d.SB == nil {
				return nil
			}
			datapaths, err := ovn.Datapaths(d.SB)
			if err != nil {
				return err
			}
			bindings, err := d.Bindings()
			if err != nil {
				return err
			}
			ports := map[[2]int]ovn.Binding{}
			for _, b := range bindings {
				ports[[2]int{int(datapaths[b.Datapath].Key), b.Key}] = b
			}
			known := holders{n, map[*ovn.Switch][]holder{}}
			return d.SB.Each("FDB", func(row ovsdb.Row) {
				datapath, _ := row.Int("dp_key")
				key, _ := row.Int("port_key")
				mac := ovn.MAC(row.String("mac"))
				at, ok := ports[[2]int{datapath, key}]
				end := n.Ports[at.Port]
				if !ok || end == nil || end.Switch == nil || end.Type != "" {
					return
				}
				for _, h := range known.of(end.Switch) {
					if h.port != end && h.end == nil && slices.Contains(h.macs, mac) {
						found(rule.Finding{What: fmt.Sprintf("%s of %s was learned at %s", mac, h.title(d), end.Title()),
							Evidence: []string{inSB("FDB", row.UUID, "mac, port_key")}, Next: []rule.Next{historyOfBound(row.UUID)}})
					}
				}
			}, "dp_key", "port_key", "mac")
		}),
	}
}
