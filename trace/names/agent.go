package names

import (
	"cmp"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
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
// against spoofing. A network has the same UUID on all nodes.
func (l *loader) readAgent(node Node) error {
	all, err := l.attachments(node)
	if err != nil {
		return err
	}
	addresses := spoofing(node.Flows)
	trunks := map[string]string{} // the parents of trunks by the trunks' bridges
	byID, order := map[string][]attachment{}, []string(nil)
	for _, a := range all {
		id := a.ids["iface-id"]
		if byID[id] == nil {
			order = append(order, id)
		}
		byID[id] = append(byID[id], a)
		if !a.patch && a.bridge != Integration {
			trunks[a.bridge] = id
		}
	}
	for _, id := range order {
		l.addAttached(node, id, byID[id], addresses, trunks)
	}
	return nil
}

// addAttached adds the endpoint of an iface-id. Several interfaces have that of a port of a
// trunk: the trunk has a bridge with the tap of its parent, which patch ports join to the
// integration bridge, one pair for the parent and one for each subport, whose VLAN is the tag
// of the port on the bridge of the trunk.
func (l *loader) addAttached(node Node, id string, same []attachment, addresses map[int][]netip.Addr, trunks map[string]string) {
	e := Endpoint{Kind: Port, Name: id, LogicalPort: id, Chassis: node.Name, Node: node.Name}
	var s *logicalSwitch
	for _, a := range same {
		e.MAC = cmp.Or(e.MAC, macOf(a.ids["attached-mac"]))
		e.keys = append(e.keys, a.name, a.ids["vm-uuid"], a.ids["vm-id"])
		if a.bridge == Integration {
			e.IPs, s = addresses[a.number], cmp.Or(a.network, s)
		}
	}
	attached := func(a attachment) bool { return !a.patch }
	if !slices.ContainsFunc(same, attached) {
		for _, a := range same {
			if parent := trunks[a.bridge]; parent != "" {
				e.Parent, e.Tag = parent, a.tag
			}
		}
	}
	if s != nil {
		e.Switch = s.name
		for _, ip := range e.IPs {
			s.hosts[ip] = e.MAC
		}
		if strings.HasPrefix(same[0].name, routerInside) && e.MAC != "" {
			s.gateways = append(s.gateways, e.MAC)
		}
	}
	l.add(e)
}

// attachments returns the interfaces of a node that have an iface-id.
func (l *loader) attachments(node Node) ([]attachment, error) {
	bridges := map[string]string{} // by the UUIDs of ports
	if err := each(node.OVS, "Bridge", func(row ovsdb.Row) {
		for _, id := range row.UUIDs("ports") {
			bridges[id] = row.String("name")
		}
	}, "name", "ports"); err != nil {
		return nil, err
	}
	ports := map[string]attachment{} // what their ports have, by the UUIDs of interfaces
	if err := each(node.OVS, "Port", func(row ovsdb.Row) {
		a := attachment{bridge: bridges[row.UUID], network: l.agentNetwork(row, node.Name)}
		a.tag, _ = row.Int("tag")
		for _, id := range row.UUIDs("interfaces") {
			ports[id] = a
		}
	}, "tag", "interfaces", "other_config"); err != nil {
		return nil, err
	}
	var all []attachment
	return all, each(node.OVS, "Interface", func(row ovsdb.Row) {
		a := ports[row.UUID]
		a.name, a.ids, a.patch = row.String("name"), row.Map("external_ids"), row.String("type") == "patch"
		a.number, _ = row.Int("ofport")
		if a.ids["iface-id"] != "" {
			all = append(all, a)
		}
	}, "name", "type", "external_ids", "ofport")
}

// routerInside begins the names of the ports of neutron's routers in tenant networks.
const routerInside = "qr-"

// agentNetwork returns the network of a port, nil for none.
func (l *loader) agentNetwork(port ovsdb.Row, node string) *logicalSwitch {
	config := port.Map("other_config")
	id := config["net_uuid"]
	if id == "" {
		return nil
	}
	s := l.zone.switches[id]
	if s == nil {
		s = &logicalSwitch{name: id, hosts: map[netip.Addr]string{}, open: true}
		l.zone.switches[id] = s
	}
	if physical := config["physical_network"]; physical != "" && physical != "None" {
		tag := 0
		if config["network_type"] == "vlan" {
			tag, _ = strconv.Atoi(config["segmentation_id"])
		}
		if len(s.localnet) == 0 {
			s.localnet = []localnet{{physical, tag}}
		}
		l.zone.networks[physical] = append(l.zone.networks[physical], node)
	}
	return s
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
		match, _, _ := strings.Cut(flow.Text, " actions=")
		for field := range strings.SplitSeq(match, ",") {
			switch key, value, _ := strings.Cut(field, "="); key {
			case "in_port":
				number, _ = strconv.Atoi(value)
			case "arp_spa", "nd_target":
				address = cmp.Or(address, value)
			}
		}
		if ip, ok := parseAddress(address); ok && number > 0 {
			found[number] = append(found[number], ip)
		}
	}
	return found
}
