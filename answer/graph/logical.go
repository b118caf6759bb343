package graph

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/workdir"
)

// Logical returns the graph of the logical network in a workdir's OVN NB database.
func Logical(ctx context.Context, wd *workdir.Dir) (*Graph, error) {
	content, host, remarks, err := read(ctx, wd, workdir.NB)
	if err != nil {
		return nil, err
	}
	logical := &logical{newBuilder(content, remarks, "Logical_Switch_Port", "Logical_Router_Port"), logicalPorts(content)}
	// Routers first: the ports of switches refer to them.
	for _, row := range byName(content.Rows("Logical_Router"), routerName) {
		logical.router(row)
	}
	for _, row := range byName(content.Rows("Logical_Switch"), networkName) {
		logical.logicalSwitch(row)
	}
	logical.joinPeers(Link, func(*Port) {}) // the peer can be a port of a switch, which refers to this port
	logical.graph.Title = title(host, content, logical.graph, "logical switch or router", "logical switches and routers")
	return logical.graph, nil
}

type logical struct {
	builder
	ports map[string]*logicalPort
}

func byName(rows []ovsdb.Row, key string) []ovsdb.Row {
	slices.SortStableFunc(rows, func(a, b ovsdb.Row) int { return strings.Compare(givenName(a, key), givenName(b, key)) })
	return rows
}

func newBox(row ovsdb.Row, key string, kind Kind) *Box {
	box := &Box{Name: givenName(row, key), Kind: kind}
	if name := row.String("name"); name != box.Name {
		box.Aliases = append(box.Aliases, name)
		box.Detail = append(box.Detail, "name: "+name)
	}
	return box
}

func (l *logical) router(row ovsdb.Row) {
	box := newBox(row, routerName, Router)
	box.Note = userDefined(box, row) + counted(len(row.UUIDs("static_routes")), "route") + counted(len(row.UUIDs("nat")), "NAT rule") +
		counted(len(row.UUIDs("load_balancer"))+len(row.UUIDs("load_balancer_group")), "LB")
	if chassis := row.Map("options")["chassis"]; chassis != "" {
		box.Detail = append(box.Detail, "chassis: "+chassis)
	}
	box.Note = strings.TrimPrefix(box.Note, ", ")
	l.graph.Boxes = append(l.graph.Boxes, box)
	for _, id := range row.UUIDs("ports") {
		port, ok := l.rows[id]
		if !ok {
			continue
		}
		p := &Port{Name: port.String("name"), Kind: Link, State: enabled(port), Note: strings.Join(port.Strings("networks"), " ")}
		p.detail("MAC", port.String("mac"))
		if len(port.UUIDs("gateway_chassis")) > 0 || len(port.UUIDs("ha_chassis_group")) > 0 {
			p.note("gateway")
		}
		box.Ports = append(box.Ports, p)
		l.endpoints[port.String("name")] = endpoint{box, p}
		if peer := port.String("peer"); peer != "" {
			l.pairs = append(l.pairs, [2]string{port.String("name"), peer})
		}
	}
	sortPorts(box.Ports)
}

// userDefined returns the user-defined network that a switch or a router is a part of, as a part of a note, and
// lets the box be found by its name; "" for another one.
func userDefined(box *Box, row ovsdb.Row) string {
	network := row.Map("external_ids")[ovn.NetworkID]
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

func enabled(row ovsdb.Row) State {
	if on := row.Bools("enabled"); len(on) == 1 && !on[0] {
		return Down
	}
	return Unknown
}

func (l *logical) logicalSwitch(row ovsdb.Row) {
	box := newBox(row, networkName, Switch)
	config := row.Map("other_config")
	box.Note = strings.TrimSpace(config["subnet"] + " " + config["ipv6_prefix"])
	box.Note = strings.TrimPrefix(box.Note+userDefined(box, row)+counted(len(row.UUIDs("load_balancer"))+len(row.UUIDs("load_balancer_group")), "LB"), ", ")
	l.graph.Boxes = append(l.graph.Boxes, box)
	for _, id := range row.UUIDs("ports") {
		if port, ok := l.rows[id]; ok {
			box.Ports = append(box.Ports, l.switchPort(box, port))
		}
	}
	sortPorts(box.Ports)
}

func (l *logical) switchPort(box *Box, row ovsdb.Row) *Port {
	port := &Port{Name: givenName(row, portName), Kind: Service, State: enabled(row)}
	port.alias("name", row.String("name"))
	port.detail("device", row.Map("external_ids")["neutron:device_id"])
	kind := row.String("type")
	port.detail("type", kind)
	for _, address := range append(row.Strings("addresses"), row.Strings("dynamic_addresses")...) {
		port.detail("addresses", address)
	}
	switch kind {
	case "", "virtual", "external":
		l.mark(port, row)
		port.note(addressesOf(row))
		if up := row.Bools("up"); len(up) == 1 && port.State == Unknown {
			port.State = map[bool]State{true: Up, false: Down}[up[0]]
		}
	case "router":
		port.Kind = Link
		l.toRouter(endpoint{box, port}, row.Map("options")["router-port"])
	case "localnet":
		port.note("localnet")
		if tag, ok := row.Int("tag"); ok {
			port.note("tag " + strconv.Itoa(tag))
		}
		network := Box{Name: row.Map("options")["network_name"], Kind: Network, Note: "physical network"}
		l.joinOutside(endpoint{box, port}, network, Link, Up)
	default:
		port.note(kind)
		port.note(addressesOf(row))
	}
	return port
}

// mark sets the kind of the port of an instance or a pod, and notes what makes it
// differ from others.
func (l *logical) mark(port *Port, row ovsdb.Row) {
	options := row.Map("options")
	switch kind := row.String("type"); {
	case kind == "virtual":
		port.Kind = Virtual
		port.note("virtual")
		port.detail("virtual-ip", options["virtual-ip"])
		for _, parent := range virtualParents(row) {
			port.detail("virtual parent", l.nameOf(parent))
		}
	case kind == "external":
		port.Kind = External
		port.note("external")
	case row.String("parent_name") != "":
		port.Kind = Child
		port.note("child of " + l.nameOf(row.String("parent_name")))
		port.note(tagOf(row))
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
func addressesOf(row ovsdb.Row) string {
	var found []string
	for _, text := range append(row.Strings("addresses"), row.Strings("dynamic_addresses")...) {
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
