package names

import (
	"cmp"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
)

// readAgent reads the ports of a node of neutron's Open vSwitch agent. The agent writes
// their networks into the OVS database, and their addresses into the flows that protect
// against spoofing. A network has the same UUID on all nodes.
func (l *loader) readAgent(node Node) error {
	networks := map[string]*logicalSwitch{} // by port
	if err := each(node.OVS, "Port", func(row ovsdb.Row) {
		if s := l.agentNetwork(row, node.Name); s != nil {
			networks[row.String("name")] = s
		}
	}, "name", "other_config"); err != nil {
		return err
	}
	addresses := spoofing(node.Flows)
	return each(node.OVS, "Interface", func(row ovsdb.Row) {
		ids := row.Map("external_ids")
		id, name := ids["iface-id"], row.String("name")
		if id == "" {
			return
		}
		number, _ := row.Int("ofport")
		e := Endpoint{Kind: Port, Name: id, LogicalPort: id, MAC: macOf(ids["attached-mac"]), IPs: addresses[number],
			Chassis: node.Name, Node: node.Name, keys: []string{name, ids["vm-uuid"], ids["vm-id"]}}
		if s := networks[name]; s != nil {
			e.Switch = s.name
			for _, ip := range e.IPs {
				s.hosts[ip] = e.MAC
			}
			if strings.HasPrefix(name, routerInside) && e.MAC != "" {
				s.gateways = append(s.gateways, e.MAC)
			}
		}
		l.add(e)
	}, "name", "external_ids", "ofport")
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
		s = &logicalSwitch{name: id, hosts: map[netip.Addr]string{}}
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
