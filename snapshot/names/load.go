package names

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/snapshot"
	"ovs-offline/workdir/services"
)

// loader reads the tables of one zone.
type loader struct {
	names    *Names
	zone     *zone
	chassis  map[string]string         // host names of chassis by the UUIDs of their rows
	nodes    map[string]string         // nodes of the set by system-id and host name
	bound    map[string]binding        // by logical port
	ifaces   map[string]string         // nodes by iface-id
	taps     map[string][]string       // names of interfaces by iface-id
	switches map[string]*logicalSwitch // by the UUIDs of their ports
	routers  map[string]*routerPort    // by name
	bySwitch map[string]*logicalSwitch // by UUID
	services services.Names            // whose load balancers do not name them
}

// binding is where a port is bound.
type binding struct{ chassis, parent string }

func (l *loader) load(ctx context.Context, deployment *snapshot.Deployment) error {
	l.chassis, l.nodes, l.bound, l.ifaces = map[string]string{}, map[string]string{}, map[string]binding{}, map[string]string{}
	l.taps = map[string][]string{}
	l.switches, l.routers, l.bySwitch = map[string]*logicalSwitch{}, map[string]*routerPort{}, map[string]*logicalSwitch{}
	l.services = services.Beside(deployment.NB)
	steps := []func(*snapshot.Deployment) error{l.readNodes, l.readBindings, l.readRouters, l.readSwitches, l.readPorts, l.readVirtual, l.readServices, l.readDNS}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(deployment); err != nil {
			return err
		}
	}
	return nil
}

// readNodes reads how OVN names the nodes of the set, the physical networks that they
// reach, and, for nodes without OVN, their ports.
func (l *loader) readNodes(deployment *snapshot.Deployment) error {
	for _, node := range deployment.Nodes {
		l.nodes[node.Name] = node.Name
		settings, err := ovn.ReadSettings(node.OVS)
		if err != nil {
			return err
		}
		for _, name := range []string{settings.Chassis(), settings.Hostname()} {
			if name != "" {
				l.nodes[name] = node.Name
			}
		}
		for network := range settings.Mappings() {
			l.zone.networks[network] = append(l.zone.networks[network], node.Name)
		}
		if err := l.readInterfaces(deployment, node); err != nil {
			return err
		}
	}
	return nil
}

// readInterfaces reads the iface-ids of a node's interfaces. In a zone without OVN they
// are the endpoints.
func (l *loader) readInterfaces(deployment *snapshot.Deployment, node snapshot.Member) error {
	if deployment.NB == nil && deployment.SB == nil {
		return l.readAgent(node)
	}
	return node.OVS.Each("Interface", func(row ovsdb.Row) {
		if id := row.Map("external_ids")["iface-id"]; id != "" {
			l.ifaces[id] = node.Name
			l.taps[id] = append(l.taps[id], row.String("name"))
		}
	}, "name", "external_ids")
}

func (l *loader) readBindings(deployment *snapshot.Deployment) error {
	all, err := ovn.ReadChassis(deployment.SB)
	if err != nil {
		return err
	}
	for _, c := range all {
		l.chassis[c.UUID] = c.Title()
		if node := l.nodes[c.Name]; node != "" && l.nodes[c.Title()] == "" {
			l.nodes[c.Title()] = node
		}
	}
	return ovn.EachBinding(deployment.SB, func(b ovn.Binding) {
		l.bound[b.Port] = binding{l.chassis[b.Chassis], b.VirtualParent}
		if deployment.NB == nil { // only the southbound database knows the port
			l.addPort(&ovn.SwitchPort{UUID: b.UUID, Name: b.Port, Type: b.Type, Parent: b.Parent, Tag: b.Tag, Addresses: b.Addresses, IDs: b.IDs}, nil)
		}
	})
}

func (l *loader) readRouters(deployment *snapshot.Deployment) error {
	ports := map[string]*routerPort{}
	if err := ovn.EachRouterPort(deployment.NB, func(p *ovn.RouterPort) {
		port := &routerPort{name: p.Name, mac: ovn.MAC(p.MAC), networks: p.Networks, peer: p.Peer}
		ports[p.UUID], l.routers[port.name] = port, port
	}); err != nil {
		return err
	}
	nats, hops, err := readTranslations(deployment)
	if err != nil {
		return err
	}
	return ovn.EachRouter(deployment.NB, func(r *ovn.Router) {
		router := &logicalRouter{name: r.Name, balancers: r.Balancers, groups: r.Groups}
		for _, id := range r.NAT {
			if nat, ok := nats[id]; ok {
				router.nat = append(router.nat, nat)
			}
		}
		for _, id := range r.Routes {
			if hop, ok := hops[id]; ok {
				router.hops = append(router.hops, hop)
			}
		}
		for _, id := range r.PortUUIDs {
			if port := ports[id]; port != nil {
				port.router = router
				router.ports = append(router.ports, port)
				l.addRouterPort(port)
			}
		}
		l.zone.routers = append(l.zone.routers, router)
	})
}

// readTranslations returns the address translations and the static routes by destination of
// all routers, by UUID.
func readTranslations(deployment *snapshot.Deployment) (map[string]nat, map[string]hop, error) {
	nats, hops := map[string]nat{}, map[string]hop{}
	if err := deployment.NB.Each("NAT", func(row ovsdb.Row) {
		if ip, ok := ovn.ParseAddress(row.String("external_ip")); ok {
			conditional := row.String("match") != "" || len(row.UUIDs("allowed_ext_ips"))+len(row.UUIDs("exempted_ext_ips")) > 0
			logical := row.String("logical_ip")
			nats[row.UUID] = nat{row.String("type"), ip, logical, ovn.Prefix(logical), ovn.MAC(row.String("external_mac")), row.String("logical_port"), conditional}
		}
	}, "external_ip", "type", "logical_ip", "external_mac", "logical_port", "match", "allowed_ext_ips", "exempted_ext_ips"); err != nil {
		return nil, nil, err
	}
	return nats, hops, deployment.NB.Each("Logical_Router_Static_Route", func(row ovsdb.Row) {
		prefix, err := netip.ParsePrefix(row.String("ip_prefix"))
		next, ok := ovn.ParseAddress(row.String("nexthop"))
		if err == nil && ok && row.String("policy") != "src-ip" {
			hops[row.UUID] = hop{prefix, next}
		}
	}, "ip_prefix", "nexthop", "policy")
}

func (l *loader) addRouterPort(port *routerPort) {
	endpoint := Endpoint{Kind: RouterPort, Name: port.name, LogicalPort: port.name, MAC: port.mac, Switch: port.router.name}
	// A port of a gateway router is bound to a chassis, and so is the port that OVN derives
	// from a distributed gateway port (ovn-architecture(7)).
	endpoint.Chassis = cmp.Or(l.bound["cr-"+port.name].chassis, l.bound[port.name].chassis)
	endpoint.Node = l.nodes[endpoint.Chassis]
	for _, network := range port.networks {
		endpoint.IPs = append(endpoint.IPs, network.Addr())
	}
	l.add(endpoint)
}

func (l *loader) readSwitches(deployment *snapshot.Deployment) error {
	return ovn.EachSwitch(deployment.NB, func(s *ovn.Switch) {
		ls := &logicalSwitch{name: s.Name, given: s.IDs[ovn.NeutronNetwork], role: role(s.IDs[udnRole]), hosts: map[netip.Addr]string{}}
		if network := s.IDs[ovn.NetworkID]; network != "" {
			ls.given = ovn.UserDefinedNetwork(network)
		}
		ls.subnets = ovn.Networks([]string{s.Config["subnet"], s.Config["ipv6_prefix"]})
		for _, id := range s.PortUUIDs {
			l.switches[id] = ls
		}
		l.zone.switches[ls.name], l.bySwitch[s.UUID] = ls, ls
	})
}

// readPorts reads the ports of logical switches.
func (l *loader) readPorts(deployment *snapshot.Deployment) error {
	return ovn.EachSwitchPort(deployment.NB, func(p *ovn.SwitchPort) {
		ls := l.switches[p.UUID]
		if ls != nil {
			ls.admit(p)
			ls.outer = ls.outer || leadsOut(p.Type)
		}
		switch p.Type {
		default:
			l.addPort(p, ls)
		case "router":
			if port := l.routers[p.Options["router-port"]]; port != nil && ls != nil {
				port.network = ls
				ls.routers = append(ls.routers, port)
			}
		case "localnet":
			if ls != nil {
				ls.localnet = append(ls.localnet, localnet{p.Options["network_name"], p.Tag})
			}
		}
	})
}

// leadsOut reports whether ports of a type connect their switch with what is not in the databases.
func leadsOut(kind string) bool {
	return !slices.Contains([]string{"", "router", "localport", "virtual"}, kind)
}

// admit notes the addresses that a port of the switch may have beside those in its row. A port
// without port security may have any (ovn-nb(5)), except the port of a node of ovn-kubernetes,
// which has only its own.
func (s *logicalSwitch) admit(p *ovn.SwitchPort) {
	switch p.Type {
	case "router", "localport", "virtual":
		return
	case "", "remote": // the row of another zone's port has the port security that applies there
	default: // what is behind it is not in the databases
		s.open = true
		return
	}
	if slices.Contains(p.Addresses, "unknown") || len(p.Security) == 0 && !strings.HasPrefix(p.Name, ovn.ManagementPort) {
		s.open = true
	}
	for _, text := range p.Security {
		prefixes := ovn.AllowedBy(text)
		s.open = s.open || len(prefixes) == 0
		s.allowed = append(s.allowed, prefixes...)
	}
}

// addPort adds the endpoint of a port of a logical switch; ls is nil for one that no switch has, or that only the southbound database knows.
func (l *loader) addPort(p *ovn.SwitchPort, ls *logicalSwitch) {
	if !ovn.EndsAt(p.Type) {
		return
	}
	ids, name := p.IDs, p.Name
	endpoint := Endpoint{Kind: Port, Name: p.Called(), LogicalPort: name, Parent: p.Parent, Tag: p.Tag, Localport: p.Type == "localport",
		External: p.Type == "external", remote: p.Type == "remote", Network: ids[ovn.NeutronNetwork], dhcp: p.DHCP}
	for _, text := range append(p.Addresses, p.Dynamic) {
		mac, ips := ovn.ParseAddresses(text)
		if len(ips) > 0 && len(endpoint.IPs) == 0 { // the first element with IP addresses has the MAC; the port may use the other elements as well
			endpoint.MAC = mac
		}
		endpoint.MAC, endpoint.IPs = cmp.Or(endpoint.MAC, mac), append(endpoint.IPs, ips...)
	}
	if ls != nil {
		endpoint.Switch, endpoint.Network, endpoint.Open = ls.name, ls.given, len(p.Security) == 0
		for _, ip := range endpoint.IPs {
			ls.hosts[ip] = endpoint.MAC
		}
	}
	binding := l.bound[name]
	if endpoint.virtual = p.Type == "virtual"; endpoint.virtual {
		endpoint.Parent = binding.parent
	}
	endpoint.Chassis = binding.chassis
	endpoint.Node = cmp.Or(l.nodes[binding.chassis], l.ifaces[cmp.Or(endpoint.Parent, name)])
	endpoint.Chassis = cmp.Or(endpoint.Chassis, endpoint.Node)
	endpoint.keys = []string{ids[ovn.NeutronPort], ids["neutron:device_id"]}
	switch {
	case ovn.PodName(name, p.Type, ids, p.Addresses) != "":
		endpoint.Kind = Pod
		endpoint.inNetwork(ids)
	case ovn.IsNodePort(name, p.Type, ids):
		endpoint.Kind = NodePort
	}
	if ls != nil {
		endpoint.role = ls.role
		ls.node = ls.node || endpoint.Kind == NodePort
	}
	l.add(endpoint)
	for _, alias := range append(l.taps[name], p.UUID) {
		addKey(l.names.byAlias, alias, len(l.names.endpoints)-1)
	}
}

// readVirtual gives the virtual ports that an instance has claimed the MAC address of its port,
// with which it sends and answers: no flow of OVN delivers to a virtual port's own.
func (l *loader) readVirtual(*snapshot.Deployment) error {
	names := l.names
	for at, endpoint := range names.endpoints {
		if !endpoint.virtual || endpoint.Parent == "" || endpoint.zone != len(names.zones) {
			continue
		}
		for _, parent := range names.byKey[strings.ToLower(endpoint.Parent)] {
			parent := names.endpoints[parent]
			if parent.LogicalPort != endpoint.Parent || parent.MAC == "" || parent.zone != endpoint.zone {
				continue
			}
			names.endpoints[at].MAC = parent.MAC
			if ls := l.zone.switches[endpoint.Switch]; ls != nil {
				for _, ip := range endpoint.IPs {
					ls.hosts[ip] = parent.MAC
				}
			}
		}
	}
	return nil
}

// add adds an endpoint under all its names.
func (l *loader) add(endpoint Endpoint) {
	names := l.names
	endpoint.zone = len(names.zones)
	at := len(names.endpoints)
	names.endpoints = append(names.endpoints, endpoint)
	keys := append(slices.Clone(endpoint.keys), endpoint.Name, endpoint.LogicalPort, endpoint.MAC, endpoint.Balancer)
	for _, ip := range endpoint.IPs {
		keys = append(keys, ip.String())
	}
	for _, key := range keys {
		addKey(names.byKey, key, at)
	}
}

func addKey(to map[string][]int, key string, at int) {
	if key = strings.ToLower(key); key == "" {
		return
	}
	if list := to[key]; !slices.Contains(list[max(0, len(list)-1):], at) {
		to[key] = append(list, at)
	}
}

// readDNS adds the names in OVN's DNS records, which are names of instances, to the endpoints with
// their addresses.
func (l *loader) readDNS(deployment *snapshot.Deployment) error {
	return deployment.NB.Each("DNS", func(row ovsdb.Row) {
		for name, addresses := range row.Map("records") {
			for text := range strings.FieldsSeq(addresses) {
				ip, ok := ovn.ParseAddress(text)
				if !ok {
					continue
				}
				host, _, _ := strings.Cut(name, ".")
				for _, at := range l.names.byKey[ip.String()] {
					addKey(l.names.byKey, name, at)
					addKey(l.names.byKey, host, at)
				}
			}
		}
	}, "records")
}
