package rules

import (
	"cmp"
	"net/netip"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// holder is a port of a switch with the addresses that OVN delivers to it.
type holder struct {
	port *ovn.SwitchPort
	end  *ovn.RouterPort // of a port of type router, if it exists
	macs []string
	ips  []netip.Addr
}

// holdersOf returns the ports of a switch with their addresses, in the order of their names. It
// leaves out disabled ports: ovn-kubernetes disables the port of a virtual machine on the node that
// it is not on. Virtual ports have the address of the port that has claimed them.
func holdersOf(n *ovn.Northbound, s *ovn.Switch) []holder {
	var all []holder
	for _, p := range s.Ports {
		if p.Disabled || p.Type == "virtual" {
			continue
		}
		all = append(all, holderOf(n, p))
	}
	slices.SortFunc(all, func(a, b holder) int { return cmp.Compare(a.port.Name, b.port.Name) })
	return all
}

// holders finds what holds the addresses of each switch, once for each switch.
type holders struct {
	northbound *ovn.Northbound
	known      map[*ovn.Switch][]holder
}

func (h holders) of(s *ovn.Switch) []holder {
	list, ok := h.known[s]
	if !ok {
		list = holdersOf(h.northbound, s)
		h.known[s] = list
	}
	return list
}

func holderOf(n *ovn.Northbound, p *ovn.SwitchPort) holder {
	h := holder{port: p}
	if p.Type == "router" {
		h.end = n.RouterPorts[p.Options["router-port"]]
	}
	for _, text := range p.Assigned() {
		mac, ips := ovn.ParseAddresses(text)
		if text == "router" && h.end != nil {
			mac = ovn.MAC(h.end.MAC)
		}
		if mac != "" && !slices.Contains(h.macs, mac) {
			h.macs = append(h.macs, mac)
		}
		h.ips = append(h.ips, ips...)
	}
	if h.end != nil {
		for _, network := range h.end.Networks {
			h.ips = append(h.ips, network.Addr())
		}
	}
	slices.SortFunc(h.ips, netip.Addr.Compare)
	h.ips = slices.Compact(h.ips)
	return h
}

// title returns the name of the port that a user knows; that of the router for a port of one.
func (h holder) title(d *rule.Deployment) string {
	if h.end != nil && h.end.Router != nil {
		return d.Title("Logical_Router", h.end.Router.UUID) + " (port " + h.port.Name + ")"
	}
	return h.port.Title()
}

// apart reports whether two ports may hold the same address: the rows of other zones' ports name
// what is there once for each zone.
func apart(a, b holder) bool {
	elsewhere := func(h holder) bool { return h.port.Type == "remote" }
	return elsewhere(a) && (elsewhere(b) || b.port.Type == "router") || elsewhere(b) && a.port.Type == "router"
}

// twice calls use for each key that two ports of a list have.
func twice[K comparable](all []holder, keys func(holder) []K, use func(key K, a, b holder)) {
	first := map[K]holder{}
	for _, h := range all {
		for _, key := range keys(h) {
			if other, taken := first[key]; !taken {
				first[key] = h
			} else if !apart(other, h) {
				use(key, other, h)
			}
		}
	}
}
