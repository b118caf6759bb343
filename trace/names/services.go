package names

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb"
)

// readServices adds the VIPs of load balancers and the floating IPs.
func (l *loader) readServices(z Zone) error {
	known := map[string]int{} // endpoints by name, VIP and protocol
	if err := each(z.NB, "Load_Balancer", func(row ovsdb.Row) {
		for vip, backends := range row.Map("vips") {
			ip, port, ok := parseVIP(vip)
			if !ok {
				continue // the name of a template variable
			}
			l.zone.vips[ip] = append(l.zone.vips[ip], row.UUID)
			l.addService(known, row, vip, ip, port, backends)
		}
	}, "name", "vips", "protocol", "external_ids"); err != nil {
		return err
	}
	if err := each(z.NB, "Load_Balancer_Group", func(row ovsdb.Row) {
		l.zone.groups[row.UUID] = row.UUIDs("load_balancer")
	}, "load_balancer"); err != nil {
		return err
	}
	for _, r := range l.zone.routers {
		for _, n := range r.nat {
			if n.kind == "dnat_and_snat" || n.kind == "dnat" {
				l.addFloatingIP(r, n)
			}
		}
	}
	return nil
}

// addService adds a VIP of a load balancer. The load balancers of one service, for example
// those of each node, have the same VIPs.
func (l *loader) addService(known map[string]int, row ovsdb.Row, vip string, ip netip.Addr, port uint16, backends string) {
	protocol := ""
	if port != 0 {
		protocol = cmp.Or(row.String("protocol"), "tcp")
	}
	e := Endpoint{Kind: Service, Name: vip, IPs: []netip.Addr{ip}, Protocol: protocol, Port: port, Balancer: row.String("name")}
	if owner := serviceOf(row); owner != "" {
		e.Name = "svc/" + owner
		if port != 0 {
			e.Name += vip[strings.LastIndexByte(vip, ':'):]
		}
		e.keys = []string{"svc/" + owner, vip}
	}
	for backend := range strings.SplitSeq(backends, ",") {
		if backend = strings.TrimSpace(backend); backend != "" {
			e.Backends = append(e.Backends, backend)
		}
	}
	key := e.Name + "|" + vip + "|" + protocol
	if at, found := known[key]; found {
		same := &l.names.endpoints[at]
		same.Backends = slices.Compact(slices.Sorted(slices.Values(append(same.Backends, e.Backends...))))
		return
	}
	known[key] = len(l.names.endpoints)
	l.add(e)
}

// serviceOf returns NAMESPACE/NAME of the service of a load balancer, "" for none. Before
// ovn-kubernetes wrote it into external_ids, only the name had it: Service_NAMESPACE/NAME_TCP_...
func serviceOf(row ovsdb.Row) string {
	ids := row.Map("external_ids")
	if ids["k8s.ovn.org/kind"] == "Service" {
		return ids["k8s.ovn.org/owner"]
	}
	if rest, ok := strings.CutPrefix(row.String("name"), "Service_"); ok {
		if owner, _, found := strings.Cut(rest, "_"); found && strings.Count(owner, "/") == 1 {
			return owner
		}
	}
	return ""
}

func (l *loader) addFloatingIP(r *logicalRouter, n nat) {
	e := Endpoint{Kind: FloatingIP, Name: n.external.String(), IPs: []netip.Addr{n.external}, MAC: n.externalMAC, Switch: r.name,
		Backends: []string{n.logical}}
	if n.externalMAC != "" { // the chassis of the port answers for it
		e.Chassis = l.bound[n.port].chassis
		e.Node = l.nodes[e.Chassis]
	}
	l.add(e)
}

// hasVIP reports whether a router has a load balancer with a VIP.
func (z *zone) hasVIP(r *logicalRouter, vip netip.Addr) bool {
	owners := z.vips[vip]
	if len(owners) == 0 {
		return false
	}
	owns := func(balancer string) bool { return slices.Contains(owners, balancer) }
	return slices.ContainsFunc(r.balancers, owns) ||
		slices.ContainsFunc(r.groups, func(group string) bool { return slices.ContainsFunc(z.groups[group], owns) })
}
