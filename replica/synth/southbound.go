package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
)

// Southbound holds the chassis of a southbound database and their ports.
type Southbound struct {
	chassis   []Chassis
	bindings  []binding
	datapaths map[string]ovn.Datapath // by the UUIDs of their rows
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
	content, _, err := file.Read(ctx, path, "Chassis", "Encap", "Port_Binding", ovn.DatapathTable)
	if err != nil {
		return nil, err
	}
	if content.Info.Name != ovsdb.SB {
		return nil, fmt.Errorf("%s holds %s, not %s", path, content.Info.Name, ovsdb.SB)
	}
	southbound := &Southbound{datapaths: map[string]ovn.Datapath{}}
	southbound.readChassis(content)
	for _, row := range content.Rows(ovn.DatapathTable) {
		southbound.datapaths[row.UUID] = ovn.ReadDatapath(row)
	}
	southbound.readBindings(content)
	return southbound, nil
}

func (s *Southbound) readChassis(content *file.Content) {
	encaps := map[string]encap{}
	for _, row := range content.Rows("Encap") {
		encaps[row.UUID] = encap{row.String("type"), row.String("ip"), row.Map("options")}
	}
	for _, row := range content.Rows("Chassis") {
		chassis := Chassis{uuid: row.UUID, Name: row.String("name"), Hostname: row.String("hostname"), config: chassisConfig(row),
			zones: row.Strings("transport_zones"), vtep: len(row.Strings("vtep_logical_switches")) > 0}
		chassis.Remote = chassis.config["is-remote"] == "true"
		for _, uuid := range row.UUIDs("encaps") {
			if encap, ok := encaps[uuid]; ok {
				chassis.encaps = append(chassis.encaps, encap)
			}
		}
		slices.SortFunc(chassis.encaps, func(a, b encap) int { return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.ip, b.ip)) })
		s.chassis = append(s.chassis, chassis)
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

func (s *Southbound) readBindings(content *file.Content) {
	for _, row := range content.Rows("Port_Binding") {
		binding := binding{port: row.String("logical_port"), kind: row.String("type"), parent: row.String("parent_port"),
			chassis: append(row.UUIDs("chassis"), row.UUIDs("additional_chassis")...), options: row.Map("options"), ids: row.Map("external_ids")}
		for _, uuid := range row.UUIDs("datapath") {
			binding.datapath = uuid
		}
		for _, addresses := range row.Strings("mac") {
			if words := strings.Fields(addresses); binding.mac == "" && len(words) > 0 && strings.Count(words[0], ":") == 5 {
				binding.mac = words[0]
			}
		}
		s.bindings = append(s.bindings, binding)
	}
	slices.SortFunc(s.bindings, func(a, b binding) int { return strings.Compare(a.port, b.port) })
}

// Local returns the chassis whose ports the database holds, in the order of their titles:
// with OVN interconnection the chassis of its own zone, else all. Hardware gateways are left out.
func (s *Southbound) Local() []Chassis {
	return slices.DeleteFunc(slices.Clone(s.chassis), func(chassis Chassis) bool { return chassis.Remote || chassis.vtep })
}

// ErrNoChassis is wrapped when no chassis has a name, or several have it.
var ErrNoChassis = fault.Wrap(fault.Usage, errors.New("no such chassis"))

// selectByName returns the chassis of these names, each once: a name is a host name or a
// system-id.
func selectByName(all []Chassis, names []string) ([]Chassis, error) {
	var chosen []Chassis
	for _, name := range names {
		found := slices.DeleteFunc(slices.Clone(all), func(chassis Chassis) bool { return chassis.Name != name && chassis.Hostname != name })
		switch {
		case len(found) == 0:
			return nil, fmt.Errorf("%w: %q in the OVN SB database; there are: %s", ErrNoChassis, name, titles(all))
		case len(found) > 1:
			return nil, fmt.Errorf("%w: several are called %q: choose one by its system-id: %s, %s", ErrNoChassis, name, found[0].Name, found[1].Name)
		}
		if !slices.ContainsFunc(chosen, func(chassis Chassis) bool { return chassis.Name == found[0].Name }) {
			chosen = append(chosen, found[0])
		}
	}
	return chosen, nil
}
