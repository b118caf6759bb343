package names

import (
	"cmp"
	"context"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
)

// loader reads the tables of one zone.
type loader struct {
	names    *Names
	zone     *zone
	chassis  map[string]string         // host names of chassis by the UUIDs of their rows
	nodes    map[string]string         // nodes of the set by system-id and host name
	bound    map[string]binding        // by logical port
	ifaces   map[string]string         // nodes by iface-id
	switches map[string]*logicalSwitch // by the UUIDs of their ports
	routers  map[string]*routerPort    // by name
	bySwitch map[string]*logicalSwitch // by UUID
}

// binding is where a port is bound.
type binding struct{ chassis, parent string }

func (l *loader) load(ctx context.Context, z Zone) error {
	l.chassis, l.nodes, l.bound, l.ifaces = map[string]string{}, map[string]string{}, map[string]binding{}, map[string]string{}
	l.switches, l.routers, l.bySwitch = map[string]*logicalSwitch{}, map[string]*routerPort{}, map[string]*logicalSwitch{}
	steps := []func(Zone) error{l.readNodes, l.readBindings, l.readRouters, l.readSwitches, l.readPorts, l.readServices, l.readDNS}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(z); err != nil {
			return err
		}
	}
	return nil
}

// each calls use with the rows of a table. A nil database has none.
func each(db *file.Index, table string, use func(ovsdb.Row), columns ...string) error {
	if db == nil {
		return nil
	}
	for row, err := range db.Rows(table, columns...) {
		if err != nil {
			return err
		}
		use(row)
	}
	return nil
}

// readNodes reads how OVN names the nodes of the set, the physical networks that they
// reach, and, for nodes without OVN, their ports.
func (l *loader) readNodes(z Zone) error {
	for _, node := range z.Nodes {
		l.nodes[node.Name] = node.Name
		err := each(node.OVS, "Open_vSwitch", func(row ovsdb.Row) {
			ids := row.Map("external_ids")
			for _, key := range []string{"system-id", "hostname"} {
				if ids[key] != "" {
					l.nodes[ids[key]] = node.Name
				}
			}
			for mapping := range strings.SplitSeq(ids["ovn-bridge-mappings"], ",") {
				if network, _, ok := strings.Cut(strings.TrimSpace(mapping), ":"); ok {
					l.zone.networks[network] = append(l.zone.networks[network], node.Name)
				}
			}
		}, "external_ids")
		if err != nil {
			return err
		}
		if err := l.readInterfaces(z, node); err != nil {
			return err
		}
	}
	return nil
}

// readInterfaces reads the iface-ids of a node's interfaces. In a zone without OVN they
// are the endpoints.
func (l *loader) readInterfaces(z Zone, node Node) error {
	if z.NB == nil && z.SB == nil {
		return l.readAgent(node)
	}
	return each(node.OVS, "Interface", func(row ovsdb.Row) {
		if id := row.Map("external_ids")["iface-id"]; id != "" {
			l.ifaces[id] = node.Name
		}
	}, "external_ids")
}

func (l *loader) readBindings(z Zone) error {
	if err := each(z.SB, "Chassis", func(row ovsdb.Row) {
		name := cmp.Or(row.String("hostname"), row.String("name"))
		l.chassis[row.UUID] = name
		if node := l.nodes[row.String("name")]; node != "" && l.nodes[name] == "" {
			l.nodes[name] = node
		}
	}, "name", "hostname"); err != nil {
		return err
	}
	return each(z.SB, "Port_Binding", func(row ovsdb.Row) {
		b := binding{parent: row.String("virtual_parent")}
		if on := row.UUIDs("chassis"); len(on) > 0 {
			b.chassis = l.chassis[on[0]]
		}
		l.bound[row.String("logical_port")] = b
		if z.NB == nil {
			l.addBinding(row)
		}
	}, "logical_port", "chassis", "virtual_parent", "type", "mac", "external_ids", "parent_port", "tag")
}

// addBinding adds the endpoint of a port of which only the southbound database is known.
func (l *loader) addBinding(row ovsdb.Row) {
	switch row.String("type") {
	case "", "localport", "virtual", "external", "remote":
		l.addPort(row, row.String("logical_port"), row.Strings("mac"), row.String("parent_port"), nil)
	}
}

func (l *loader) readRouters(z Zone) error {
	ports := map[string]*routerPort{}
	if err := each(z.NB, "Logical_Router_Port", func(row ovsdb.Row) {
		p := &routerPort{name: row.String("name"), mac: macOf(row.String("mac")), networks: prefixesOf(row.Strings("networks"))}
		ports[row.UUID], l.routers[p.name] = p, p
	}, "name", "mac", "networks"); err != nil {
		return err
	}
	nats, hops, err := readTranslations(z)
	if err != nil {
		return err
	}
	return each(z.NB, "Logical_Router", func(row ovsdb.Row) {
		r := &logicalRouter{name: row.String("name"), balancers: row.UUIDs("load_balancer"), groups: row.UUIDs("load_balancer_group")}
		for _, id := range row.UUIDs("nat") {
			if n, ok := nats[id]; ok {
				r.nat = append(r.nat, n)
			}
		}
		for _, id := range row.UUIDs("static_routes") {
			if h, ok := hops[id]; ok {
				r.hops = append(r.hops, h)
			}
		}
		for _, id := range row.UUIDs("ports") {
			if p := ports[id]; p != nil {
				p.router = r
				r.ports = append(r.ports, p)
				l.addRouterPort(p)
			}
		}
		l.zone.routers = append(l.zone.routers, r)
	}, "name", "ports", "nat", "static_routes", "load_balancer", "load_balancer_group")
}

// readTranslations returns the address translations and the static routes by destination of
// all routers, by UUID.
func readTranslations(z Zone) (map[string]nat, map[string]hop, error) {
	nats, hops := map[string]nat{}, map[string]hop{}
	if err := each(z.NB, "NAT", func(row ovsdb.Row) {
		if ip, ok := parseAddress(row.String("external_ip")); ok {
			nats[row.UUID] = nat{row.String("type"), ip, row.String("logical_ip"), macOf(row.String("external_mac")), row.String("logical_port")}
		}
	}, "external_ip", "type", "logical_ip", "external_mac", "logical_port"); err != nil {
		return nil, nil, err
	}
	return nats, hops, each(z.NB, "Logical_Router_Static_Route", func(row ovsdb.Row) {
		prefix, err := netip.ParsePrefix(row.String("ip_prefix"))
		next, ok := parseAddress(row.String("nexthop"))
		if err == nil && ok && row.String("policy") != "src-ip" {
			hops[row.UUID] = hop{prefix, next}
		}
	}, "ip_prefix", "nexthop", "policy")
}

func (l *loader) addRouterPort(p *routerPort) {
	e := Endpoint{Kind: RouterPort, Name: p.name, LogicalPort: p.name, MAC: p.mac, Switch: p.router.name}
	// A port of a gateway router is bound to a chassis, and so is the port that OVN derives
	// from a distributed gateway port (ovn-architecture(7)).
	e.Chassis = cmp.Or(l.bound["cr-"+p.name].chassis, l.bound[p.name].chassis)
	e.Node = l.nodes[e.Chassis]
	for _, network := range p.networks {
		e.IPs = append(e.IPs, network.Addr())
	}
	l.add(e)
}

func (l *loader) readSwitches(z Zone) error {
	return each(z.NB, "Logical_Switch", func(row ovsdb.Row) {
		s := &logicalSwitch{name: row.String("name"), given: row.Map("external_ids")["neutron:network_name"], hosts: map[netip.Addr]string{}}
		config := row.Map("other_config")
		s.subnets = prefixesOf([]string{config["subnet"], config["ipv6_prefix"]})
		for _, id := range row.UUIDs("ports") {
			l.switches[id] = s
		}
		l.zone.switches[s.name], l.bySwitch[row.UUID] = s, s
	}, "name", "external_ids", "other_config", "ports")
}

// readPorts reads the ports of logical switches.
func (l *loader) readPorts(z Zone) error {
	return each(z.NB, "Logical_Switch_Port", func(row ovsdb.Row) {
		s := l.switches[row.UUID]
		if s != nil {
			s.admit(row)
		}
		switch row.String("type") {
		case "", "localport", "virtual", "external", "remote":
			addresses := append(row.Strings("addresses"), row.Strings("dynamic_addresses")...)
			l.addPort(row, row.String("name"), addresses, row.String("parent_name"), s)
		case "router":
			if p := l.routers[row.Map("options")["router-port"]]; p != nil && s != nil {
				p.network = s
				s.routers = append(s.routers, p)
			}
		case "localnet":
			if s != nil {
				tag, _ := row.Int("tag")
				s.localnet = append(s.localnet, localnet{row.Map("options")["network_name"], tag})
			}
		}
	}, "name", "type", "addresses", "dynamic_addresses", "external_ids", "options", "parent_name", "tag", "dhcpv4_options", "port_security")
}

// admit notes the addresses that a port of the switch may have beside those in its row. A port
// without port security may have any (ovn-nb(5)); that of a node of ovn-kubernetes has only its
// own.
func (s *logicalSwitch) admit(row ovsdb.Row) {
	switch row.String("type") {
	case "router", "localport", "virtual":
		return
	case "":
	default: // what is behind it is not in the databases
		s.open = true
		return
	}
	security := row.Strings("port_security")
	if slices.Contains(row.Strings("addresses"), "unknown") || len(security) == 0 && !strings.HasPrefix(row.String("name"), managementPort) {
		s.open = true
	}
	for _, text := range security {
		prefixes := allowedBy(text)
		s.open = s.open || len(prefixes) == 0
		s.allowed = append(s.allowed, prefixes...)
	}
}

// allowedBy returns the IP addresses that an element of a port's port_security allows; without
// any, it allows all.
func allowedBy(element string) []netip.Prefix {
	var found []netip.Prefix
	for word := range strings.FieldsSeq(element) {
		if p, err := netip.ParsePrefix(word); err == nil {
			found = append(found, p.Masked())
		} else if ip, ok := parseAddress(word); ok {
			found = append(found, netip.PrefixFrom(ip, ip.BitLen()))
		}
	}
	return found
}

// managementPort begins the names of the ports by which ovn-kubernetes connects nodes.
const managementPort = "k8s-"

// addPort adds the endpoint of a port of a logical switch, from its row in either database.
func (l *loader) addPort(row ovsdb.Row, name string, addresses []string, parent string, s *logicalSwitch) {
	ids := row.Map("external_ids")
	e := Endpoint{Kind: Port, Name: name, LogicalPort: name, Parent: parent, Localport: row.String("type") == "localport",
		External: row.String("type") == "external", remote: row.String("type") == "remote", Network: ids["neutron:network_name"]}
	e.Tag, _ = row.Int("tag")
	if refs := row.UUIDs("dhcpv4_options"); len(refs) == 1 {
		e.dhcp = refs[0]
	}
	for _, text := range addresses {
		mac, ips := parseAddresses(text)
		if len(ips) > 0 && len(e.IPs) == 0 { // other elements may be those that the port may have as well
			e.MAC = mac
		}
		e.MAC, e.IPs = cmp.Or(e.MAC, mac), append(e.IPs, ips...)
	}
	if s != nil {
		e.Switch, e.Network, e.Open = s.name, s.given, len(row.Strings("port_security")) == 0
		for _, ip := range e.IPs {
			s.hosts[ip] = e.MAC
		}
	}
	b := l.bound[name]
	if row.String("type") == "virtual" {
		e.Parent = b.parent
	}
	e.Chassis = b.chassis
	e.Node = cmp.Or(l.nodes[b.chassis], l.ifaces[cmp.Or(e.Parent, name)])
	e.Chassis = cmp.Or(e.Chassis, e.Node)
	e.keys = []string{ids["neutron:port_name"], ids["neutron:device_id"]}
	nameOf(&e, ids)
	l.add(e)
}

// nameOf gives a port the name that its user knows: of a pod, of a node, or of a port of
// neutron.
func nameOf(e *Endpoint, ids map[string]string) {
	port := e.LogicalPort
	switch namespace := ids["namespace"]; {
	case strings.Count(ids["pod"], "/") == 1: // kube-ovn: NAMESPACE/NAME
		e.Kind, e.Name = Pod, ids["pod"]
	case namespace != "" && strings.Contains(port, namespace+"_"):
		// ovn-kubernetes: NAMESPACE_NAME, after the network's own prefix in networks other
		// than the default one
		e.Kind, e.Name = Pod, namespace+"/"+port[strings.Index(port, namespace+"_")+len(namespace)+1:]
	case strings.Count(port, "_") == 1 && isPodName.MatchString(port):
		e.Kind, e.Name = Pod, strings.Replace(port, "_", "/", 1)
	case strings.HasPrefix(port, managementPort):
		e.Kind, e.Name = NodePort, "node/"+strings.TrimPrefix(port, managementPort)
	case strings.HasPrefix(port, "node-") && ids["vendor"] == "kube-ovn":
		e.Kind, e.Name = NodePort, "node/"+strings.TrimPrefix(port, "node-")
	case ids["neutron:port_name"] != "":
		e.Name = ids["neutron:port_name"]
	}
}

// isPodName matches NAMESPACE_NAME: neither name can have an underscore (RFC 1123).
var isPodName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?_[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)

// add adds an endpoint under all its names.
func (l *loader) add(e Endpoint) {
	n := l.names
	e.zone = len(n.zones)
	at := len(n.endpoints)
	n.endpoints = append(n.endpoints, e)
	keys := append(slices.Clone(e.keys), e.Name, e.LogicalPort, e.MAC, e.Balancer)
	for _, ip := range e.IPs {
		keys = append(keys, ip.String())
	}
	for _, key := range keys {
		n.addKey(key, at)
	}
}

func (n *Names) addKey(key string, at int) {
	if key = strings.ToLower(key); key == "" {
		return
	}
	if list := n.byKey[key]; !slices.Contains(list[max(0, len(list)-1):], at) {
		n.byKey[key] = append(list, at)
	}
}

// readDNS adds the names in OVN's DNS records, which are those of instances, to the
// endpoints with their addresses.
func (l *loader) readDNS(z Zone) error {
	return each(z.NB, "DNS", func(row ovsdb.Row) {
		for name, addresses := range row.Map("records") {
			for text := range strings.FieldsSeq(addresses) {
				ip, ok := parseAddress(text)
				if !ok {
					continue
				}
				host, _, _ := strings.Cut(name, ".")
				for _, at := range l.names.byKey[ip.String()] {
					l.names.addKey(name, at)
					l.names.addKey(host, at)
				}
			}
		}
	}, "records")
}

// macOf returns a MAC address in the notation of Open vSwitch, "" for another text.
func macOf(text string) string {
	if text = strings.ToLower(text); isMAC.MatchString(text) {
		return text
	}
	return ""
}

var isMAC = regexp.MustCompile(`^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`)

// parseAddresses reads an element of a port's addresses: a MAC address, and IP addresses.
func parseAddresses(text string) (mac string, ips []netip.Addr) {
	for word := range strings.FieldsSeq(text) {
		if m := macOf(word); m != "" {
			mac = cmp.Or(mac, m)
			continue
		}
		address, _, _ := strings.Cut(word, "/")
		if ip, ok := parseAddress(address); ok {
			ips = append(ips, ip)
		}
	}
	return mac, ips
}

func prefixesOf(texts []string) []netip.Prefix {
	var found []netip.Prefix
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			found = append(found, p)
		}
	}
	return found
}
