package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// Node returns the graph of a node, from the OVS database of a workdir and the
// recorded state of interfaces and bonds.
func Node(ctx context.Context, wd *workdir.Dir) (*Graph, error) {
	content, host, remarks, err := read(ctx, wd, workdir.OVS)
	if err != nil {
		return nil, err
	}
	node := &node{builder: newBuilder(content, remarks, "Port", "Interface")}
	bridges := content.Rows("Bridge")
	slices.SortFunc(bridges, func(a, b ovsdb.Row) int { return strings.Compare(a.String("name"), b.String("name")) })
	var names []string
	for _, row := range bridges {
		names = append(names, row.String("name"))
	}
	if node.recorded, err = readRecorded(wd, names); err != nil {
		return nil, err
	}
	if node.logical, err = node.readLogicalPorts(ctx, wd); err != nil {
		return nil, err
	}
	if node.chassis, err = node.readChassis(ctx, wd); err != nil {
		return nil, err
	}
	node.trunks = trunks(content.Rows("Interface"))
	for _, row := range content.Rows("Open_vSwitch") {
		for _, addr := range ovn.Settings(row.Map("external_ids")).Encaps() {
			node.graph.addresses = append(node.graph.addresses, addr.String())
		}
	}
	for _, row := range bridges {
		node.bridge(row)
	}
	node.joinPeers(Patch, func(port *Port) {
		port.State = Failed
		port.note("no peer")
	})
	if len(node.recorded.interfaces) == 0 && len(node.recorded.ports) == 0 {
		node.graph.Remarks = append(node.graph.Remarks, "no link states were collected")
	}
	node.graph.Title = title(host, content, node.graph, "bridge", "bridges")
	return node.graph, nil
}

type node struct {
	builder
	recorded *recorded
	logical  map[string]*logicalPort // by iface-id
	trunks   map[string]string       // the note of a trunk's ports, by iface-id
	chassis  map[string]string       // the host name of a chassis of OVN, by the address of its tunnels
}

// readLogicalPorts returns the ports of the OVN NB database, if the workdir has one.
// A picture without their names is better than none, so a damaged database is a
// remark; a disk that is full is not the database's fault.
func (n *node) readLogicalPorts(ctx context.Context, wd *workdir.Dir) (map[string]*logicalPort, error) {
	content, err := n.readOVN(ctx, wd, workdir.NB, "iface-ids are shown without the names of their ports", "Logical_Switch", "Logical_Switch_Port")
	if content == nil {
		return nil, err
	}
	nb, err := ovn.ReadNorthbound(content)
	if err != nil {
		return nil, err
	}
	return logicalPorts(nb), nil
}

// readChassis returns the host names of the chassis in the OVN SB database, or the names of those without
// one, by the addresses of their tunnels.
func (n *node) readChassis(ctx context.Context, wd *workdir.Dir) (map[string]string, error) {
	content, err := n.readOVN(ctx, wd, workdir.SB, "tunnels are shown without the names of their chassis", ovn.ChassisTable, "Encap")
	if content == nil {
		return nil, err
	}
	hosts, names := map[string]string{}, map[string]string{}
	chassis, err := ovn.ReadChassis(content)
	if err != nil {
		return nil, err
	}
	for _, c := range chassis {
		hosts[c.Name] = c.Hostname
	}
	for _, row := range content.Rows("Encap") {
		chassis := row.String("chassis_name")
		names[row.String("ip")] = cmp.Or(hosts[chassis], chassis)
	}
	return names, nil
}

// readOVN returns some tables of an OVN database, nil if the workdir has none, or one that can't be read:
// then a remark says what the picture lacks.
func (n *node) readOVN(ctx context.Context, wd *workdir.Dir, kind workdir.Kind, lacks string, tables ...string) (*file.Content, error) {
	content, _, remarks, err := read(ctx, wd, kind, tables...)
	switch {
	case errors.Is(err, ErrNoDatabase):
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case archive.CannotWrite(err): // the database is not to blame
		return nil, err
	case err != nil:
		n.graph.Remarks = append(n.graph.Remarks, fmt.Sprintf("%s: %v", lacks, err))
		return nil, nil
	}
	for _, remark := range remarks {
		n.graph.Remarks = append(n.graph.Remarks, kind.Title()+": "+remark)
	}
	return content, nil
}

func (n *node) bridge(row ovsdb.Row) {
	box := &Box{Name: row.String("name"), Kind: Bridge}
	var notes []string
	for _, column := range []string{"datapath_type", "fail_mode"} {
		if value := row.String(column); value != "" && value != "system" {
			notes = append(notes, value)
		}
	}
	if len(row.UUIDs("controller")) > 0 {
		notes = append(notes, "controller")
	}
	box.Note = strings.Join(notes, ", ")
	n.graph.Boxes = append(n.graph.Boxes, box)
	for _, id := range row.UUIDs("ports") {
		if port, ok := n.rows[id]; ok {
			n.port(box, port)
		}
	}
	sortPorts(box.Ports)
}

// port adds a port: its interface, or a bond with its members.
func (n *node) port(box *Box, row ovsdb.Row) {
	var members []*Port
	for _, id := range row.UUIDs("interfaces") {
		if i, ok := n.rows[id]; ok {
			members = append(members, n.iface(box, i))
		}
	}
	if len(members) == 0 {
		return
	}
	port := members[0]
	if len(members) > 1 {
		port = n.bond(row, members)
	}
	port.VLAN = vlan(row)
	port.note(port.VLAN)
	port.detail("network", row.Map("other_config")["net_uuid"])
	if mode := row.String("vlan_mode"); mode != "access" {
		port.note(mode)
	}
	box.Ports = append(box.Ports, port)
}

func (n *node) bond(row ovsdb.Row, members []*Port) *Port {
	bond := &Port{Name: row.String("name"), Kind: Bond, Members: members}
	bond.note(row.String("bond_mode"))
	if lacp := row.String("lacp"); lacp != "" && lacp != "off" {
		bond.note("LACP " + lacp)
	}
	shown := n.recorded.members[bond.Name]
	up := 0
	for _, port := range members {
		switch shown[port.Name] {
		case "active":
			port.Active = true
			port.note("active")
		case "disabled":
			port.note("disabled")
			if port.State != Failed {
				port.State = Down
			}
		}
		if port.State == Up {
			up++
		}
		if port.State != Unknown && bond.State == Unknown {
			bond.State = Down
		}
	}
	if up > 0 {
		bond.State = Up
	}
	sortPorts(bond.Members)
	return bond
}

func (n *node) iface(box *Box, row ovsdb.Row) *Port {
	port := &Port{Name: row.String("name"), Kind: kindOf(row, box.Name)}
	number, numbered := row.Int("ofport")
	if numbered {
		port.Number = strconv.Itoa(number)
	}
	var reason string
	port.State, reason = n.recorded.state(box.Name, port.Number, port.Name)
	if failure := row.String("error"); failure != "" {
		port.State, reason = Failed, failure
	} else if number == -1 {
		port.State, reason = Failed, "it has no OpenFlow port"
	}
	if number == openflow.PortLocal {
		port.Number = "LOCAL"
	}
	port.detail("type", row.String("type"))
	port.detail(string(port.State), reason)
	n.attach(port, row.Map("external_ids"))
	switch port.Kind {
	case Patch:
		peer := row.Map("options")["peer"]
		port.detail("peer", peer)
		n.endpoints[port.Name] = endpoint{box, port}
		n.pairs = append(n.pairs, [2]string{port.Name, peer})
	case Tunnel:
		n.tunnel(box, port, row)
	}
	return port
}

// attach notes what an interface is attached to, by its iface-id.
func (n *node) attach(p *Port, ids map[string]string) {
	p.detail("MAC", ids["attached-mac"])
	p.detail("vm-uuid", ids["vm-uuid"])
	id := ids["iface-id"]
	if id == "" {
		return
	}
	p.alias("iface-id", id)
	port := n.logical[id]
	switch {
	case port != nil:
		p.alias("logical switch port", port.name)
		p.detail("logical switch", port.network)
		if p.Kind == Interface {
			p.note(port.name)
			port.describe(p)
		}
	case p.Kind == Interface:
		p.note(id)
	}
	p.note(n.trunks[id])
}

func kindOf(row ovsdb.Row, bridge string) Kind {
	kind := row.String("type")
	switch {
	case kind == "patch":
		return Patch
	case kind == "internal" && row.String("name") == bridge:
		return Internal
	case row.Map("external_ids")["iface-id"] != "":
		return Interface
	case kind == "internal":
		return Internal
	case strings.HasPrefix(kind, "dpdk"):
		return Userspace
	case kind == "" || kind == "system" || kind == "tap" || strings.HasPrefix(kind, "afxdp"):
		return System
	}
	return Tunnel
}

// tunnel joins a tunnel port with the box of its remote end.
func (n *node) tunnel(box *Box, port *Port, row ovsdb.Row) {
	port.note(row.String("type"))
	options := row.Map("options")
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if key != "psk" { // the pre-shared key of IPsec
			port.detail(key, options[key])
		}
	}
	if local := options["local_ip"]; local != "" && local != "flow" {
		n.graph.addresses = append(n.graph.addresses, local)
	}
	remote := options["remote_ip"]
	if remote == "" || remote == "flow" {
		remote = "set by flows"
	}
	if bfd := n.recorded.bfd(port.Name); bfd != "" {
		port.note("BFD " + bfd)
		if bfd != "up" && port.State != Failed {
			port.State = Down
		}
	}
	end := Box{Name: remote, Kind: Remote, address: remote}
	if chassis := n.chassis[remote]; chassis != "" {
		end.Name, end.Note = chassis, remote
	}
	n.joinOutside(endpoint{box, port}, end, Tunnel, port.State)
}
