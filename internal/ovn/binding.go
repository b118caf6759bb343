package ovn

import (
	"slices"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// BindingTable is the table of the southbound database with a row for each logical port.
const BindingTable = "Port_Binding"

// Binding is a row of the table Port_Binding (ovn-sb(5)).
type Binding struct {
	UUID          string
	Port          string // the logical port
	Type          string
	Parent        string   // the logical port whose interface it shares, "" for none
	VirtualParent string   // the logical port that has claimed a virtual one
	Datapath      string   // the UUID of its row
	Key, Tag      int      // the tunnel key, and the VLAN tag in the packets of its parent
	Chassis       string   // the UUID of its row, "" for none
	Additional    []string // further chassis
	Addresses     []string // the column mac: each a MAC address, followed by IP addresses
	Down          bool     // up is false; a row of OVN before 20.12 has no such column
	Options       map[string]string
	IDs           map[string]string
}

// Title returns the name of the port that a user knows, with the one in OVN.
func (b Binding) Title() string { return portTitle(b.Port, b.Type, b.IDs, b.Addresses) }

// On reports whether the port is bound to a chassis.
func (b Binding) On(chassis string) bool {
	return b.Chassis == chassis || slices.Contains(b.Additional, chassis)
}

// EachBinding calls use for each row of Port_Binding of a southbound database, in the order of the rows. It ends with the first row that
// can't be read.
func EachBinding(sb Database, use func(Binding)) error {
	return sb.Each(BindingTable, func(row ovsdb.Row) { use(readBinding(row)) }, bindingColumns()...)
}

// BindingOf returns the row of Port_Binding with a UUID; ok is false if there is none.
func BindingOf(sb *file.Index, uuid string) (b Binding, ok bool, err error) {
	row, ok, err := sb.Row(BindingTable, uuid, bindingColumns()...)
	return readBinding(row), ok, err
}

func bindingColumns() []string {
	return []string{"logical_port", "type", "parent_port", "virtual_parent", "datapath", "tunnel_key", "tag", "chassis", "additional_chassis", "mac", "up", "options", "external_ids"}
}

func readBinding(row ovsdb.Row) Binding {
	b := Binding{UUID: row.UUID, Port: row.String("logical_port"), Type: row.String("type"), Parent: row.String("parent_port"), VirtualParent: row.String("virtual_parent"),
		Additional: row.UUIDs("additional_chassis"), Addresses: row.Strings("mac"), Down: slices.Contains(row.Bools("up"), false), Options: row.Map("options"), IDs: row.Map("external_ids")}
	for _, uuid := range row.UUIDs("chassis") {
		b.Chassis = uuid
	}
	for _, uuid := range row.UUIDs("datapath") {
		b.Datapath = uuid
	}
	b.Key, _ = row.Int("tunnel_key")
	b.Tag, _ = row.Int("tag")
	return b
}
