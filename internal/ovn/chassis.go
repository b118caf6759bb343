package ovn

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
)

// Database is a database whose rows are read: the index of a file, or its content.
type Database interface {
	Each(table string, use func(ovsdb.Row), columns ...string) error
}

// ChassisTable is the table of the southbound database with a row for each node, and for other ends of tunnels.
const ChassisTable = "Chassis"

// Chassis is a row of the table Chassis (ovn-sb(5)).
type Chassis struct {
	UUID     string
	Name     string // the system-id
	Hostname string
	Encaps   []Encap
	Config   map[string]string // the settings of its ovn-controller
	Zones    []string          // the transport zones
	VTEP     bool              // it is a hardware gateway
}

// Encap is an address of the tunnels of a chassis.
type Encap struct {
	Type, IP string
	Options  map[string]string
}

// Networks returns the physical networks that the chassis reaches.
func (c Chassis) Networks() (names []string) {
	for mapping := range strings.SplitSeq(c.Config["ovn-bridge-mappings"], ",") {
		if name, _, ok := strings.Cut(strings.TrimSpace(mapping), ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

// Remote reports whether the chassis is of another zone.
func (c Chassis) Remote() bool { return c.Config["is-remote"] == "true" }

// Title returns the name of the chassis that a user knows.
func (c Chassis) Title() string { return cmp.Or(c.Hostname, c.Name) }

// ChassisConfig returns the settings of the ovn-controller of a row of Chassis. Before OVN 20.06, all were in external_ids.
func ChassisConfig(row ovsdb.Row) map[string]string {
	config := row.Map("external_ids")
	maps.Copy(config, row.Map("other_config"))
	return config
}

// ReadChassis returns the chassis of a southbound database, in the order of their names. With an error, it returns the chassis before the row
// that can't be read.
func ReadChassis(sb Database) (all []Chassis, err error) {
	encaps := map[string]Encap{}
	err = sb.Each("Encap", func(row ovsdb.Row) {
		encaps[row.UUID] = Encap{row.String("type"), row.String("ip"), row.Map("options")}
	}, "type", "ip", "options")
	if err != nil {
		return nil, err
	}
	err = sb.Each(ChassisTable, func(row ovsdb.Row) {
		c := Chassis{UUID: row.UUID, Name: row.String("name"), Hostname: row.String("hostname"), Config: ChassisConfig(row),
			Zones: row.Strings("transport_zones"), VTEP: len(row.Strings("vtep_logical_switches")) > 0}
		for _, uuid := range row.UUIDs("encaps") {
			if encap, ok := encaps[uuid]; ok {
				c.Encaps = append(c.Encaps, encap)
			}
		}
		slices.SortFunc(c.Encaps, func(a, b Encap) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.IP, b.IP)) })
		all = append(all, c)
	}, "name", "hostname", "encaps", "external_ids", "other_config", "transport_zones", "vtep_logical_switches")
	slices.SortStableFunc(all, func(a, b Chassis) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}
