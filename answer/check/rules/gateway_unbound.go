package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// gatewayUnbound finds gateway ports of routers that no chassis has claimed. They are the chassisredirect
// ports that OVN derives from distributed gateway ports, and the l3gateway ports of gateway routers.
func gatewayUnbound() rule.Rule {
	return rule.Rule{
		Name: "gateway-unbound", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(gateways()...), rule.SB(bindings(), chassis())},
		Follows: "nothing passes the gateway: no SNAT, no floating IP without a MAC address of its own",
		Sources: []string{"ovn-sb(5), Port_Binding, type chassisredirect and l3gateway, chassis", "ovn-architecture(7), High Availability for Distributed Gateways"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			bindings, err := d.Bindings()
			if err != nil {
				return err
			}
			wanted, err := gatewayChassis(d, n)
			if err != nil {
				return err
			}
			chassis, err := d.Chassis()
			if err != nil {
				return err
			}
			l3 := map[string]bool{}
			for _, name := range slices.Sorted(maps.Keys(bindings)) {
				b := bindings[name]
				if b.Chassis != "" || b.Type != "chassisredirect" && b.Type != "l3gateway" {
					continue
				}
				port := strings.TrimPrefix(b.Port, "cr-")
				end := n.RouterPorts[port]
				if end == nil || end.Router == nil || b.Type == "l3gateway" && l3[end.Router.Name] {
					continue
				}
				title := d.Title("Logical_Router", end.Router.UUID)
				f := rule.Finding{What: fmt.Sprintf("no chassis has claimed the gateway port %s of %s", port, title), Evidence: []string{inSB("Port_Binding", b.Port, "chassis")},
					Next: []rule.Next{historyOfBound(b.UUID), rule.Ask("history", "sb", "--table", "Chassis")}}
				if b.Type == "l3gateway" {
					l3[end.Router.Name] = true
					f.What = fmt.Sprintf("chassis %s has not claimed the gateway %s", hostOf(chassis, end.Router.Chassis()), title)
				} else if on := wanted[port]; len(on) > 0 {
					for i, name := range on {
						on[i] = hostOf(chassis, name)
					}
					slices.Sort(on)
					f.What += ", which is for " + phrase.FirstNames(on)
				}
				found(f)
			}
			return nil
		}),
	}
}

// hostOf returns the name that users know of the chassis with a name, or that name.
func hostOf(all []ovn.Chassis, name string) string {
	for _, c := range all {
		if c.Name == name {
			return c.Title()
		}
	}
	return name
}
