package names

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/snapshot"
)

// readServices adds the VIPs of load balancers and the floating IPs.
func (l *loader) readServices(deployment *snapshot.Deployment) error {
	known := map[string]int{} // endpoints by name, VIP and protocol
	if err := ovn.EachBalancer(deployment.NB, func(b *ovn.Balancer) {
		for _, vip := range slices.Sorted(maps.Keys(b.VIPs)) {
			ip, port, ok := ovn.ParseVIP(vip)
			if !ok {
				continue // the name of a template variable
			}
			l.zone.vips[ip] = append(l.zone.vips[ip], b.UUID)
			l.addService(known, b, vip, ip, port)
		}
	}); err != nil {
		return err
	}
	l.addIdleServices(known)
	var err error
	if l.zone.groups, err = ovn.BalancerGroups(deployment.NB); err != nil {
		return err
	}
	for _, router := range l.zone.routers {
		for _, nat := range router.nat {
			if nat.kind == "dnat_and_snat" || nat.kind == "dnat" {
				l.addFloatingIP(router, nat)
			}
		}
	}
	return nil
}

// addService adds a VIP of a load balancer. A service may have several load balancers with the same
// VIPs, for example one for each node.
func (l *loader) addService(known map[string]int, b *ovn.Balancer, vip string, ip netip.Addr, port uint16) {
	protocol := ""
	if port != 0 {
		protocol = b.Protocol
	}
	endpoint := Endpoint{Kind: Service, Name: vip, IPs: []netip.Addr{ip}, Protocol: protocol, Port: port, Balancer: b.Name}
	if owner := cmp.Or(b.Service(), l.services.Of(protocol, vip)); owner != "" {
		endpoint.Name = "svc/" + owner
		if port != 0 {
			endpoint.Name += vip[strings.LastIndexByte(vip, ':'):]
		}
		endpoint.keys = []string{"svc/" + owner, vip}
	}
	for backend := range strings.SplitSeq(b.VIPs[vip], ",") {
		if backend = strings.TrimSpace(backend); backend != "" {
			endpoint.Backends = append(endpoint.Backends, backend)
		}
	}
	key := serviceKey(endpoint.Name, vip, protocol)
	if at, found := known[key]; found {
		same := &l.names.endpoints[at]
		same.Backends = slices.Compact(slices.Sorted(slices.Values(append(same.Backends, endpoint.Backends...))))
		return
	}
	known[key] = len(l.names.endpoints)
	l.add(endpoint)
}

// addIdleServices adds the services that no load balancer has: kube-ovn makes none for a service
// without endpoints.
func (l *loader) addIdleServices(known map[string]int) {
	for vip, of := range l.services.All {
		name := fmt.Sprintf("svc/%s:%d", of.Name, vip.Port())
		if _, found := known[serviceKey(name, vip.String(), of.Protocol)]; !found {
			l.add(Endpoint{Kind: Service, Name: name, IPs: []netip.Addr{vip.Addr()}, Protocol: of.Protocol, Port: vip.Port(), keys: []string{"svc/" + of.Name, vip.String()}})
		}
	}
}

// serviceKey identifies a VIP of a service.
func serviceKey(name, vip, protocol string) string { return name + "|" + vip + "|" + protocol }

// apiService is the service of the API server, which every cluster has, with the first address of the
// range from which Kubernetes takes the addresses of services.
const apiService = "svc/default/kubernetes"

// joinAddresses returns one endpoint for each service that a user named. The endpoint has the IPv4 and the
// IPv6 address that Kubernetes gave to the service. A user who means another address, such as that of a
// load balancer outside, types the address.
func (n *Names) joinAddresses(found []Endpoint, name string) []Endpoint {
	if _, _, isAddress := ovn.ParseVIP(name); isAddress {
		return found
	}
	var all []Endpoint
	for _, e := range found {
		at := slices.IndexFunc(all, func(other Endpoint) bool {
			return e.Kind == Service && other.Kind == Service && e.zone == other.zone && e.Name == other.Name && e.Protocol == other.Protocol
		})
		if at < 0 {
			e.IPs = slices.Clone(e.IPs)
			all = append(all, e)
			continue
		}
		joined := &all[at]
		joined.IPs = n.joinAddress(joined.IPs, e)
		slices.SortFunc(joined.IPs, netip.Addr.Compare) // IPv4 first
		joined.Backends = slices.Compact(slices.Sorted(slices.Values(slices.Concat(joined.Backends, e.Backends))))
	}
	return all
}

// joinAddress adds the address of a service. Of two addresses of one family, it keeps the one that is
// nearer to the range from which Kubernetes takes addresses.
func (n *Names) joinAddress(ips []netip.Addr, e Endpoint) []netip.Addr {
	for _, ip := range e.IPs {
		at := slices.IndexFunc(ips, func(other netip.Addr) bool { return familyOf(other) == familyOf(ip) })
		switch {
		case at < 0:
			ips = append(ips, ip)
		case n.nearness(ip, e.zone) > n.nearness(ips[at], e.zone):
			ips[at] = ip
		}
	}
	return ips
}

// nearness returns how many leading bits an address has in common with the service of the API server.
func (n *Names) nearness(ip netip.Addr, zone int) (bits int) {
	for _, at := range n.byKey[apiService] {
		if e := n.endpoints[at]; e.Kind == Service && e.zone == zone && familyOf(e.IPs[0]) == familyOf(ip) {
			bits = max(bits, commonBits(ip, e.IPs[0]))
		}
	}
	return bits
}

// commonBits returns how many leading bits two addresses have in common.
func commonBits(a, b netip.Addr) int {
	for bits := a.BitLen(); bits > 0; bits-- {
		if netip.PrefixFrom(a, bits).Contains(b) {
			return bits
		}
	}
	return 0
}

func (l *loader) addFloatingIP(router *logicalRouter, n nat) {
	endpoint := Endpoint{Kind: FloatingIP, Name: n.external.String(), IPs: []netip.Addr{n.external}, MAC: n.externalMAC, Switch: router.name,
		Backends: []string{n.logical}}
	if n.externalMAC != "" { // the chassis of the port answers for it
		endpoint.Chassis = l.bound[n.port].chassis
		endpoint.Node = l.nodes[endpoint.Chassis]
	}
	l.add(endpoint)
}

// hasVIP reports whether a router has a load balancer with a VIP.
func (z *zone) hasVIP(router *logicalRouter, vip netip.Addr) bool {
	owners := z.vips[vip]
	if len(owners) == 0 {
		return false
	}
	owns := func(balancer string) bool { return slices.Contains(owners, balancer) }
	return slices.ContainsFunc(router.balancers, owns) ||
		slices.ContainsFunc(router.groups, func(group string) bool { return slices.ContainsFunc(z.groups[group], owns) })
}
