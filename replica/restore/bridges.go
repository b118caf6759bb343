package restore

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
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
	for _, r := range rows {
		b := &Bridge{Name: r.String("name"), UUID: r.UUID, DatapathType: r.String("datapath_type"), FailMode: r.String("fail_mode"),
			Protocols: r.Strings("protocols"), OtherConfig: r.Map("other_config"),
			controllers: r.UUIDs("controller"), mirrors: r.UUIDs("mirrors"), snoops: r.Bool("mcast_snooping_enable"),
			sFlow: first(r.UUIDs("sflow")), ipfix: first(r.UUIDs("ipfix")), netFlow: first(r.UUIDs("netflow"))}
		for _, column := range []string{"stp_enable", "rstp_enable"} {
			if r.Bool(column) {
				b.tree = column
			}
		}
		for _, id := range r.UUIDs("ports") {
			if p := ports[id]; p != nil {
				b.Ports = append(b.Ports, p)
			}
		}
		slices.SortFunc(b.Ports, func(p, q *Port) int { return cmp.Compare(p.Name, q.Name) })
		bridges = append(bridges, b)
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
	for _, r := range rows {
		i := &Interface{Name: r.String("name"), UUID: r.UUID, Type: r.String("type"), Error: r.String("error"), Options: r.Map("options")}
		i.OfPort, _ = r.Int("ofport")
		i.Requested, _ = r.Int("ofport_request")
		i.BFD = r.Map("bfd")["enable"] == "true"
		byID[r.UUID] = i
	}
	return byID, nil
}

func loadPorts(ctx context.Context, db *ovsdb.Client, interfaces map[string]*Interface) (map[string]*Port, error) {
	rows, err := db.Select(ctx, "Port", "name", "lacp", "interfaces", "vlan_mode", "tag")
	if err != nil {
		return nil, err
	}
	byID := map[string]*Port{}
	for _, r := range rows {
		p := &Port{Name: r.String("name"), UUID: r.UUID, LACP: r.String("lacp"), VLANMode: r.String("vlan_mode")}
		p.Tag, _ = r.Int("tag")
		for _, id := range r.UUIDs("interfaces") {
			if i := interfaces[id]; i != nil {
				p.Interfaces = append(p.Interfaces, i)
			}
		}
		byID[r.UUID] = p
	}
	return byID, nil
}

// Interfaces lists all interfaces of a bridge.
func (b *Bridge) Interfaces() []*Interface {
	var all []*Interface
	for _, p := range b.Ports {
		all = append(all, p.Interfaces...)
	}
	return all
}

// interfaceAt finds the interface with an OpenFlow port number, in digits or
// LOCAL; ok is false if the bridge has none.
func (b *Bridge) interfaceAt(number string) (name string, ok bool) {
	if number == portWord(openflow.PortLocal) {
		return b.Name, true
	}
	for _, i := range b.Interfaces() {
		if strconv.Itoa(i.OfPort) == number {
			return i.Name, true
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

// allows reports whether the bridge is configured to accept an OpenFlow version.
// Without protocols it accepts all that ovs-vswitchd enables by default.
func (b *Bridge) allows(v openflow.Version) bool {
	return len(b.Protocols) == 0 || slices.Contains(b.Protocols, v.String())
}

// hasKernelDatapath reports whether the bridge's datapath is the kernel's.
func (b *Bridge) hasKernelDatapath() bool { return b.DatapathType == "" || b.DatapathType == "system" }

// isTunnel reports whether interfaces of a type are real tunnels despite
// --enable-dummy.
func isTunnel(kind string) bool {
	kinds := []string{"geneve", "gre", "vxlan", "lisp", "stt", "erspan", "ip6erspan", "ip6gre", "gtpu", "bareudp", "srv6"}
	return slices.Contains(kinds, kind)
}

// isDevice reports whether the interface is a dummy device in a replica.
func (i *Interface) isDevice() bool { return i.Type != "patch" && !isTunnel(i.Type) }

// first returns the element of a column that holds at most one, "" for none.
func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
