package synth

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/phrase"
)

// Northbound has what a northbound database says about chassis: it has no table of them.
type Northbound struct {
	names    []string            // of the chassis, sorted
	remote   map[string]bool     // those of other zones of OVN interconnection
	ports    map[string][]string // the chassis of ports that name one, the main one first
	networks []string            // the physical networks of localnet ports
	unplaced int                 // ports of VMs or pods that name no chassis
	invented bool                // no row names a chassis
}

// ReadNorthbound reads a northbound database.
func ReadNorthbound(ctx context.Context, path string) (*Northbound, error) {
	content, _, err := file.Read(ctx, path, "NB_Global", "Logical_Switch_Port", "Logical_Router", "Gateway_Chassis", "HA_Chassis")
	if err != nil {
		return nil, err
	}
	if content.Info.Name != ovsdb.NB {
		return nil, fmt.Errorf("%s holds %s, not %s", path, content.Info.Name, ovsdb.NB)
	}
	n := &Northbound{remote: map[string]bool{}, ports: map[string][]string{}}
	local := map[string]bool{}
	networks := map[string]bool{}
	for _, row := range content.Rows("Logical_Switch_Port") {
		n.readPort(row, local, networks)
	}
	for _, table := range []string{"Gateway_Chassis", "HA_Chassis"} {
		for _, row := range content.Rows(table) {
			local[row.String("chassis_name")] = true
		}
	}
	for _, row := range content.Rows("Logical_Router") {
		local[row.Value("options", "chassis")] = true
	}
	zone := ""
	for _, row := range content.Rows("NB_Global") { // it has one row
		zone = row.String("name")
	}
	n.complete(local, networks, zone)
	return n, nil
}

// readPort notes the chassis and the physical network that a port names.
func (n *Northbound) readPort(row ovsdb.Row, local, networks map[string]bool) {
	var chassis []string
	for name := range strings.SplitSeq(row.Value("options", "requested-chassis"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			chassis = append(chassis, name)
		}
	}
	switch kind := row.String("type"); {
	case kind == "remote":
		for _, name := range chassis {
			n.remote[name] = true
		}
	case kind == "localnet":
		networks[row.Value("options", "network_name")] = true
	case len(chassis) > 0:
		for _, name := range chassis {
			local[name] = true
		}
		n.ports[row.String("name")] = chassis
	case kind == "" && len(row.Strings("parent_name")) == 0:
		n.unplaced++
	}
}

// complete makes the lists of what the rows name. A zone of interconnection has the name of its
// node, whose chassis the ports of the zone are on.
func (n *Northbound) complete(local, networks map[string]bool, zone string) {
	delete(local, "")
	delete(networks, "")
	if len(local) == 0 {
		n.invented = true
		local[cmp.Or(zone, "chassis-1")] = true
	}
	for name := range local {
		delete(n.remote, name)
	}
	n.names = slices.Sorted(maps.Keys(local))
	n.networks = slices.Sorted(maps.Keys(networks))
}

// placeOf returns the chassis of a port: those that it names, or the only one where no port of a
// VM or pod names any. Other ports are bound to none, as those of stopped VMs.
func (n *Northbound) placeOf(port string) []string {
	if places := n.ports[port]; len(places) > 0 {
		return places
	}
	if len(n.ports) == 0 && len(n.names) == 1 {
		return n.names
	}
	return nil
}

// tables returns the rows of a southbound database before ovn-northd adds the others.
func (n *Northbound) tables() map[string][]ovsdb.Record {
	tables := map[string][]ovsdb.Record{"SB_Global": {record("SB_Global", "", nil)}}
	for i, name := range append(slices.Clone(n.names), slices.Sorted(maps.Keys(n.remote))...) {
		// 198.18.0.0/15 is for tests of networks (RFC 2544), so no underlay has these addresses.
		address := fmt.Sprintf("198.18.%d.%d", (i+1)>>8&0xff, (i+1)&0xff)
		tunnel := record("Encap", name, map[string]string{"type": text("geneve"), "ip": text(address), "chassis_name": text(name), "options": dict(map[string]string{"csum": "true"})})
		config := map[string]string{}
		if n.remote[name] {
			config["is-remote"] = "true"
		} else if len(n.networks) > 0 {
			config["ovn-bridge-mappings"] = n.mappings()
		}
		tables["Encap"] = append(tables["Encap"], tunnel)
		tables["Chassis"] = append(tables["Chassis"], record("Chassis", name, map[string]string{"name": text(name), "hostname": text(name),
			"encaps": list([]string{tunnel.UUID}), "other_config": dict(config), "external_ids": dict(config)}))
	}
	return tables
}

// mappings gives each physical network a bridge.
func (n *Northbound) mappings() string {
	var all []string
	for i, network := range n.networks {
		all = append(all, fmt.Sprintf("%s:br-net%d", network, i+1))
	}
	return strings.Join(all, ",")
}

// assumptions lists what the southbound database has that the northbound one does not say.
func (n *Northbound) assumptions() []string {
	var list []string
	switch {
	case n.invented:
		list = append(list, fmt.Sprintf("the NB database names no chassis: all ports are on one, called %s here", n.names[0]))
	case len(n.ports) == 0 && len(n.names) == 1:
		list = append(list, fmt.Sprintf("no port of the NB database names a chassis: all are on %s, which gateways name", n.names[0]))
	case n.unplaced > 0:
		list = append(list, fmt.Sprintf("%s of the NB database name no chassis and are bound to none, as those of stopped VMs", phrase.Count(n.unplaced, "port")))
	}
	list = append(list, fmt.Sprintf("chassis: those that ports and gateways of the NB database name (%s); a node that has a host name and another system-id may be two of them", phrase.FirstNames(n.names)),
		"tunnels: each chassis has a Geneve tunnel with a made-up address",
		"gateways: the chassis of the highest priority is the active one",
		"addresses that OVN learned from packets (MAC_Binding, FDB) are missing")
	if len(n.networks) > 0 {
		list = append(list, "physical networks: each chassis reaches all of them: "+n.mappings())
	}
	return list
}
