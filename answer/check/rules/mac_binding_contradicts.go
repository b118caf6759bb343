package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// macBindingContradicts finds MAC bindings, learned or static, that give an address of a port of the
// router's network another MAC address than the port has. Where OVN knows the port, it delivers to the
// port all the same: then something else has answered for the address. For a floating IP, and where
// options:dynamic_neigh_routers is set for the address of another router, the router uses the binding.
// Link-local addresses do not count: the routers of several nodes may have the same ones. Addresses that
// port security allows to several ports do not count either, nor do the MAC addresses of chassis, which
// replace the routers' own.
func macBindingContradicts() rule.Rule {
	return rule.Rule{
		Name: "mac-binding-contradicts", Severity: rule.Warning,
		Needs:   []rule.Data{rule.NB(networkTables(append(translations(), rule.All("Static_MAC_Binding", "logical_port", "ip", "mac"))...)...), rule.SB(chassis(), rule.All("MAC_Binding", "logical_port", "ip", "mac"))},
		Follows: "something else has answered ARP or ND for the address, and packets may go to it",
		Sources: []string{"ovn-sb(5), MAC_Binding", "ovn-nb(5), Static_MAC_Binding", "ovn-northd(8), table lr_in_arp_resolve"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			known, err := readNeighbours(d, n)
			if err != nil {
				return err
			}
			judge := func(row ovsdb.Row, kind, evidence string) {
				mac, ip, port := ovn.MAC(row.String("mac")), row.String("ip"), row.String("logical_port")
				right, ok := known.find(port, ip)
				if !ok || mac == "" || slices.Contains(right.macs, mac) || known.chassis[mac] {
					return
				}
				f := rule.Finding{What: fmt.Sprintf("the %s of %s on router port %s has MAC address %s, but %s has %s", kind, ip, port, mac, right.title, strings.Join(right.macs, ", ")),
					Evidence: []string{evidence}, Next: []rule.Next{historyOfBound(row.UUID)}}
				if kind != learned {
					f.Next = []rule.Next{historyOf(row.UUID)}
				}
				if right.used {
					f.Severity, f.Follows = rule.Error, "the router sends packets to the wrong MAC address, until the binding is removed"
				}
				found(f)
			}
			if err := d.SB.Each("MAC_Binding", func(row ovsdb.Row) {
				judge(row, learned, inSB("MAC_Binding", row.UUID, "ip, mac"))
			}, "logical_port", "ip", "mac"); err != nil {
				return err
			}
			return d.NB.Each("Static_MAC_Binding", func(row ovsdb.Row) {
				judge(row, "static MAC binding", inNB("Static_MAC_Binding", row.UUID, "ip, mac"))
			}, "logical_port", "ip", "mac")
		}),
	}
}

const learned = "learned MAC binding"

// neighbour is who has an address in a network.
type neighbour struct {
	macs  []string
	title string
	port  string // of a router, "" for none
	used  bool   // a router that has a MAC binding of the address uses it
}

// neighbours are the addresses that the ports of each switch have.
type neighbours struct {
	northbound *ovn.Northbound
	bySwitch   map[*ovn.Switch]map[netip.Addr]neighbour
	floating   map[netip.Addr]bool // the external addresses of NAT rules
	chassis    map[string]bool     // the MAC addresses of chassis
}

func readNeighbours(d *rule.Deployment, n *ovn.Northbound) (*neighbours, error) {
	k := &neighbours{northbound: n, bySwitch: map[*ovn.Switch]map[netip.Addr]neighbour{}, floating: map[netip.Addr]bool{}, chassis: map[string]bool{}}
	chassis, err := d.Chassis()
	if err != nil {
		return nil, err
	}
	for _, c := range chassis {
		for mapping := range strings.SplitSeq(c.Config["ovn-chassis-mac-mappings"], ",") {
			_, mac, _ := strings.Cut(mapping, ":")
			k.chassis[ovn.MAC(strings.TrimSpace(mac))] = true
		}
	}
	for _, s := range n.Switches {
		k.bySwitch[s] = k.ofSwitch(d, s)
	}
	all, err := natOf(d, n)
	for _, t := range all {
		end := t.router.Reaches(t.external)
		if !t.incoming() || t.conditional || end == nil || end.Switch() == nil {
			continue
		}
		mac := ovn.MAC(t.externalMAC)
		if mac == "" {
			mac = ovn.MAC(end.MAC)
		}
		k.bySwitch[end.Switch()][t.external] = neighbour{[]string{mac}, t.of(d), end.Name, true}
		k.floating[t.external] = true
	}
	return k, err
}

// ofSwitch returns who has the addresses of a switch. An address that the port security of another port
// allows is left out.
func (k *neighbours) ofSwitch(d *rule.Deployment, s *ovn.Switch) map[netip.Addr]neighbour {
	known := map[netip.Addr]neighbour{}
	for _, h := range holdersOf(k.northbound, s) {
		for _, ip := range h.ips {
			// ovn-northd writes a flow for each port, except that it leaves the ports of other
			// routers to MAC bindings where options:dynamic_neigh_routers is set.
			known[ip] = neighbour{macs: h.macs, title: h.title(d)}
			if h.end != nil {
				known[ip] = neighbour{h.macs, h.title(d), h.end.Name, h.end.Router != nil}
			}
		}
	}
	for _, p := range s.Ports {
		if p.Type == "virtual" {
			_, ips := ovn.ParseAddresses(strings.Join(p.Assigned(), " "))
			for _, ip := range ips {
				delete(known, ip)
			}
		}
		own := holderOf(k.northbound, p)
		for _, element := range p.Security {
			for _, prefix := range ovn.AllowedBy(element) {
				if prefix.IsSingleIP() && !slices.Contains(own.ips, prefix.Addr()) {
					delete(known, prefix.Addr())
				}
			}
		}
	}
	return known
}

// find returns who has an address in the network of a router port.
func (k *neighbours) find(port, ip string) (neighbour, bool) {
	end := k.northbound.RouterPorts[port]
	address, ok := ovn.ParseAddress(ip)
	if end == nil || !ok || end.Switch() == nil {
		return neighbour{}, false
	}
	found, ok := k.bySwitch[end.Switch()][address]
	if found.port == port || address.IsLinkLocalUnicast() {
		return neighbour{}, false
	}
	if found.used && !k.floating[address] && (end.Router == nil || end.Router.Options["dynamic_neigh_routers"] != "true") {
		found.used = false
	}
	return found, ok && len(found.macs) > 0
}
