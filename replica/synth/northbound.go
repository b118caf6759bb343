package synth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// northbound has what a northbound database says about chassis: it has no table of them.
type northbound struct {
	names    []string            // of the chassis, sorted
	hosts    map[string]string   // the host names of chassis that have another name as well
	zone     string              // the name of the zone of OVN interconnection, "" for none
	remote   map[string]bool     // the chassis of other zones
	ports    map[string][]string // the chassis of ports that name one, the main one first
	pinned   map[string]pin      // by the names of ports whose switch has one gateway
	networks []string            // the physical networks of localnet ports
	unplaced int                 // ports of VMs or pods that name no chassis
	invented bool                // no row names a chassis
	features map[string]string   // of the ovn-controllers, as they write them for ovn-northd
}

// readNorthbound reads a northbound database.
func readNorthbound(ctx context.Context, path string) (*northbound, error) {
	content, _, err := file.Read(ctx, path, "NB_Global", "Logical_Switch", "Logical_Switch_Port", "Logical_Router", "Logical_Router_Port", "Gateway_Chassis", "HA_Chassis")
	if err != nil {
		return nil, err
	}
	if content.Info.Name != ovsdb.NB {
		return nil, fmt.Errorf("%s holds %s, not %s", path, content.Info.Name, ovsdb.NB)
	}
	network, err := ovn.ReadNorthbound(content)
	if err != nil {
		return nil, err
	}
	n := &northbound{hosts: map[string]string{}, remote: map[string]bool{}, ports: map[string][]string{}, pinned: pinnedPorts(content, network)}
	local := map[string]bool{}
	networks := map[string]bool{}
	for _, p := range network.SwitchPorts {
		n.readPort(p, local, networks)
	}
	for _, table := range []string{"Gateway_Chassis", "HA_Chassis"} {
		for _, row := range content.Rows(table) {
			local[row.String("chassis_name")] = true
		}
	}
	for _, r := range network.Routers {
		local[r.Chassis()] = true
	}
	for _, row := range content.Rows("NB_Global") { // it has one row
		n.zone = row.String("name")
	}
	n.complete(local, networks)
	return n, nil
}

// readPort notes the chassis and the physical network that a port names.
func (n *northbound) readPort(p *ovn.SwitchPort, local, networks map[string]bool) {
	var chassis []string
	for name := range strings.SplitSeq(p.Options["requested-chassis"], ",") {
		if name = strings.TrimSpace(name); name != "" {
			chassis = append(chassis, name)
		}
	}
	switch {
	case p.Type == "remote":
		for _, name := range chassis {
			n.remote[name] = true
		}
	case p.Type == "localnet":
		// ovn-bridge-mappings can't have other names (ovn-controller(8)).
		if name := p.Options["network_name"]; !strings.ContainsAny(name, ":,") {
			networks[name] = true
		}
	case len(chassis) > 0:
		for _, name := range chassis {
			local[name] = true
		}
		n.ports[p.Name] = chassis
	case p.Type == "" && p.Parent == "":
		n.unplaced++
	}
}

// complete makes the lists of what the rows name.
func (n *northbound) complete(local, networks map[string]bool) {
	delete(local, "")
	delete(networks, "")
	if len(local) == 0 {
		n.invented = true
		local[cmp.Or(n.zone, "chassis-1")] = true
	}
	for name := range local {
		delete(n.remote, name)
	}
	n.joinNames(local)
	n.names = slices.Sorted(maps.Keys(local))
	n.networks = slices.Sorted(maps.Keys(networks))
}

// joinNames finds chassis that have two names: ports name the host, and gateways the system-id.
// The switch of a node of OVN-Kubernetes has the host name, and so has a zone of interconnection,
// which has one node.
func (n *northbound) joinNames(local map[string]bool) {
	for _, pin := range n.pinned {
		if pin.host != "" && pin.host != pin.chassis {
			n.hosts[pin.chassis] = pin.host
		}
	}
	if len(local) == 2 && local[n.zone] {
		for name := range local {
			if name != n.zone {
				n.hosts[name] = n.zone
			}
		}
	}
	for _, host := range n.hosts {
		delete(local, host)
	}
}

// placeOf returns the chassis of a port. If the port names none, it is bound to none, like the port
// of a stopped VM. If no port of a VM or pod names a chassis, the port is on the gateway chassis of
// its switch, or else on the first chassis.
func (n *northbound) placeOf(port string) []string {
	if places := n.ports[port]; len(places) > 0 {
		return places
	}
	if len(n.ports) == 0 {
		return []string{cmp.Or(n.pinned[port].chassis, n.names[0])}
	}
	return nil
}

// chassis returns the chassis of a southbound database. The chassis of other zones are the last.
func (n *northbound) chassis() (all []ovn.Chassis) {
	taken := map[string]bool{}
	for _, name := range append(slices.Clone(n.names), slices.Sorted(maps.Keys(n.remote))...) {
		host := cmp.Or(n.hosts[name], name)
		all = append(all, ovn.Chassis{Name: name, Hostname: host, Config: n.config(name),
			Encaps: []ovn.Encap{{Type: "geneve", IP: tunnelAddress(host, taken), Options: map[string]string{"csum": "true"}}}})
	}
	return all
}

// tables returns the rows of a southbound database before ovn-northd adds the others.
func (n *northbound) tables() map[string][]ovsdb.Record {
	tables := map[string][]ovsdb.Record{"SB_Global": {record("SB_Global", "", nil)}}
	for _, chassis := range n.chassis() {
		tunnel := chassis.Encaps[0]
		row := record("Encap", chassis.Name, map[string]string{"type": text(tunnel.Type), "ip": text(tunnel.IP), "chassis_name": text(chassis.Name), "options": dict(tunnel.Options)})
		config := dict(chassis.Config)
		tables["Encap"] = append(tables["Encap"], row)
		tables["Chassis"] = append(tables["Chassis"], record("Chassis", chassis.Name, map[string]string{"name": text(chassis.Name), "hostname": text(chassis.Hostname),
			"encaps": list([]string{row.UUID}), "other_config": config, "external_ids": config}))
	}
	return tables
}

// tunnelAddress returns the address of a host's tunnels. It depends on the name alone, so that
// the databases of several zones agree, and is in 240.0.0.0/4, which no underlay uses (RFC 1112).
func tunnelAddress(host string, taken map[string]bool) string {
	for i := 0; ; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", host, i))
		address := fmt.Sprintf("%d.%d.%d.%d", 240+sum[0]%15, sum[1], sum[2], 1+sum[3]%254)
		if !taken[address] {
			taken[address] = true
			return address
		}
	}
}

// config returns the configuration of a chassis, as ovn-controller writes it.
func (n *northbound) config(name string) map[string]string {
	config := maps.Clone(n.features)
	if config == nil {
		config = map[string]string{}
	}
	if n.zone != "" {
		config["is-interconn"] = "true"
	}
	config["ovn-bridge-mappings"] = n.mappings()
	if n.remote[name] {
		config["is-remote"] = "true"
	}
	return config
}

// mappings gives each physical network a bridge.
func (n *northbound) mappings() string {
	var all []string
	for i, network := range n.networks {
		all = append(all, fmt.Sprintf("%s:br-net%d", network, i+1))
	}
	return strings.Join(all, ",")
}

// assumptions lists what the southbound database has that the northbound one does not say.
func (n *northbound) assumptions() []string {
	var list []string
	switch {
	case n.invented:
		list = append(list, fmt.Sprintf("the NB database names no chassis: all ports are on one, called %s here", n.names[0]))
	case len(n.ports) == 0:
		list = append(list, fmt.Sprintf("no port of the NB database names a chassis: each is where the only gateway of its switch is, or else on %s", n.names[0]))
	case n.unplaced > 0:
		list = append(list, fmt.Sprintf("%s of the NB database name no chassis and are bound to none, like the port of a stopped VM", phrase.Count(n.unplaced, "port")))
	}
	if len(n.names) > 1 {
		list = append(list, fmt.Sprintf("chassis: the NB database names them in ports and gateways (%s); a node that has a host name and another system-id may be two of them", phrase.FirstNames(n.names)))
	}
	list = append(list,
		"tunnels: each chassis has a Geneve tunnel with a made-up address",
		"gateways: the chassis of the highest priority is the active one",
		"addresses that OVN learned from packets (MAC_Binding, FDB) are missing")
	if len(n.networks) > 0 {
		list = append(list, "physical networks: each chassis reaches all of them: "+n.mappings())
	}
	return list
}
