package names

import (
	"net/netip"
	"os"
	"regexp"
	"strings"

	"ovs-offline/internal/lines"
	"ovs-offline/internal/netns"
)

// readAgentRouters returns the addresses of the devices of neutron's routers on a node, by the names of the
// devices, and adds the routers' floating IPs. Addresses that belong to one host alone are floating IPs, and
// those of a link reach no further.
func (l *loader) readAgentRouters(namespaces []netns.Namespace, node string) map[string][]netip.Addr {
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
		for external, logical := range floatingIPs(namespace.Filters) {
			if len(l.names.byKey[external.String()]) == 0 {
				l.add(Endpoint{Kind: FloatingIP, Name: external.String(), IPs: []netip.Addr{external}, Backends: []string{logical}, Switch: namespace.Name, Chassis: node, Node: node})
			}
		}
	}
	return devices
}

// isAgentRouter reports whether a namespace is one of a router of neutron's L3 agent.
func isAgentRouter(namespace string) bool {
	for _, prefix := range []string{"qrouter-", "snat-", "fip-"} {
		if strings.HasPrefix(namespace, prefix) {
			return true
		}
	}
	return false
}

// floating matches the rule of a floating IP, as iptables-save prints it.
var floating = regexp.MustCompile(`^-A neutron-\S+-PREROUTING -d (\S+?)(?:/32)? .*-j DNAT --to-destination (\S+)$`)

// floatingIPs returns the floating IPs in the output of iptables-save with the addresses that they stand for.
func floatingIPs(path string) map[netip.Addr]string {
	found := map[netip.Addr]string{}
	file, err := os.Open(path)
	if err != nil {
		return found // there are no rules
	}
	defer file.Close()
	_, _ = lines.Read(file, func(line []byte) error { // what can't be read has no names
		if match := floating.FindSubmatch(line); match != nil {
			if external, err := netip.ParseAddr(string(match[1])); err == nil {
				found[external] = string(match[2])
			}
		}
		return nil
	})
	return found
}
