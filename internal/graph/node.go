package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
)

// Node returns the graph of a node, from the OVS database of a workdir and the
// recorded state of interfaces and bonds.
func Node(ctx context.Context, wd *workdir.Dir) (*Graph, error) {
	content, host, remarks, err := read(ctx, wd, workdir.OVS)
	if err != nil {
		return nil, err
	}
	n := &node{builder: newBuilder(content, remarks, "Port", "Interface")}
	bridges := content.Rows("Bridge")
	slices.SortFunc(bridges, func(a, b ovsdb.Row) int { return strings.Compare(a.String("name"), b.String("name")) })
	var names []string
	for _, b := range bridges {
		names = append(names, b.String("name"))
	}
	if n.recorded, err = readRecorded(wd, names); err != nil {
		return nil, err
	}
	if n.logical, err = n.readLogicalPorts(ctx, wd); err != nil {
		return nil, err
	}
	n.trunks = trunks(content.Rows("Interface"))
	for _, b := range bridges {
		n.bridge(b)
	}
	n.joinPeers(Patch, func(p *Port) {
		p.State = Failed
		p.note("no peer")
	})
	if len(n.recorded.interfaces) == 0 && len(n.recorded.ports) == 0 {
		n.graph.Remarks = append(n.graph.Remarks, "no link states were collected")
	}
	n.graph.Title = title(host, content, n.graph, "bridge", "bridges")
	return n.graph, nil
}

type node struct {
	builder
	recorded *recorded
	logical  map[string]*logicalPort // by iface-id
	trunks   map[string]string       // the note of a trunk's ports, by iface-id
}

// readLogicalPorts returns the ports of the OVN NB database, if the workdir has one.
// A picture without their names is better than none, so a damaged database is a
// remark.
func (n *node) readLogicalPorts(ctx context.Context, wd *workdir.Dir) (map[string]*logicalPort, error) {
	content, _, remarks, err := read(ctx, wd, workdir.NB, "Logical_Switch", "Logical_Switch_Port")
	switch {
	case errors.Is(err, ErrNoDatabase):
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		n.graph.Remarks = append(n.graph.Remarks, fmt.Sprintf("iface-ids are shown without the names of their ports: %v", err))
		return nil, nil
	}
	for _, remark := range remarks {
		n.graph.Remarks = append(n.graph.Remarks, workdir.NB.Title()+": "+remark)
	}
	return logicalPorts(content), nil
}

func (n *node) bridge(row ovsdb.Row) {
	b := &Box{Name: row.String("name"), Kind: Bridge}
	var notes []string
	for _, column := range []string{"datapath_type", "fail_mode"} {
		if v := row.String(column); v != "" && v != "system" {
			notes = append(notes, v)
		}
	}
	if len(row.UUIDs("controller")) > 0 {
		notes = append(notes, "controller")
	}
	b.Note = strings.Join(notes, ", ")
	n.graph.Boxes = append(n.graph.Boxes, b)
	for _, id := range row.UUIDs("ports") {
		if port, ok := n.rows[id]; ok {
			n.port(b, port)
		}
	}
	sortPorts(b.Ports)
}

// port adds a port: its interface, or a bond with its members.
func (n *node) port(b *Box, row ovsdb.Row) {
	var members []*Port
	for _, id := range row.UUIDs("interfaces") {
		if i, ok := n.rows[id]; ok {
			members = append(members, n.iface(b, i))
		}
	}
	if len(members) == 0 {
		return
	}
	p := members[0]
	if len(members) > 1 {
		p = n.bond(row, members)
	}
	p.VLAN = vlan(row)
	p.note(p.VLAN)
	p.detail("network", row.Map("other_config")["net_uuid"])
	if mode := row.String("vlan_mode"); mode != "access" {
		p.note(mode)
	}
	b.Ports = append(b.Ports, p)
}

func (n *node) bond(row ovsdb.Row, members []*Port) *Port {
	bond := &Port{Name: row.String("name"), Kind: Bond, Members: members}
	bond.note(row.String("bond_mode"))
	if lacp := row.String("lacp"); lacp != "" && lacp != "off" {
		bond.note("LACP " + lacp)
	}
	shown := n.recorded.members[bond.Name]
	up := 0
	for _, m := range members {
		switch shown[m.Name] {
		case "active":
			m.Active = true
			m.note("active")
		case "disabled":
			m.note("disabled")
			if m.State != Failed {
				m.State = Down
			}
		}
		if m.State == Up {
			up++
		}
		if m.State != Unknown && bond.State == Unknown {
			bond.State = Down
		}
	}
	if up > 0 {
		bond.State = Up
	}
	sortPorts(bond.Members)
	return bond
}

func (n *node) iface(b *Box, row ovsdb.Row) *Port {
	p := &Port{Name: row.String("name"), Kind: kindOf(row, b.Name)}
	number, numbered := row.Int("ofport")
	if numbered {
		p.Number = strconv.Itoa(number)
	}
	var reason string
	p.State, reason = n.recorded.state(b.Name, p.Number, p.Name)
	if failure := row.String("error"); failure != "" {
		p.State, reason = Failed, failure
	} else if number == -1 {
		p.State, reason = Failed, "it has no OpenFlow port"
	}
	if number == openflow.PortLocal {
		p.Number = "LOCAL"
	}
	p.detail("type", row.String("type"))
	p.detail(string(p.State), reason)
	n.attach(p, row.Map("external_ids"))
	switch p.Kind {
	case Patch:
		peer := row.Map("options")["peer"]
		p.detail("peer", peer)
		n.endpoints[p.Name] = endpoint{b, p}
		n.pairs = append(n.pairs, [2]string{p.Name, peer})
	case Tunnel:
		n.tunnel(b, p, row)
	}
	return p
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
func (n *node) tunnel(b *Box, p *Port, row ovsdb.Row) {
	p.note(row.String("type"))
	options := row.Map("options")
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if key != "psk" { // the pre-shared key of IPsec
			p.detail(key, options[key])
		}
	}
	remote := options["remote_ip"]
	if remote == "" || remote == "flow" {
		remote = "set by flows"
	}
	if bfd := n.recorded.bfd(p.Name); bfd != "" {
		p.note("BFD " + bfd)
		if bfd != "up" && p.State != Failed {
			p.State = Down
		}
	}
	n.joinOutside(endpoint{b, p}, Box{Name: remote, Kind: Remote}, Tunnel, p.State)
}
