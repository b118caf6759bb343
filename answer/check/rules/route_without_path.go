package rules

import (
	"fmt"
	"net/netip"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// routeWithoutPath finds static routes of which ovn-northd makes no logical flows: no port of the router
// has a network with the next hop, the port that the route names does not exist, or an address of the
// route is malformed.
func routeWithoutPath() rule.Rule {
	return rule.Rule{
		Name: "route-without-path", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(routers(), routerPorts(), rule.All("Logical_Router", "static_routes"), rule.All("Logical_Router_Static_Route", "_uuid", "ip_prefix", "nexthop", "output_port"))},
		Follows: "the router has no such route: packets take another one, or are dropped",
		Sources: []string{"northd/northd.c of OVN: No path for static route, Bad out port, bad 'nexthop'", "ovn-nb(5), Logical_Router_Static_Route"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			return eachOf(d, n, "Logical_Router_Static_Route", func(r *ovn.Router) []string { return r.Routes }, func(r *ovn.Router, row ovsdb.Row) {
				why := problemOfRoute(r, row)
				if why == "" {
					return
				}
				found(rule.Finding{What: fmt.Sprintf("%s of %s: %s", d.Title("Logical_Router_Static_Route", row.UUID), d.Title("Logical_Router", r.UUID), why),
					Evidence: []string{inNB("Logical_Router_Static_Route", row.UUID, "nexthop, output_port"), inNB("Logical_Router", r.Name, "ports")},
					Next:     []rule.Next{historyOf(row.UUID)}})
			}, "ip_prefix", "nexthop", "output_port")
		}),
	}
}

// problemOfRoute says why a router has no flows of a static route, "" if it has.
func problemOfRoute(r *ovn.Router, row ovsdb.Row) string {
	prefix, hop := row.String("ip_prefix"), row.String("nexthop")
	if !ovn.Prefix(prefix).IsValid() {
		return "its destination is malformed"
	}
	if hop == "discard" {
		return ""
	}
	next, ok := nextHop(hop)
	if port := row.String("output_port"); port != "" {
		switch {
		case !hasPort(r, port):
			return "the router has no port " + port
		case hop != "" && !ok:
			return "its next hop is malformed"
		}
		return ""
	}
	switch {
	case !ok:
		return "its next hop is malformed"
	case r.Reaches(next) == nil:
		return "no port of the router has a network with the next hop"
	}
	return ""
}

// nextHop reads the address of a next hop, which may have the length of an address as its prefix.
func nextHop(text string) (netip.Addr, bool) {
	prefix := ovn.Prefix(text)
	return prefix.Addr(), prefix.IsValid() && prefix.IsSingleIP()
}

func hasPort(r *ovn.Router, name string) bool {
	for _, p := range r.Ports {
		if p.Name == name {
			return true
		}
	}
	return false
}

// eachOf calls use for each row of a table that an enabled router refers to.
func eachOf(d *rule.Deployment, n *ovn.Northbound, table string, of func(*ovn.Router) []string, use func(*ovn.Router, ovsdb.Row), columns ...string) error {
	rows := map[string]ovsdb.Row{}
	if err := d.NB.Each(table, func(row ovsdb.Row) { rows[row.UUID] = row }, columns...); err != nil {
		return err
	}
	for _, r := range n.Routers {
		if r.Disabled {
			continue
		}
		for _, uuid := range of(r) {
			if row, ok := rows[uuid]; ok {
				use(r, row)
			}
		}
	}
	return nil
}
