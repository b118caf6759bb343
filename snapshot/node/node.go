package node

import (
	"cmp"
	"iter"
	"slices"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// Bridge is a bridge with its ports in the order of the database.
type Bridge struct {
	Name         string
	DatapathType string // "netdev" for the userspace datapath, "" or "system" for the kernel's
	Ports        []*Port
}

// Port is a port of a bridge: one interface, or several of a bond.
type Port struct {
	Bridge     *Bridge
	Name       string
	Tag        int               // the VLAN of an access port, 0 for none
	Config     map[string]string // other_config
	IDs        map[string]string // external_ids
	Interfaces []*Interface
}

// Interface is an interface of a port.
type Interface struct {
	Port         *Port
	Name, Type   string
	Number       int // of OpenFlow, 0 if it was not recorded, negative if it had none
	IDs, Options map[string]string
}

// Bridges reads the bridges of an OVS database, in the order of their names, as their ports and interfaces are; a nil database has none.
func Bridges(conf *file.Index) ([]*Bridge, error) {
	if conf == nil {
		return nil, nil
	}
	interfaces := map[string]*Interface{}
	for row, err := range conf.Rows("Interface", "name", "type", "ofport", "external_ids", "options") {
		if err != nil {
			return nil, err
		}
		iface := &Interface{Name: row.String("name"), Type: row.String("type"), IDs: row.Map("external_ids"), Options: row.Map("options")}
		iface.Number, _ = row.Int("ofport")
		interfaces[row.UUID] = iface
	}
	ports := map[string]*Port{}
	for row, err := range conf.Rows("Port", "name", "tag", "other_config", "external_ids", "interfaces") {
		if err != nil {
			return nil, err
		}
		ports[row.UUID] = newPort(row, interfaces)
	}
	var bridges []*Bridge
	for row, err := range conf.Rows("Bridge", "name", "datapath_type", "ports") {
		if err != nil {
			return nil, err
		}
		bridge := &Bridge{Name: row.String("name"), DatapathType: row.String("datapath_type")}
		for _, id := range row.UUIDs("ports") {
			if port := ports[id]; port != nil {
				port.Bridge = bridge
				bridge.Ports = append(bridge.Ports, port)
			}
		}
		slices.SortFunc(bridge.Ports, func(a, b *Port) int { return cmp.Compare(a.Name, b.Name) })
		bridges = append(bridges, bridge)
	}
	slices.SortFunc(bridges, func(a, b *Bridge) int { return cmp.Compare(a.Name, b.Name) })
	return bridges, nil
}

func newPort(row ovsdb.Row, interfaces map[string]*Interface) *Port {
	port := &Port{Name: row.String("name"), Config: row.Map("other_config"), IDs: row.Map("external_ids")}
	port.Tag, _ = row.Int("tag")
	for _, id := range row.UUIDs("interfaces") {
		if iface := interfaces[id]; iface != nil {
			iface.Port = port
			port.Interfaces = append(port.Interfaces, iface)
		}
	}
	slices.SortFunc(port.Interfaces, func(a, b *Interface) int { return cmp.Compare(a.Name, b.Name) })
	return port
}

// Interfaces yields the interfaces of bridges.
func Interfaces(bridges ...*Bridge) iter.Seq[*Interface] {
	return func(yield func(*Interface) bool) {
		for _, bridge := range bridges {
			for _, port := range bridge.Ports {
				for _, iface := range port.Interfaces {
					if !yield(iface) {
						return
					}
				}
			}
		}
	}
}
