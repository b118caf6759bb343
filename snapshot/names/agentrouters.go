package names

import (
	"cmp"
	"net/netip"
	"os"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/lines"
	"ovs-offline/internal/ovn"
	"ovs-offline/workdir/netns"
)

// readAgentRouters returns the addresses of the devices of neutron's routers on a node, by the names of the
// devices, and adds the routers' floating IPs. Addresses that belong to one host alone are floating IPs, and
// those of a link reach no further.
func (l *loader) readAgentRouters(namespaces []netns.Namespace, ports []attachment, node string) map[string][]netip.Addr {
	devices := map[string][]netip.Addr{}
	for _, namespace := range namespaces {
		if !isAgentRouter(namespace.Name) {
			continue
		}
		for _, link := range namespace.Links {
			for _, assigned := range link.Assigned {
				if address := assigned.Network.Addr(); !assigned.Network.IsSingleIP() && !address.IsLinkLocalUnicast() && !address.IsLoopback() {
					devices[link.Name] = append(devices[link.Name], address)
				}
			}
		}
		l.addAgentFloatingIPs(namespace, ports, node)
	}
	return devices
}

// addAgentFloatingIPs adds the floating IPs of a router. The device outside of the router answers for them, or that
// of the node for routers that are on several nodes (fg-).
func (l *loader) addAgentFloatingIPs(namespace netns.Namespace, ports []attachment, node string) {
	outside := slices.IndexFunc(ports, func(a attachment) bool {
		_, own := namespace.Link(a.name)
		return own && strings.HasPrefix(a.name, "qg-")
	})
	if outside < 0 {
		outside = slices.IndexFunc(ports, func(a attachment) bool { return strings.HasPrefix(a.name, "fg-") })
	}
	for external, logical := range floatingIPs(namespace.Filters) {
		if len(l.names.byKey[external.String()]) > 0 {
			continue
		}
		endpoint := Endpoint{Kind: FloatingIP, Name: external.String(), IPs: []netip.Addr{external}, Backends: []string{logical}, Switch: namespace.Name, Chassis: node, Node: node}
		if outside >= 0 && ports[outside].network != nil {
			endpoint.Switch, endpoint.MAC = ports[outside].network.name, ovn.MAC(ports[outside].ids["attached-mac"])
		}
		l.add(endpoint)
	}
}

// isAgentRouter reports whether a namespace is one of a router of neutron's L3 agent.
func isAgentRouter(namespace string) bool {
	return slices.ContainsFunc([]string{"qrouter-", "snat-", "fip-"}, func(prefix string) bool { return strings.HasPrefix(namespace, prefix) })
}

// floating matches the rule of a floating IP, as iptables-save prints it.
var floating = lazyregexp.New(`^-A neutron-\S+-PREROUTING -d (\S+?)(?:/32)? .*-j DNAT --to-destination (\S+)$`)

// floatingIPs returns the floating IPs in the output of iptables-save with the addresses that they stand for.
func floatingIPs(path string) map[netip.Addr]string {
	found := map[netip.Addr]string{}
	eachMatch(path, floating, func(match []string) {
		if external, err := netip.ParseAddr(match[1]); err == nil {
			found[external] = match[2]
		}
	})
	return found
}

// filterPrefix is the number of bytes of a port's UUID in the names of the chains that neutron's firewall driver
// iptables_hybrid makes for the port.
const filterPrefix = 10

// guarding matches the rule by which that driver lets a port send with its own address.
var guarding = lazyregexp.New(`^-A neutron-openvswi-s(\S+) -s (\S+?)(?:/(?:32|128))? -m mac --mac-source \S+ .*-j RETURN$`)

// filteredAddresses returns the addresses of ports that the driver iptables_hybrid protects, by the beginnings of
// the ports' UUIDs.
func filteredAddresses(namespaces []netns.Namespace) map[string][]netip.Addr {
	found := map[string][]netip.Addr{}
	for _, namespace := range namespaces {
		for _, path := range []string{namespace.Filters, namespace.Filters6} {
			eachMatch(path, guarding, func(match []string) {
				if address, err := netip.ParseAddr(match[2]); err == nil && !address.IsLinkLocalUnicast() {
					found[match[1]] = append(found[match[1]], address)
				}
			})
		}
	}
	return found
}

// eachMatch calls use with what an expression finds in each line of a file. What can't be read has no matches.
func eachMatch(path string, expression *lazyregexp.Regexp, use func(match []string)) {
	file, err := os.Open(cmp.Or(path, os.DevNull))
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = lines.Read(file, func(line []byte) error {
		if match := expression.FindStringSubmatch(string(line)); match != nil {
			use(match)
		}
		return nil
	})
}
