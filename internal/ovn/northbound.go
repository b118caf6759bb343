// Package ovn reads the rows of OVN's databases that many ask for: the logical network, chassis, the bindings of ports, and the settings
// of ovn-controllers. It also says what users call a row.
package ovn

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
)

// Northbound is the logical network of a northbound database. Its lists, and those of a switch or router, are in the order of the
// names, because an answer must not depend on the UUIDs of rows.
type Northbound struct {
	Switches    []*Switch
	SwitchPorts []*SwitchPort
	Routers     []*Router
	Ports       map[string]*SwitchPort // by name
	RouterPorts map[string]*RouterPort // by name
	Balancers   []*Balancer
	Groups      map[string][]string // the UUIDs of the load balancers in each group, by its UUID
}

// Switch is a row of the table Logical_Switch (ovn-nb(5)).
type Switch struct {
	UUID, Name  string
	PortUUIDs   []string
	Ports       []*SwitchPort // those of PortUUIDs that there are; ReadNorthbound finds them
	Balancers   []string      // UUIDs of rows
	Groups      []string      // of load balancers; UUIDs of rows
	ACLs, QoS   []string      // UUIDs of rows
	Config, IDs map[string]string
}

// Called returns what users call the switch.
func (s *Switch) Called() string { return cmp.Or(s.IDs[NeutronNetwork], s.Name) }

// SwitchPort is a row of the table Logical_Switch_Port (ovn-nb(5)).
type SwitchPort struct {
	UUID, Name, Type string
	Switch           *Switch // ReadNorthbound finds it; nil for a row that no switch has
	Parent           string  // the logical port whose interface it shares, "" for none
	Tag              int     // the VLAN tag, 0 for none
	Addresses        []string
	Dynamic          string   // the addresses that OVN chose, "" for none
	Security         []string // the column port_security
	Up               []bool   // empty where ovn-northd has not written it
	Disabled         bool
	Options, IDs     map[string]string
	DHCP, DHCPv6     string // UUIDs of rows of DHCP_Options, "" for none
	Group            string // UUID of the row of HA_Chassis_Group, "" for none
}

// Title returns the name of the port that a user knows, with the one in OVN.
func (p *SwitchPort) Title() string { return portTitle(p.Name, p.Type, p.IDs, p.Addresses) }

// Called returns what users call the port.
func (p *SwitchPort) Called() string { return PortName(p.Name, p.Type, p.IDs, p.Addresses) }

// Assigned returns the addresses of the port, with those that OVN chose where its row leaves the choice to OVN.
func (p *SwitchPort) Assigned() (all []string) {
	for _, text := range p.Addresses {
		if slices.Contains(strings.Fields(text), "dynamic") {
			text = p.Dynamic
		}
		all = append(all, text)
	}
	return all
}

// Router is a row of the table Logical_Router (ovn-nb(5)).
type Router struct {
	UUID, Name            string
	Disabled              bool
	PortUUIDs             []string
	Ports                 []*RouterPort // those of PortUUIDs that there are; ReadNorthbound finds them
	NAT, Routes, Policies []string      // UUIDs of rows
	Balancers, Groups     []string      // UUIDs of rows
	Options, IDs          map[string]string
}

// Called returns what users call the router.
func (r *Router) Called() string { return cmp.Or(r.IDs[NeutronRouter], r.Name) }

// Chassis returns the name of the chassis that a gateway router is on, "" for a distributed router.
func (r *Router) Chassis() string { return r.Options["chassis"] }

// HasGateway reports whether the router has a chassis that translates addresses: it is a gateway
// router, or it has a distributed gateway port.
func (r *Router) HasGateway() bool {
	return r.Chassis() != "" || slices.ContainsFunc(r.Ports, func(p *RouterPort) bool { return p.Gateway() })
}

// Reaches returns a port of the router with a network that holds an address, nil for none. Every port
// has a link-local network (ovn-architecture(7)).
func (r *Router) Reaches(ip netip.Addr) *RouterPort {
	for _, p := range r.Ports {
		if slices.ContainsFunc(p.Networks, func(network netip.Prefix) bool { return network.Contains(ip) }) || ip.IsLinkLocalUnicast() {
			return p
		}
	}
	return nil
}

// RouterPort is a row of the table Logical_Router_Port (ovn-nb(5)).
type RouterPort struct {
	UUID, Name, MAC string
	Router          *Router // ReadNorthbound finds it; nil for a row that no router has
	Disabled        bool
	Addresses       []string       // the column networks
	Networks        []netip.Prefix // those of Addresses that can be read, each with the address of the port
	Peer            string
	Chassis         []string      // UUIDs of rows of Gateway_Chassis
	Group           string        // UUID of the row of HA_Chassis_Group, "" for none
	Redirect        string        // options:redirect-chassis
	Ends            []*SwitchPort // the ports of switches that name it; ReadNorthbound finds them
	IDs             map[string]string
}

// Gateway reports whether the port is a distributed gateway port (ovn-nb(5)).
func (p *RouterPort) Gateway() bool { return len(p.Chassis) > 0 || p.Group != "" || p.Redirect != "" }

// Switch returns the switch that the port is connected to, nil for none.
func (p *RouterPort) Switch() *Switch {
	for _, end := range p.Ends {
		if end.Switch != nil {
			return end.Switch
		}
	}
	return nil
}

// Balancer is a row of the table Load_Balancer (ovn-nb(5)).
type Balancer struct {
	UUID, Name, Protocol string // tcp where the row has none
	VIPs                 map[string]string
	Mappings             map[string]string // the column ip_port_mappings
	Checks               []string          // UUIDs of rows of Load_Balancer_Health_Check
	Template             bool              // VIPs and backends may be variables
	IDs                  map[string]string
}

// Service returns NAMESPACE/NAME of the service of Kubernetes that ovn-kubernetes made the load balancer
// of, "" for none.
func (b *Balancer) Service() string { return serviceOf(b.Name, b.IDs) }

// ReadNorthbound returns the logical network of a northbound database.
func ReadNorthbound(nb Database) (*Northbound, error) {
	read := &Northbound{Ports: map[string]*SwitchPort{}, RouterPorts: map[string]*RouterPort{}}
	for _, step := range []func(Database) error{read.readSwitches, read.readRouters, read.readBalancers} {
		if err := step(nb); err != nil {
			return nil, err
		}
	}
	for _, port := range read.SwitchPorts {
		if end := read.RouterPorts[port.Options["router-port"]]; end != nil && port.Type == "router" {
			end.Ends = append(end.Ends, port)
		}
	}
	return read, nil
}

func (n *Northbound) readSwitches(nb Database) error {
	ports := map[string]*SwitchPort{}
	if err := EachSwitchPort(nb, func(p *SwitchPort) {
		n.SwitchPorts = append(n.SwitchPorts, p)
		ports[p.UUID], n.Ports[p.Name] = p, p
	}); err != nil {
		return err
	}
	sortPorts := func(list []*SwitchPort) {
		slices.SortFunc(list, func(a, b *SwitchPort) int { return cmp.Compare(a.Name, b.Name) })
	}
	sortPorts(n.SwitchPorts)
	err := EachSwitch(nb, func(s *Switch) {
		for _, uuid := range s.PortUUIDs {
			if p := ports[uuid]; p != nil {
				p.Switch = s
				s.Ports = append(s.Ports, p)
			}
		}
		sortPorts(s.Ports)
		n.Switches = append(n.Switches, s)
	})
	slices.SortStableFunc(n.Switches, func(a, b *Switch) int { return cmp.Compare(a.Name, b.Name) })
	return err
}

func (n *Northbound) readRouters(nb Database) error {
	ports := map[string]*RouterPort{}
	if err := EachRouterPort(nb, func(p *RouterPort) { ports[p.UUID], n.RouterPorts[p.Name] = p, p }); err != nil {
		return err
	}
	err := EachRouter(nb, func(r *Router) {
		for _, uuid := range r.PortUUIDs {
			if p := ports[uuid]; p != nil {
				p.Router = r
				r.Ports = append(r.Ports, p)
			}
		}
		slices.SortFunc(r.Ports, func(a, b *RouterPort) int { return cmp.Compare(a.Name, b.Name) })
		n.Routers = append(n.Routers, r)
	})
	slices.SortStableFunc(n.Routers, func(a, b *Router) int { return cmp.Compare(a.Name, b.Name) })
	return err
}

func (n *Northbound) readBalancers(nb Database) (err error) {
	if err = EachBalancer(nb, func(b *Balancer) { n.Balancers = append(n.Balancers, b) }); err == nil {
		slices.SortStableFunc(n.Balancers, func(a, b *Balancer) int { return cmp.Compare(a.Name, b.Name) })
		n.Groups, err = BalancerGroups(nb)
	}
	return err
}

// EachSwitch calls use for each logical switch of a northbound database, in the order of the rows. Like the other functions for the rows
// of a table, it ends with the first row that can't be read.
func EachSwitch(nb Database, use func(*Switch)) error {
	return nb.Each("Logical_Switch", func(row ovsdb.Row) {
		use(&Switch{UUID: row.UUID, Name: row.String("name"), PortUUIDs: row.UUIDs("ports"), Balancers: row.UUIDs("load_balancer"), Groups: row.UUIDs("load_balancer_group"),
			ACLs: row.UUIDs("acls"), QoS: row.UUIDs("qos_rules"), Config: row.Map("other_config"), IDs: row.Map("external_ids")})
	}, "name", "ports", "load_balancer", "load_balancer_group", "acls", "qos_rules", "other_config", "external_ids")
}

// EachSwitchPort calls use for each port of a logical switch of a northbound database, in the order of the rows.
func EachSwitchPort(nb Database, use func(*SwitchPort)) error {
	return nb.Each("Logical_Switch_Port", func(row ovsdb.Row) {
		p := &SwitchPort{UUID: row.UUID, Name: row.String("name"), Type: row.String("type"), Parent: row.String("parent_name"), Addresses: row.Strings("addresses"),
			Dynamic: row.String("dynamic_addresses"), Security: row.Strings("port_security"), Up: row.Bools("up"), Disabled: slices.Contains(row.Bools("enabled"), false),
			Options: row.Map("options"), IDs: row.Map("external_ids"), DHCP: first(row.UUIDs("dhcpv4_options")), DHCPv6: first(row.UUIDs("dhcpv6_options")),
			Group: first(row.UUIDs("ha_chassis_group"))}
		p.Tag, _ = row.Int("tag")
		use(p)
	}, "name", "type", "parent_name", "tag", "addresses", "dynamic_addresses", "port_security", "up", "enabled", "options", "external_ids", "dhcpv4_options", "dhcpv6_options", "ha_chassis_group")
}

// EachRouter calls use for each logical router of a northbound database, in the order of the rows.
func EachRouter(nb Database, use func(*Router)) error {
	return nb.Each("Logical_Router", func(row ovsdb.Row) {
		use(&Router{UUID: row.UUID, Name: row.String("name"), Disabled: slices.Contains(row.Bools("enabled"), false), PortUUIDs: row.UUIDs("ports"), NAT: row.UUIDs("nat"),
			Routes: row.UUIDs("static_routes"), Policies: row.UUIDs("policies"), Balancers: row.UUIDs("load_balancer"), Groups: row.UUIDs("load_balancer_group"),
			Options: row.Map("options"), IDs: row.Map("external_ids")})
	}, "name", "enabled", "ports", "nat", "static_routes", "policies", "load_balancer", "load_balancer_group", "options", "external_ids")
}

// EachRouterPort calls use for each port of a logical router of a northbound database, in the order of the rows.
func EachRouterPort(nb Database, use func(*RouterPort)) error {
	return nb.Each("Logical_Router_Port", func(row ovsdb.Row) {
		addresses := row.Strings("networks")
		use(&RouterPort{UUID: row.UUID, Name: row.String("name"), MAC: row.String("mac"), Disabled: slices.Contains(row.Bools("enabled"), false), Addresses: addresses,
			Networks: Networks(addresses), Peer: row.String("peer"), Chassis: row.UUIDs("gateway_chassis"), Group: first(row.UUIDs("ha_chassis_group")),
			Redirect: row.Value("options", "redirect-chassis"), IDs: row.Map("external_ids")})
	}, "name", "mac", "enabled", "networks", "peer", "gateway_chassis", "ha_chassis_group", "options", "external_ids")
}

// EachBalancer calls use for each load balancer of a northbound database, in the order of the rows.
func EachBalancer(nb Database, use func(*Balancer)) error {
	return nb.Each("Load_Balancer", func(row ovsdb.Row) {
		use(&Balancer{UUID: row.UUID, Name: row.String("name"), Protocol: cmp.Or(row.String("protocol"), "tcp"), VIPs: row.Map("vips"), Mappings: row.Map("ip_port_mappings"),
			Checks: row.UUIDs("health_check"), Template: row.Value("options", "template") == "true", IDs: row.Map("external_ids")})
	}, "name", "protocol", "vips", "ip_port_mappings", "health_check", "options", "external_ids")
}

// BalancerGroups returns the UUIDs of the load balancers in each group of a northbound database, by the UUID of the group.
func BalancerGroups(nb Database) (map[string][]string, error) {
	groups := map[string][]string{}
	return groups, nb.Each("Load_Balancer_Group", func(row ovsdb.Row) { groups[row.UUID] = row.UUIDs("load_balancer") }, "load_balancer")
}

func first(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}
