package synth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
)

// Southbound is what a southbound database says of its chassis and their ports.
type Southbound struct {
	chassis  []Chassis
	bindings []binding
	networks map[string]string // of a datapath: the UUID of its logical switch or router in the northbound database
	names    map[string]string // of a datapath: the name in its external_ids
}

// Chassis is a row of the table Chassis.
type Chassis struct {
	Name     string // the system-id of the node
	Hostname string
	// Remote reports that the chassis belongs to another zone of OVN interconnection: its
	// ports are in another database.
	Remote bool

	uuid   string
	vtep   bool // it is a hardware gateway, which has no Open vSwitch
	config map[string]string
	zones  []string // transport zones
	encaps []encap
}

// Title returns the name that a user knows: the host name, or else the system-id.
func (c Chassis) Title() string { return cmp.Or(c.Hostname, c.Name) }

// encap is a row of the table Encap.
type encap struct {
	kind, ip string
	options  map[string]string
}

// binding is a row of the table Port_Binding.
type binding struct {
	port, kind, parent string
	datapath           string
	mac                string // the first word of its addresses: a MAC, "" for none
	chassis            []string
	options, ids       map[string]string
}

// Read reads a southbound database.
func Read(ctx context.Context, path string) (*Southbound, error) {
	content, _, err := file.Read(ctx, path, "Chassis", "Encap", "Port_Binding", "Datapath_Binding")
	if err != nil {
		return nil, err
	}
	if content.Info.Name != ovsdb.SB {
		return nil, fmt.Errorf("%s holds %s, not %s", path, content.Info.Name, ovsdb.SB)
	}
	s := &Southbound{networks: map[string]string{}, names: map[string]string{}}
	s.readChassis(content)
	s.readDatapaths(content)
	s.readBindings(content)
	return s, nil
}

func (s *Southbound) readChassis(content *file.Content) {
	encaps := map[string]encap{}
	for _, row := range content.Rows("Encap") {
		encaps[row.UUID] = encap{row.String("type"), row.String("ip"), row.Map("options")}
	}
	for _, row := range content.Rows("Chassis") {
		c := Chassis{uuid: row.UUID, Name: row.String("name"), Hostname: row.String("hostname"), config: chassisConfig(row),
			zones: row.Strings("transport_zones"), vtep: len(row.Strings("vtep_logical_switches")) > 0}
		c.Remote = c.config["is-remote"] == "true"
		for _, uuid := range row.UUIDs("encaps") {
			if e, ok := encaps[uuid]; ok {
				c.encaps = append(c.encaps, e)
			}
		}
		slices.SortFunc(c.encaps, func(a, b encap) int { return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.ip, b.ip)) })
		s.chassis = append(s.chassis, c)
	}
	slices.SortFunc(s.chassis, func(a, b Chassis) int {
		return cmp.Or(strings.Compare(a.Title(), b.Title()), strings.Compare(a.Name, b.Name))
	})
}

// chassisConfig returns the configuration of a node. Before OVN 20.12, ovn-controller wrote
// it to external_ids only.
func chassisConfig(row ovsdb.Row) map[string]string {
	config := row.Map("external_ids")
	for key, value := range row.Map("other_config") {
		config[key] = value
	}
	return config
}

func (s *Southbound) readDatapaths(content *file.Content) {
	for _, row := range content.Rows("Datapath_Binding") {
		ids := row.Map("external_ids")
		s.networks[row.UUID] = cmp.Or(ids["logical-switch"], ids["logical-router"])
		s.names[row.UUID] = ids["name"]
	}
}

func (s *Southbound) readBindings(content *file.Content) {
	for _, row := range content.Rows("Port_Binding") {
		b := binding{port: row.String("logical_port"), kind: row.String("type"), parent: row.String("parent_port"),
			chassis: append(row.UUIDs("chassis"), row.UUIDs("additional_chassis")...), options: row.Map("options"), ids: row.Map("external_ids")}
		for _, uuid := range row.UUIDs("datapath") {
			b.datapath = uuid
		}
		for _, addresses := range row.Strings("mac") {
			if words := strings.Fields(addresses); b.mac == "" && len(words) > 0 && strings.Count(words[0], ":") == 5 {
				b.mac = words[0]
			}
		}
		s.bindings = append(s.bindings, b)
	}
	slices.SortFunc(s.bindings, func(a, b binding) int { return strings.Compare(a.port, b.port) })
}

// Local returns the chassis whose ports the database holds, in the order of their titles:
// with OVN interconnection those of its own zone, else all. Hardware gateways are left out.
func (s *Southbound) Local() []Chassis {
	return slices.DeleteFunc(slices.Clone(s.chassis), func(c Chassis) bool { return c.Remote || c.vtep })
}

// ErrNoChassis is wrapped when a name is that of no chassis, or of several.
var ErrNoChassis = fmt.Errorf("no such chassis")

// selectByName returns the chassis of these names, each once: a name is a host name or a
// system-id.
func selectByName(all []Chassis, names []string) ([]Chassis, error) {
	var chosen []Chassis
	for _, name := range names {
		found := slices.DeleteFunc(slices.Clone(all), func(c Chassis) bool { return c.Name != name && c.Hostname != name })
		switch {
		case len(found) == 0:
			return nil, fmt.Errorf("%w: %q in the OVN SB database; there are: %s", ErrNoChassis, name, titles(all))
		case len(found) > 1:
			return nil, fmt.Errorf("%w: several are called %q: choose one by its system-id: %s, %s", ErrNoChassis, name, found[0].Name, found[1].Name)
		}
		if !slices.ContainsFunc(chosen, func(c Chassis) bool { return c.Name == found[0].Name }) {
			chosen = append(chosen, found[0])
		}
	}
	return chosen, nil
}
