package timeline

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/snapshot/node"
	"ovs-offline/snapshot/rules"
)

// Name is what users call what a word of a text stands for.
type Name struct {
	Word string `json:"word"`
	Name string `json:"name"`
}

// namer finds the names of OVN and Open vSwitch in texts, and what users call them.
type namer struct {
	deployments []*snapshot.Deployment
	ports       map[string]string            // the names of endpoints by their logical ports
	interfaces  map[string]map[string]string // by node: the logical ports of interfaces by their names
	chassis     map[string]string            // host names or nodes by the names of chassis
	titles      map[string]string            // of chassis, by the UUIDs of their rows
	rows        []northbound
	known       map[string]string // what UUIDs stand for, as far as they were asked for; "" for nothing
}

// northbound describes the rows of a northbound database.
type northbound struct {
	*rules.Northbound
	tables []string
}

func openNames(ctx context.Context, selected *snapshot.Snapshot) (*namer, error) {
	deployments, _, err := selected.Deployments(ctx)
	if err != nil {
		return nil, err
	}
	n := &namer{deployments: deployments, ports: map[string]string{}, interfaces: map[string]map[string]string{}, chassis: map[string]string{}, titles: map[string]string{}, known: map[string]string{}}
	if err := n.read(ctx); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *namer) close() { snapshot.CloseAll(n.deployments) }

func (n *namer) read(ctx context.Context) error {
	endpoints, err := names.Load(ctx, n.deployments)
	if err != nil {
		return err
	}
	for _, endpoint := range endpoints.All() {
		if endpoint.LogicalPort != "" && endpoint.Name != "" && endpoint.Name != endpoint.LogicalPort {
			n.ports[endpoint.LogicalPort] = endpoint.Name
		}
	}
	for _, d := range n.deployments {
		if err := n.readChassis(d); err != nil {
			return err
		}
		for _, member := range d.Nodes {
			if err := n.readInterfaces(member); err != nil {
				return err
			}
		}
		if d.NB != nil {
			n.rows = append(n.rows, northbound{rules.New(d.NB, d.SB).Northbound, d.NB.Tables()})
		}
	}
	return nil
}

func (n *namer) readChassis(d *snapshot.Deployment) error {
	if d.SB == nil {
		return nil
	}
	all, err := ovn.ReadChassis(d.SB)
	for _, c := range all {
		if c.Title() != c.Name {
			n.chassis[c.Name] = c.Hostname
		}
		n.titles[c.UUID] = c.Title()
	}
	return err
}

func (n *namer) readInterfaces(member snapshot.Member) error {
	bridges, err := node.Bridges(member.OVS)
	if err != nil {
		return err
	}
	ports := map[string]string{}
	for face := range node.Interfaces(bridges...) {
		if id := face.IDs["iface-id"]; id != "" && id != face.Name {
			ports[face.Name] = id
		}
	}
	n.interfaces[member.Name] = ports
	settings, err := ovn.ReadSettings(member.OVS)
	if name := settings.Chassis(); name != "" && name != member.Name {
		n.chassis[name] = member.Name
	}
	return err
}

// in returns what users call what a text of a node names, each word once.
func (n *namer) in(node, text string) (all []Name) {
	for at := 0; at < len(text); {
		length := wordLength(text[at:])
		if length == 0 {
			at++
			continue
		}
		word := strings.TrimRight(text[at:at+length], ".-@")
		if name := n.nameOf(node, word); name != "" && !slices.Contains(all, Name{word, name}) {
			all = append(all, Name{word, name})
		}
		at += length
	}
	return all
}

// wordLength returns the length of the word at the beginning of a text. A word has the bytes that names of
// ports and interfaces and UUIDs consist of.
func wordLength(text string) int {
	for i, c := range []byte(text) {
		isLetter := c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
		if !isLetter && (i == 0 || c != '.' && c != '-' && c != '@') {
			return i
		}
	}
	return len(text)
}

// nameOf returns what users call a port, an interface, a chassis or a row; "" if they have no other
// name for it.
func (n *namer) nameOf(node, word string) string {
	if name := cmp.Or(n.ports[word], n.chassis[word]); name != "" {
		return name
	}
	if port, ok := n.interfaces[node][word]; ok {
		return cmp.Or(n.ports[port], port)
	}
	const gateway = "cr-" // of the port that OVN derives from a distributed gateway port
	if port, ok := strings.CutPrefix(word, gateway); ok && n.ports[port] != "" {
		return gateway + n.ports[port]
	}
	if ovsdb.IsUUID(word) {
		return n.row(word)
	}
	return ""
}

// row describes the row with a UUID, "" if no database has it.
func (n *namer) row(uuid string) string {
	const most = 100_000
	if name, ok := n.known[uuid]; ok {
		return name
	}
	if len(n.known) >= most {
		clear(n.known)
	}
	name := cmp.Or(n.northboundRow(uuid), n.southboundRow(uuid))
	n.known[uuid] = name
	return name
}

func (n *namer) northboundRow(uuid string) string {
	for _, db := range n.rows {
		for _, table := range db.tables {
			if words, err := db.DescribeNorthbound(table, uuid); err == nil && words != "" {
				return words
			}
		}
	}
	return ""
}

// southboundRow describes the row of a datapath, a port or a chassis.
func (n *namer) southboundRow(uuid string) string {
	for _, d := range n.deployments {
		if d.SB == nil {
			continue
		}
		if row, ok, err := d.SB.Row(ovn.DatapathTable, uuid); ok && err == nil {
			return ovn.ReadDatapath(row).String()
		}
		if b, ok, err := ovn.BindingOf(d.SB, uuid); ok && err == nil {
			return cmp.Or(n.ports[b.Port], b.Port)
		}
	}
	return n.titles[uuid]
}
