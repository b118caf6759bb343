package rules

// Port is a logical port or a multicast group, as the registers of flows hold them by
// their tunnel keys.
type Port struct {
	Name  string // in OVN
	Given string // by a user, "" for none
	// Addresses are those of a port binding: each a MAC address, followed by IP addresses.
	Addresses []string
	Bound     bool // to a chassis
	Multicast bool // a group of ports
}

// String returns the name that a user gave, with the name in OVN, or only the latter.
func (p Port) String() string { return called(p.Given, p.Name) }

// Port returns the port with a tunnel key in the datapath with another; ok is false if
// there is none.
func (r *Rules) Port(datapath, key uint64) (p Port, ok bool) {
	p, ok = r.ports()[portKey{datapath, key}]
	return p, ok
}

func (r *Rules) readPorts() map[portKey]Port {
	const multicast = "Multicast_Group"
	ports := map[portKey]Port{}
	read := func(table, name string) {
		for row, err := range r.sb.Rows(table, "datapath", "tunnel_key", name, "external_ids", "mac", "chassis") {
			if err != nil {
				break // the ports that can't be read have no names
			}
			key, _ := row.Int("tunnel_key")
			if datapath := row.UUIDs("datapath"); len(datapath) == 1 {
				ports[portKey{r.datapaths().byUUID[datapath[0]].Key, uint64(key)}] = Port{row.String(name), row.Map("external_ids")[idPortName], row.Strings("mac"), len(row.UUIDs("chassis")) > 0, table == multicast}
			}
		}
	}
	read(multicast, "name")
	read("Port_Binding", "logical_port")
	return ports
}

// PortNamed returns the port with a name in OVN; ok is false if there is none.
func (r *Rules) PortNamed(name string) (p Port, ok bool) {
	p, ok = r.named()[name]
	return p, ok
}

func (r *Rules) readNamed() map[string]Port {
	named := map[string]Port{}
	for _, p := range r.ports() {
		named[p.Name] = p
	}
	return named
}
