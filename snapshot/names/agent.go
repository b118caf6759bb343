package names

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/node"
	"ovs-offline/workdir"
	"ovs-offline/workdir/netns"
)

// attachment is an interface with an iface-id, on a node of neutron's Open vSwitch agent.
type attachment struct {
	name    string
	ids     map[string]string // external_ids
	number  int               // OpenFlow
	patch   bool
	bridge  string
	tag     int            // of the port on its bridge
	network *logicalSwitch // nil for none
}

// readAgent reads the ports of a node of neutron's Open vSwitch agent. The agent writes
// their networks into the OVS database, and their addresses into the flows that protect
// against spoofing. A network has the same UUID on all nodes. The ports of routers have
// their addresses in network namespaces.
func (l *loader) readAgent(of snapshot.Member) error {
	all, integration, err := l.attachments(of)
	if err != nil {
		return err
	}
	if err := l.readProviders(of, integration); err != nil {
		return err
	}
	addresses := spoofing(of.Dir.DumpFile(integration, workdir.Flows))
	namespaces, err := netns.Read(&of.Dir.Data)
	if err != nil {
		return err
	}
	routers := l.readAgentRouters(namespaces, all, of.Name)
	guarded := filteredAddresses(namespaces)
	trunks := map[string]string{} // the parents of trunks by the trunks' bridges
	byID, order := map[string][]attachment{}, []string(nil)
	for _, attachment := range all {
		id := attachment.ids["iface-id"]
		if byID[id] == nil {
			order = append(order, id)
		}
		byID[id] = append(byID[id], attachment)
		if !attachment.patch && attachment.bridge != integration {
			trunks[attachment.bridge] = id
		}
	}
	for _, id := range order {
		l.addAttached(of.Name, id, byID[id], func(a attachment) []netip.Addr {
			return slices.Concat(addresses[a.number], routers[a.name], guarded[id[:min(len(id), filterPrefix)]])
		}, trunks)
	}
	return nil
}

// addAttached adds the endpoint of an iface-id. Several interfaces have the iface-id of a port of a
// trunk: the trunk has a bridge with the tap of its parent, which patch ports join to the
// integration bridge, one pair for the parent and one for each subport, whose VLAN is the tag
// of the port on the bridge of the trunk.
func (l *loader) addAttached(node, id string, same []attachment, addresses func(attachment) []netip.Addr, trunks map[string]string) {
	endpoint := Endpoint{Kind: Port, Name: id, LogicalPort: id, Chassis: node, Node: node}
	var ls *logicalSwitch
	for _, attachment := range same {
		endpoint.MAC = cmp.Or(endpoint.MAC, ovn.MAC(attachment.ids["attached-mac"]))
		endpoint.keys = append(endpoint.keys, attachment.name, attachment.ids["vm-uuid"], attachment.ids["vm-id"])
		if attachment.network != nil { // it is on the integration bridge
			endpoint.IPs, ls = addresses(attachment), attachment.network
		}
	}
	attached := func(attachment attachment) bool { return !attachment.patch }
	if !slices.ContainsFunc(same, attached) {
		for _, attachment := range same {
			if parent := trunks[attachment.bridge]; parent != "" {
				endpoint.Parent, endpoint.Tag = parent, attachment.tag
			}
		}
	}
	if ls != nil {
		endpoint.Switch = ls.name
		for _, ip := range endpoint.IPs {
			ls.hosts[ip] = endpoint.MAC
		}
		if strings.HasPrefix(same[0].name, routerInside) && endpoint.MAC != "" {
			ls.gateways = append(ls.gateways, endpoint.MAC)
			slices.SortStableFunc(ls.gateways, func(a, b string) int { return ls.addressOf(a).Compare(ls.addressOf(b)) })
		}
	}
	l.add(endpoint)
}

// addressOf returns the lowest address of the network that a MAC address belongs to. One that no address is known of
// has the last of all addresses: a router with a known address is rather the one that machines send to.
func (s *logicalSwitch) addressOf(mac string) netip.Addr {
	lowest := netip.AddrFrom16([16]byte(bytes.Repeat([]byte{0xff}, 16)))
	for ip, holder := range s.hosts {
		if holder == mac && ip.Less(lowest) {
			lowest = ip
		}
	}
	return lowest
}

// routerText describes a router by its address, if that is known, and its MAC address.
func (s *logicalSwitch) routerText(mac string) string {
	if address := s.addressOf(mac); s.hosts[address] == mac {
		return fmt.Sprintf("the router %s with the MAC address %s", address, mac)
	}
	return "the router with the MAC address " + mac
}

// attachments returns the interfaces of a node that have an iface-id, and the name of the
// integration bridge: that whose ports have networks.
func (l *loader) attachments(of snapshot.Member) (all []attachment, integration string, err error) {
	bridges, err := node.Bridges(of.OVS)
	integration = ovn.Integration
	for _, bridge := range bridges {
		for _, port := range bridge.Ports {
			network := l.agentNetwork(port.Config, of.Name)
			if network != nil {
				integration = bridge.Name
			}
			for _, iface := range port.Interfaces {
				if iface.IDs["iface-id"] != "" {
					all = append(all, attachment{name: iface.Name, ids: iface.IDs, number: iface.Number, patch: iface.Type == "patch", bridge: bridge.Name, tag: port.Tag, network: network})
				}
			}
		}
	}
	return all, integration, err
}

// routerInside begins the names of the ports of neutron's routers in tenant networks.
const routerInside = "qr-"

// agentNetwork returns the network of a port, nil for none.
func (l *loader) agentNetwork(config map[string]string, node string) *logicalSwitch {
	id := config["net_uuid"]
	if id == "" {
		return nil
	}
	ls := l.zone.switches[id]
	if ls == nil {
		ls = &logicalSwitch{name: id, hosts: map[netip.Addr]string{}, open: true}
		l.zone.switches[id] = ls
	}
	if physical := config["physical_network"]; physical != "" && physical != "None" {
		tag := 0
		if config["network_type"] == "vlan" {
			tag, _ = strconv.Atoi(config["segmentation_id"])
		}
		if len(ls.localnet) == 0 {
			ls.localnet = []localnet{{physical, tag}}
		}
		l.zone.networks[physical] = append(l.zone.networks[physical], node)
	}
	return ls
}

// spoofing returns the addresses of ports, by their numbers, from the flows of the
// integration bridge that protect against ARP and ND spoofing: table 24, or 71 with the
// agent's firewall.
func spoofing(dump string) map[int][]netip.Addr {
	found := map[int][]netip.Addr{}
	text, err := os.Open(dump)
	if err != nil {
		return found // the ports have no addresses
	}
	defer text.Close()
	want := func(line string) bool {
		return (strings.Contains(line, "arp_spa=") || strings.Contains(line, "nd_target=")) &&
			(strings.Contains(line, "table=24,") || strings.Contains(line, "table=71,"))
	}
	for flow, problem := range openflow.FlowsIn(text, want) {
		if problem != nil {
			continue
		}
		number, address := 0, ""
		for field := range openflow.Fields(flow.Text) {
			switch key, value, _ := strings.Cut(field, "="); key {
			case "in_port":
				number, _ = strconv.Atoi(value)
			case "arp_spa", "nd_target":
				address = cmp.Or(address, value)
			}
		}
		if ip, ok := ovn.ParseAddress(address); ok && number > 0 {
			found[number] = append(found[number], ip)
		}
	}
	return found
}
