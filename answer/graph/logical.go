package graph

import (
	"context"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/workdir"
)

// Logical returns the graph of the logical network in a workdir's OVN NB database.
func Logical(ctx context.Context, wd *workdir.Dir) (*Graph, error) {
	content, host, remarks, err := read(ctx, wd, workdir.NB)
	if err != nil {
		return nil, err
	}
	nb, err := ovn.ReadNorthbound(content)
	if err != nil {
		return nil, err
	}
	logical := &logical{newBuilder(content, remarks), logicalPorts(nb)}
	slices.SortStableFunc(nb.Routers, func(a, b *ovn.Router) int {
		return strings.Compare(a.Called(), b.Called())
	})
	slices.SortStableFunc(nb.Switches, func(a, b *ovn.Switch) int {
		return strings.Compare(a.Called(), b.Called())
	})
	for _, r := range nb.Routers { // before the switches, whose ports refer to their ports
		logical.router(r)
	}
	for _, s := range nb.Switches {
		logical.logicalSwitch(s)
	}
	logical.joinPeers(Link, func(*Port) {}) // the peer can be a port of a switch, which refers to this port
	logical.graph.Title = title(host, content, logical.graph, "logical switch or router", "logical switches and routers")
	return logical.graph, nil
}

type logical struct {
	builder
	ports map[string]*logicalPort
}

func newBox(called, name string, kind Kind) *Box {
	box := &Box{Name: called, Kind: kind}
	if name != box.Name {
		box.Aliases = append(box.Aliases, name)
		box.Detail = append(box.Detail, "name: "+name)
	}
	return box
}

func (l *logical) router(r *ovn.Router) {
	box := newBox(r.Called(), r.Name, Router)
	box.Note = userDefined(box, r.IDs) + counted(len(r.Routes), "route") + counted(len(r.NAT), "NAT rule") + counted(len(r.Balancers)+len(r.Groups), "LB")
	if chassis := r.Chassis(); chassis != "" {
		box.Detail = append(box.Detail, "chassis: "+chassis)
	}
	box.Note = strings.TrimPrefix(box.Note, ", ")
	l.graph.Boxes = append(l.graph.Boxes, box)
	for _, port := range r.Ports {
		p := &Port{Name: port.Name, Kind: Link, State: stateOf(port.Disabled), Note: strings.Join(port.Addresses, " ")}
		p.detail("MAC", port.MAC)
		if len(port.Chassis) > 0 || port.Group != "" {
			p.note("gateway")
		}
		box.Ports = append(box.Ports, p)
		l.endpoints[port.Name] = endpoint{box, p}
		if port.Peer != "" {
			l.pairs = append(l.pairs, [2]string{port.Name, port.Peer})
		}
	}
	sortPorts(box.Ports)
}

// userDefined returns the user-defined network that a switch or a router is a part of, as a part of a note, and
// lets the box be found by its name; "" for another one.
func userDefined(box *Box, ids map[string]string) string {
	network := ids[ovn.NetworkID]
	if network == "" {
		return ""
	}
	box.Aliases = append(box.Aliases, ovn.UserDefinedNetwork(network))
	return ", network " + ovn.UserDefinedNetwork(network)
}

func counted(n int, what string) string {
	if n == 0 {
		return ""
	}
	return ", " + phrase.Count(n, what)
}

func stateOf(disabled bool) State {
	if disabled {
		return Down
	}
	return Unknown
}

func (l *logical) logicalSwitch(s *ovn.Switch) {
	box := newBox(s.Called(), s.Name, Switch)
	box.Note = strings.TrimSpace(s.Config["subnet"] + " " + s.Config["ipv6_prefix"])
	box.Note = strings.TrimPrefix(box.Note+userDefined(box, s.IDs)+counted(len(s.Balancers)+len(s.Groups), "LB"), ", ")
	l.graph.Boxes = append(l.graph.Boxes, box)
	for _, p := range s.Ports {
		box.Ports = append(box.Ports, l.switchPort(box, p))
	}
	sortPorts(box.Ports)
}

func (l *logical) switchPort(box *Box, p *ovn.SwitchPort) *Port {
	port := &Port{Name: p.Called(), Kind: Service, State: stateOf(p.Disabled)}
	port.alias("name", p.Name)
	port.detail("device", p.IDs["neutron:device_id"])
	port.detail("type", p.Type)
	for _, address := range append(p.Addresses, p.Dynamic) {
		port.detail("addresses", address)
	}
	switch p.Type {
	case "", "virtual", "external":
		l.mark(port, p)
		port.note(addressesOf(p))
		if len(p.Up) == 1 && port.State == Unknown {
			port.State = map[bool]State{true: Up, false: Down}[p.Up[0]]
		}
	case "router":
		port.Kind = Link
		l.toRouter(endpoint{box, port}, p.Options["router-port"])
	case "localnet":
		port.note("localnet")
		port.note(tagOf(p.Tag, p.Tag != 0))
		network := Box{Name: p.Options["network_name"], Kind: Network, Note: "physical network"}
		l.joinOutside(endpoint{box, port}, network, Link, Up)
	default:
		port.note(p.Type)
		port.note(addressesOf(p))
	}
	return port
}

// mark sets the kind of the port of an instance or a pod, and notes what makes it
// differ from others.
func (l *logical) mark(port *Port, p *ovn.SwitchPort) {
	switch {
	case p.Type == "virtual":
		port.Kind = Virtual
		port.note("virtual")
		port.detail("virtual-ip", p.Options["virtual-ip"])
		for _, parent := range virtualParents(p) {
			port.detail("virtual parent", l.nameOf(parent))
		}
	case p.Type == "external":
		port.Kind = External
		port.note("external")
	case p.Parent != "":
		port.Kind = Child
		port.note("child of " + l.nameOf(p.Parent))
		port.note(tagOf(p.Tag, p.Tag != 0))
	default:
		port.Kind = Attached
	}
}

// nameOf returns the name that a user gave to a port, by its name in OVN.
func (l *logical) nameOf(port string) string {
	if known := l.ports[port]; known != nil {
		return known.name
	}
	return port
}

// addressesOf returns the IP addresses of a switch's port, without its MAC.
func addressesOf(p *ovn.SwitchPort) string {
	var found []string
	for _, text := range append(p.Addresses, p.Dynamic) {
		for _, word := range strings.Fields(text) {
			if strings.Contains(word, ".") || strings.Count(word, ":") > 1 && len(word) != len("00:00:00:00:00:00") {
				found = append(found, word)
			}
		}
	}
	return strings.Join(found, " ")
}

func (l *logical) toRouter(from endpoint, name string) {
	to := l.endpoints[name]
	if to.port == nil {
		from.port.State = Failed
		from.port.note("no router port " + name)
		return
	}
	state := Up
	if to.port.State == Down || from.port.State == Down {
		state = Down
	}
	l.join(from, to, Link, state)
}
