package restore

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/snapshot/node"
)

// Bridge is a bridge of the database.
type Bridge struct {
	Name         string
	UUID         string
	DatapathType string
	FailMode     string
	Protocols    []string
	OtherConfig  map[string]string
	Ports        []*Port

	controllers           []string // the UUIDs of its Controller rows
	mirrors               []string // the UUIDs of its Mirror rows
	sFlow, ipfix, netFlow string   // the UUIDs of its monitor rows, "" for none
	snoops                bool     // multicast
	tree                  string   // the column that enables its spanning tree, "" for none

	failedOpen    bool             // on the live node
	withheld      []*Port          // the ports that are added later, in order
	withheldSFlow ovsdb.Columns    // the sFlow row that is added later
	speaks        openflow.Version // the newest version that the bridge accepts; 0 until known
}

// Port is a port of a bridge: one interface, or the members of a bond.
type Port struct {
	Name       string
	UUID       string
	LACP       string
	VLANMode   string
	Tag        int
	Interfaces []*Interface
}

// Interface is one interface.
type Interface struct {
	Name      string
	UUID      string
	Type      string
	OfPort    int // 0 if the database has none
	Requested int // ofport_request
	Error     string
	Options   map[string]string
	BFD       bool // it has a BFD session
}

// loadBridges reads the bridges and their ports, both sorted by name.
func loadBridges(ctx context.Context, db *ovsdb.Client) ([]*Bridge, error) {
	interfaces, err := loadInterfaces(ctx, db)
	if err != nil {
		return nil, err
	}
	ports, err := loadPorts(ctx, db, interfaces)
	if err != nil {
		return nil, err
	}
	rows, err := db.Select(ctx, "Bridge", "name", "datapath_type", "fail_mode", "protocols", "other_config", "controller", "ports", "mirrors",
		"sflow", "ipfix", "netflow", "mcast_snooping_enable", "stp_enable", "rstp_enable")
	if err != nil {
		return nil, err
	}
	var bridges []*Bridge
	for _, row := range rows {
		bridge := &Bridge{Name: row.String("name"), UUID: row.UUID, DatapathType: row.String("datapath_type"), FailMode: row.String("fail_mode"),
			Protocols: row.Strings("protocols"), OtherConfig: row.Map("other_config"),
			controllers: row.UUIDs("controller"), mirrors: row.UUIDs("mirrors"), snoops: row.Bool("mcast_snooping_enable"),
			sFlow: firstOf(row.UUIDs("sflow")), ipfix: firstOf(row.UUIDs("ipfix")), netFlow: firstOf(row.UUIDs("netflow"))}
		for _, column := range []string{"stp_enable", "rstp_enable"} {
			if row.Bool(column) {
				bridge.tree = column
			}
		}
		for _, id := range row.UUIDs("ports") {
			if port := ports[id]; port != nil {
				bridge.Ports = append(bridge.Ports, port)
			}
		}
		slices.SortFunc(bridge.Ports, func(p, q *Port) int { return cmp.Compare(p.Name, q.Name) })
		bridges = append(bridges, bridge)
	}
	slices.SortFunc(bridges, func(a, b *Bridge) int { return cmp.Compare(a.Name, b.Name) })
	return bridges, nil
}

func loadInterfaces(ctx context.Context, db *ovsdb.Client) (map[string]*Interface, error) {
	rows, err := db.Select(ctx, "Interface", "name", "type", "ofport", "ofport_request", "error", "options", "bfd")
	if err != nil {
		return nil, err
	}
	byID := map[string]*Interface{}
	for _, row := range rows {
		iface := &Interface{Name: row.String("name"), UUID: row.UUID, Type: row.String("type"), Error: row.String("error"), Options: row.Map("options")}
		iface.OfPort, _ = row.Int("ofport")
		iface.Requested, _ = row.Int("ofport_request")
		iface.BFD = row.Map("bfd")["enable"] == "true"
		byID[row.UUID] = iface
	}
	return byID, nil
}

func loadPorts(ctx context.Context, db *ovsdb.Client, interfaces map[string]*Interface) (map[string]*Port, error) {
	rows, err := db.Select(ctx, "Port", "name", "lacp", "interfaces", "vlan_mode", "tag")
	if err != nil {
		return nil, err
	}
	byID := map[string]*Port{}
	for _, row := range rows {
		port := &Port{Name: row.String("name"), UUID: row.UUID, LACP: row.String("lacp"), VLANMode: row.String("vlan_mode")}
		port.Tag, _ = row.Int("tag")
		for _, id := range row.UUIDs("interfaces") {
			if iface := interfaces[id]; iface != nil {
				port.Interfaces = append(port.Interfaces, iface)
			}
		}
		byID[row.UUID] = port
	}
	return byID, nil
}

// Interfaces lists all interfaces of a bridge.
func (b *Bridge) Interfaces() []*Interface {
	var all []*Interface
	for _, port := range b.Ports {
		all = append(all, port.Interfaces...)
	}
	return all
}

// interfaceAt finds the interface with an OpenFlow port number, in digits or
// LOCAL; ok is false if the bridge has none.
func (b *Bridge) interfaceAt(number string) (name string, ok bool) {
	if number == portWord(openflow.PortLocal) {
		return b.Name, true
	}
	for _, iface := range b.Interfaces() {
		if strconv.Itoa(iface.OfPort) == number {
			return iface.Name, true
		}
	}
	return "", false
}

// portWord spells an OpenFlow port number as ovs-appctl does.
func portWord(number int) string {
	if number == openflow.PortLocal {
		return "LOCAL"
	}
	return strconv.Itoa(number)
}

// allowsVersion reports whether the bridge is configured to accept an OpenFlow version.
// Without protocols it accepts all that ovs-vswitchd enables by default.
func (b *Bridge) allowsVersion(version openflow.Version) bool {
	return len(b.Protocols) == 0 || slices.Contains(b.Protocols, version.String())
}

// hasKernelDatapath reports whether the bridge's datapath is the kernel's.
func (b *Bridge) hasKernelDatapath() bool { return b.DatapathType == "" || b.DatapathType == "system" }

// isDevice reports whether the interface is a dummy device in a replica. Tunnels are real
// ones despite --enable-dummy.
func (i *Interface) isDevice() bool { return i.Type != "patch" && !node.IsTunnel(i.Type) }

// firstOf returns the element of a column that holds at most one, "" for none.
func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
