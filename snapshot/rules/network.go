package rules

import (
	"slices"
	"strings"
	"sync"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// Network has the datapaths, the ports and the sets of a southbound database, each read when it
// is first asked for. Its methods may be called concurrently.
type Network struct {
	sb     *file.Index
	called func(ovn.Datapath) string

	datapaths func() datapaths
	ports     func() map[portKey]Port
	named     func() map[string]Port // the ports by their names in OVN
	// members are the names of the ports of each port group.
	members     func() map[string]map[string]bool
	addressSets func() map[string][]string
}

// newNetwork returns the network of a southbound database. called returns what users call a datapath,
// "" for its own name.
func newNetwork(sb *file.Index, called func(ovn.Datapath) string) *Network {
	n := &Network{sb: sb, called: called}
	n.datapaths = sync.OnceValue(n.readDatapaths)
	n.ports = sync.OnceValue(n.readPorts)
	n.named = sync.OnceValue(n.readNamed)
	n.members = sync.OnceValue(n.readMembers)
	n.addressSets = sync.OnceValue(n.readAddressSets)
	return n
}

// datapaths are all datapaths, by the UUIDs of their rows and by their tunnel keys.
type datapaths struct {
	byUUID map[string]ovn.Datapath
	byKey  map[uint64]ovn.Datapath
}

func (n *Network) readDatapaths() datapaths {
	byUUID, _ := ovn.Datapaths(n.sb) // the rows that can't be read have no names
	byKey := map[uint64]ovn.Datapath{}
	for uuid, datapath := range byUUID {
		datapath.Called = n.called(datapath)
		byUUID[uuid], byKey[datapath.Key] = datapath, datapath
	}
	return datapaths{byUUID, byKey}
}

// Datapath returns the datapath with a tunnel key.
func (n *Network) Datapath(key uint64) ovn.Datapath {
	if d, ok := n.datapaths().byKey[key]; ok {
		return d
	}
	return ovn.Datapath{Key: key}
}

// DatapathsOf returns the UUIDs of the datapaths of a logical flow.
func (n *Network) DatapathsOf(logicalFlow ovsdb.Row) []string {
	return ovn.DatapathsOf(logicalFlow, func(group string) []string {
		row, _, _ := n.sb.Row(ovn.DatapathGroupTable, group, "datapaths") // a group that can't be read has no members
		return row.UUIDs("datapaths")
	})
}

// Has reports whether a logical flow applies to the datapath with a name.
func (n *Network) Has(logicalFlow ovsdb.Row, datapath string) bool {
	return slices.ContainsFunc(n.DatapathsOf(logicalFlow), func(id string) bool { return n.datapaths().byUUID[id].Name == datapath })
}

// datapathOfFlow returns the datapath of a logical flow that has a tunnel key, or if the key is
// 0, its only datapath. member is false if none of its datapaths has the key.
func (n *Network) datapathOfFlow(logicalFlow ovsdb.Row, key uint64) (d ovn.Datapath, member bool) {
	all, ids := n.datapaths().byUUID, n.DatapathsOf(logicalFlow)
	for _, id := range ids {
		if all[id].Key == key {
			return all[id], true
		}
	}
	if key != 0 {
		return ovn.Datapath{}, false
	}
	if len(ids) == 1 {
		return all[ids[0]], true
	}
	return ovn.Datapath{}, true
}

// datapathOf returns the datapath of a row that has one, or else the flow's.
func (n *Network) datapathOf(row ovsdb.Row, f Flow) ovn.Datapath {
	for _, id := range row.UUIDs("datapath") {
		return n.datapaths().byUUID[id]
	}
	return n.Datapath(f.Metadata)
}

// portKey identifies a port by the tunnel keys of its datapath and of itself.
type portKey struct{ datapath, port uint64 }

// Port is a logical port or a multicast group, as the registers of flows hold them by
// their tunnel keys.
type Port struct {
	Name  string // in OVN
	Given string // by a user, or else its name in OVN
	// Addresses are the addresses of a port binding: each a MAC address, followed by IP addresses.
	Addresses []string
	Bound     bool // to a chassis
	Multicast bool // a group of ports
	// Patch is set for one end of the connection of a switch and a router: it is bound to no
	// chassis, and each chassis with its datapath has its flows.
	Patch bool
	// Virtual is set for a port whose packets its parent sends and receives, with the parent's
	// own MAC address: no flow delivers to the port itself.
	Virtual bool
}

// String returns the name that a user gave, with the name in OVN, or only the latter.
func (p Port) String() string { return ovn.Called(p.Given, p.Name) }

// Port returns the port with a tunnel key in the datapath with another; ok is false if
// there is none.
func (n *Network) Port(datapath, key uint64) (p Port, ok bool) {
	p, ok = n.ports()[portKey{datapath, key}]
	return p, ok
}

func (n *Network) readPorts() map[portKey]Port {
	ports := map[portKey]Port{}
	add := func(datapath string, key int, p Port) {
		if datapath != "" {
			ports[portKey{n.datapaths().byUUID[datapath].Key, uint64(key)}] = p
		}
	}
	// The groups and the ports that can't be read have no names.
	_ = n.sb.Each("Multicast_Group", func(row ovsdb.Row) {
		key, _ := row.Int("tunnel_key")
		add(strings.Join(row.UUIDs("datapath"), " "), key, Port{Name: row.String("name"), Multicast: true})
	}, "datapath", "tunnel_key", "name")
	_ = ovn.EachBinding(n.sb, func(b ovn.Binding) {
		add(b.Datapath, b.Key, Port{Name: b.Port, Given: ovn.PortName(b.Port, b.Type, b.IDs, b.Addresses), Addresses: b.Addresses, Bound: b.Chassis != "", Patch: b.Type == "patch", Virtual: b.Type == "virtual"})
	})
	return ports
}

// PortNamed returns the port with a name in OVN; ok is false if there is none.
func (n *Network) PortNamed(name string) (p Port, ok bool) {
	p, ok = n.named()[name]
	return p, ok
}

func (n *Network) readNamed() map[string]Port {
	named := map[string]Port{}
	for _, p := range n.ports() {
		named[p.Name] = p
	}
	return named
}

// Holds reports whether a port group holds a logical port.
func (n *Network) Holds(group, port string) bool {
	return n.members()[group][port]
}

// readMembers returns the names of the ports that each port group of the southbound database
// holds.
func (n *Network) readMembers() map[string]map[string]bool {
	members := map[string]map[string]bool{}
	for row, err := range n.sb.Rows("Port_Group", "name", "ports") {
		if err != nil {
			break // groups that can't be read hold no ports
		}
		// The name is KEY_NAME, with the tunnel key of the datapath (northd/northd.c).
		_, name, _ := strings.Cut(row.String("name"), "_")
		if members[name] == nil {
			members[name] = map[string]bool{}
		}
		for _, port := range row.Strings("ports") {
			members[name][port] = true
		}
	}
	return members
}

func (n *Network) readAddressSets() map[string][]string {
	sets := map[string][]string{}
	for row, err := range n.sb.Rows("Address_Set", "name", "addresses") {
		if err != nil {
			break // sets that can't be read hold no addresses
		}
		sets[row.String("name")] = row.Strings("addresses")
	}
	return sets
}
