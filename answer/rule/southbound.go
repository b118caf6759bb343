package rule

import (
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
)

// Binding is a row of the table Port_Binding.
type Binding struct {
	UUID     string
	Port     string // the logical port
	Type     string
	Datapath string // UUIDs of rows
	Chassis  string // "" for none
	Key      int    // the tunnel key
	Down     bool   // up is false; a row of OVN before 20.12 has no such column
	Options  map[string]string
	IDs      map[string]string
}

// Title returns the name of the port that a user knows, with the one in OVN.
func (b Binding) Title() string { return PortTitle(b.Port, b.IDs) }

// PortTitle returns the name of a logical port that a user knows, with the one in OVN.
func PortTitle(port string, ids map[string]string) string {
	if pod := ovn.PodName(port, ids); pod != "" {
		return "pod " + pod + " (port " + port + ")"
	}
	if name := ids["neutron:port_name"]; name != "" && name != port {
		return "port " + name + " (" + port + ")"
	}
	return "port " + port
}

// southbound is what rules need of the southbound database. It is read once.
type southbound struct {
	chassis  []ovn.Chassis
	bindings map[string]Binding
}

// Chassis returns the chassis of the southbound database, none where it was not collected.
func (d *Deployment) Chassis() ([]ovn.Chassis, error) {
	read, err := d.southbound()
	if err != nil {
		return nil, err
	}
	return read.chassis, nil
}

// Bindings returns the rows of Port_Binding by their logical ports, none where the southbound
// database was not collected.
func (d *Deployment) Bindings() (map[string]Binding, error) {
	read, err := d.southbound()
	if err != nil {
		return nil, err
	}
	return read.bindings, nil
}

// ChassisOf returns the chassis of a node; ok is false where the southbound database has none.
func (n *Node) ChassisOf() (chassis ovn.Chassis, ok bool, err error) {
	settings, err := n.Settings()
	if err != nil {
		return chassis, false, err
	}
	all, err := n.Deployment.Chassis()
	for _, c := range all {
		if c.Name == settings.Chassis() && c.Name != "" {
			return c, true, err
		}
	}
	return chassis, false, err
}

func readSouthbound(sb *file.Index) (*southbound, error) {
	read := &southbound{bindings: map[string]Binding{}}
	var err error
	if read.chassis, err = ovn.ReadChassis(sb); err != nil {
		return nil, err
	}
	err = sb.Each("Port_Binding", func(row ovsdb.Row) {
		b := Binding{UUID: row.UUID, Port: row.String("logical_port"), Type: row.String("type"), Options: row.Map("options"), IDs: row.Map("external_ids")}
		for _, uuid := range row.UUIDs("chassis") {
			b.Chassis = uuid
		}
		for _, uuid := range row.UUIDs("datapath") {
			b.Datapath = uuid
		}
		b.Key, _ = row.Int("tunnel_key")
		for _, up := range row.Bools("up") {
			b.Down = !up
		}
		read.bindings[b.Port] = b
	}, "logical_port", "type", "chassis", "datapath", "tunnel_key", "up", "options", "external_ids")
	return read, err
}
