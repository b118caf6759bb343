package rule

import (
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovn/rules"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
)

// Northbound is what rules need of the northbound database: the logical network. It is read once.
type Northbound struct {
	Switches    []*Switch
	Routers     []*Router
	Ports       map[string]*SwitchPort // by name
	RouterPorts map[string]*RouterPort // by name
	Balancers   []*Balancer
	Groups      map[string][]string // the UUIDs of the load balancers in each group, by its UUID
}

// Switch is a row of the table Logical_Switch.
type Switch struct {
	UUID, Name string
	Ports      []*SwitchPort
	Balancers  []string // UUIDs of rows
	Groups     []string // of load balancers; UUIDs of rows
	ACLs, QoS  []string // UUIDs of rows
}

// SwitchPort is a row of the table Logical_Switch_Port.
type SwitchPort struct {
	UUID, Name, Type string
	Switch           *Switch // nil for a row that no switch has
	Addresses        []string
	Security         []string // the column port_security
	Disabled         bool
	Options, IDs     map[string]string
	DHCP             string // UUID of the row of DHCP_Options for IPv4, "" for none
}

// Title returns the name of the port that a user knows, with the one in OVN.
func (p *SwitchPort) Title() string { return ovn.PortTitle(p.Name, p.IDs) }

// Router is a row of the table Logical_Router.
type Router struct {
	UUID, Name            string
	Disabled              bool
	Ports                 []*RouterPort
	NAT, Routes, Policies []string // UUIDs of rows
	Balancers, Groups     []string // UUIDs of rows
	Options               map[string]string
}

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

// RouterPort is a row of the table Logical_Router_Port.
type RouterPort struct {
	UUID, Name, MAC string
	Router          *Router        // nil for a row that no router has
	Networks        []netip.Prefix // each with the address of the port
	Peer            string
	Chassis         []string      // UUIDs of rows of Gateway_Chassis
	Group           string        // UUID of the row of HA_Chassis_Group, "" for none
	Redirect        string        // options:redirect-chassis
	Ends            []*SwitchPort // the ports of switches that name it
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

// Balancer is a row of the table Load_Balancer.
type Balancer struct {
	UUID, Name, Protocol string
	VIPs                 map[string]string
	Mappings             map[string]string // the column ip_port_mappings
	Checks               []string          // UUIDs of rows of Load_Balancer_Health_Check
	Template             bool              // VIPs and backends may be variables
	IDs                  map[string]string
}

// Service returns NAMESPACE/NAME of the service of Kubernetes that ovn-kubernetes made the load balancer
// of, "" for none.
func (b *Balancer) Service() string {
	if b.IDs["k8s.ovn.org/kind"] == "Service" {
		return b.IDs["k8s.ovn.org/owner"]
	}
	return ""
}

// Northbound returns the logical network, an empty one where the northbound database was not
// collected.
func (d *Deployment) Northbound() (*Northbound, error) { return d.northbound() }

// Title returns what users call a northbound row.
func (d *Deployment) Title(table, uuid string) string {
	if d.NB != nil {
		if row, ok, err := d.NB.Row(table, uuid); ok && err == nil {
			return d.words().Name(table, row)
		}
	}
	return rules.Kind(table) + " " + uuid
}

func readNorthbound(nb *file.Index) (*Northbound, error) {
	read := &Northbound{Ports: map[string]*SwitchPort{}, RouterPorts: map[string]*RouterPort{}, Groups: map[string][]string{}}
	for _, step := range []func(*file.Index) error{read.readSwitches, read.readRouters, read.readBalancers} {
		if err := step(nb); err != nil {
			return nil, err
		}
	}
	for _, port := range read.Ports {
		if end := read.RouterPorts[port.Options["router-port"]]; end != nil && port.Type == "router" {
			end.Ends = append(end.Ends, port)
		}
	}
	return read, nil
}

func (n *Northbound) readSwitches(nb *file.Index) error {
	ports := map[string]*SwitchPort{}
	if err := nb.Each("Logical_Switch_Port", func(row ovsdb.Row) {
		p := &SwitchPort{UUID: row.UUID, Name: row.String("name"), Type: row.String("type"), Security: row.Strings("port_security"),
			Options: row.Map("options"), IDs: row.Map("external_ids"), DHCP: first(row.UUIDs("dhcpv4_options"))}
		p.Disabled = slices.Contains(row.Bools("enabled"), false)
		for _, text := range row.Strings("addresses") {
			if slices.Contains(strings.Fields(text), "dynamic") {
				text = row.String("dynamic_addresses")
			}
			p.Addresses = append(p.Addresses, text)
		}
		ports[p.UUID], n.Ports[p.Name] = p, p
	}, "name", "type", "addresses", "dynamic_addresses", "port_security", "enabled", "options", "external_ids", "dhcpv4_options"); err != nil {
		return err
	}
	return nb.Each("Logical_Switch", func(row ovsdb.Row) {
		s := &Switch{UUID: row.UUID, Name: row.String("name"), Balancers: row.UUIDs("load_balancer"), Groups: row.UUIDs("load_balancer_group"),
			ACLs: row.UUIDs("acls"), QoS: row.UUIDs("qos_rules")}
		for _, uuid := range row.UUIDs("ports") {
			if p := ports[uuid]; p != nil {
				p.Switch = s
				s.Ports = append(s.Ports, p)
			}
		}
		n.Switches = append(n.Switches, s)
	}, "name", "ports", "load_balancer", "load_balancer_group", "acls", "qos_rules")
}

func (n *Northbound) readRouters(nb *file.Index) error {
	ports := map[string]*RouterPort{}
	if err := nb.Each("Logical_Router_Port", func(row ovsdb.Row) {
		p := &RouterPort{UUID: row.UUID, Name: row.String("name"), MAC: ovn.MAC(row.String("mac")), Networks: ovn.Networks(row.Strings("networks")), Peer: row.String("peer"),
			Chassis: row.UUIDs("gateway_chassis"), Group: first(row.UUIDs("ha_chassis_group")), Redirect: row.Value("options", "redirect-chassis"), IDs: row.Map("external_ids")}
		ports[p.UUID], n.RouterPorts[p.Name] = p, p
	}, "name", "mac", "networks", "peer", "gateway_chassis", "ha_chassis_group", "options", "external_ids"); err != nil {
		return err
	}
	return nb.Each("Logical_Router", func(row ovsdb.Row) {
		r := &Router{UUID: row.UUID, Name: row.String("name"), Disabled: slices.Contains(row.Bools("enabled"), false), NAT: row.UUIDs("nat"), Routes: row.UUIDs("static_routes"),
			Policies: row.UUIDs("policies"), Balancers: row.UUIDs("load_balancer"), Groups: row.UUIDs("load_balancer_group"), Options: row.Map("options")}
		for _, uuid := range row.UUIDs("ports") {
			if p := ports[uuid]; p != nil {
				p.Router = r
				r.Ports = append(r.Ports, p)
			}
		}
		n.Routers = append(n.Routers, r)
	}, "name", "enabled", "ports", "nat", "static_routes", "policies", "load_balancer", "load_balancer_group", "options")
}

func (n *Northbound) readBalancers(nb *file.Index) error {
	if err := nb.Each("Load_Balancer", func(row ovsdb.Row) {
		b := &Balancer{UUID: row.UUID, Name: row.String("name"), Protocol: row.String("protocol"), VIPs: row.Map("vips"), Mappings: row.Map("ip_port_mappings"),
			Checks: row.UUIDs("health_check"), Template: row.Value("options", "template") == "true", IDs: row.Map("external_ids")}
		if b.Protocol == "" {
			b.Protocol = "tcp" // ovn-nb(5)
		}
		n.Balancers = append(n.Balancers, b)
	}, "name", "protocol", "vips", "ip_port_mappings", "health_check", "options", "external_ids"); err != nil {
		return err
	}
	return nb.Each("Load_Balancer_Group", func(row ovsdb.Row) {
		n.Groups[row.UUID] = row.UUIDs("load_balancer")
	}, "load_balancer")
}

func first(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}
