package slow

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/snapshot/names"
	"ovs-offline/snapshot/node"
	"ovs-offline/workdir"
)

// Conntrack is what the recorded connections of a node take.
type Conntrack struct {
	Node    string `json:"node,omitempty"`
	Entries int    `json:"entries"`
	Lost    int    `json:"lost"` // lines that can't be read
	// Limit is the number of entries that the node allows, 0 if it was not recorded.
	Limit     int      `json:"limit,omitempty"`
	LimitFrom string   `json:"limit_from,omitempty"`
	States    []Count  `json:"states"`
	Zones     []Zone   `json:"zones"` // the largest first
	AllZones  int      `json:"all_zones"`
	Talkers   []Talker `json:"talkers"` // source addresses, the one with the most entries first
	Owners    []Count  `json:"owners"`  // the ports or routers that have these addresses
	// Tunnelled are entries of tunnels in zone 0, the host's own: the packets in the tunnels are tracked as well.
	Tunnelled int `json:"tunnelled"`
}

// Count is a number of entries.
type Count struct {
	Name    string `json:"name"`
	Entries int    `json:"entries"`
}

// Zone is the entries of a zone.
type Zone struct {
	Zone      int     `json:"zone"`
	Owner     string  `json:"owner,omitempty"` // the port or the router whose zone it is
	Entries   int     `json:"entries"`
	Unreplied int     `json:"unreplied"`
	Talker    *Talker `json:"talker,omitempty"` // the one with the most entries

	port string // the logical port whose zone it is
}

// Talker is a source address.
type Talker struct {
	Address netip.Addr `json:"address"`
	Name    string     `json:"name,omitempty"` // what has the address
	Entries int        `json:"entries"`

	own bool // it is the zone's own port
}

// from is a source address in a zone.
type from struct {
	zone    uint16
	address netip.Addr
}

// conntrackCount counts connections as they are read.
type conntrackCount struct {
	zones     map[uint16]*Zone
	talkers   often[from, struct{}]
	states    map[string]int
	tunnels   map[uint16]bool // the UDP ports of the node's tunnels
	tunnelled int
	entries   int
}

// tunnelPorts returns the UDP ports of a type of tunnels: of Geneve and VXLAN (RFC 8926, RFC 7348), and
// the one that Linux had for VXLAN before.
func tunnelPorts(kind string) []uint16 {
	return map[string][]uint16{"geneve": {6081}, "vxlan": {4789, 8472}}[kind]
}

func (c *conntrackCount) add(x *conntrack.Connection) {
	c.entries++
	zone := c.zones[x.Zone]
	if zone == nil {
		zone = &Zone{Zone: int(x.Zone)}
		c.zones[x.Zone] = zone
	}
	zone.Entries++
	unreplied := x.Known && !x.SeenReply
	if unreplied {
		zone.Unreplied++
	}
	c.talkers.add(from{x.Zone, x.Orig.Src})
	c.states[stateOf(x, unreplied)]++
	if x.Orig.Proto == 17 && x.Zone == 0 && c.tunnels[x.Orig.DstPort] { // the host's own zone
		c.tunnelled++
	}
}

// stateOf returns the protocol and the state of a connection.
func stateOf(x *conntrack.Connection, unreplied bool) string {
	protocol := x.Protocol()
	switch {
	case x.OrigState != "":
		return protocol + " " + x.OrigState
	case unreplied:
		return protocol + " without an answer"
	}
	return protocol
}

// most is the number of entries of a list.
const most = 10

// readConntrack counts the recorded connections of a node; nil if none were recorded.
func readConntrack(ctx context.Context, n *rule.Node, known func() (*names.Names, error)) (*Conntrack, error) {
	file, ok, err := n.Dir.Collected(n.Dir.Recorded(workdir.RecordedConntrack))
	if err != nil || !ok {
		return nil, err
	}
	defer file.Close()
	count := &conntrackCount{zones: map[uint16]*Zone{}, states: map[string]int{}, tunnels: map[uint16]bool{}}
	if err := count.readTunnels(n); err != nil {
		return nil, err
	}
	lost, err := conntrack.Each(file, func(x *conntrack.Connection) error {
		if count.entries%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		count.add(x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	result := &Conntrack{Node: n.Name, Entries: count.entries, Lost: lost, AllZones: len(count.zones), Tunnelled: count.tunnelled, Owners: []Count{}}
	for state, entries := range count.states {
		result.States = append(result.States, Count{state, entries})
	}
	sortCounts(result.States)
	if count.entries == 0 {
		return result, nil
	}
	all, err := known()
	if err != nil {
		return nil, err
	}
	count.addZones(result)
	count.addTalkers(result, all)
	return result, nameZones(n, result, all)
}

func sortCounts(list []Count) {
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(b.Entries-a.Entries, strings.Compare(a.Name, b.Name))
	})
}

// readTunnels reads which types of tunnels the node has: from its database, and from
// ofproto/list-tunnels.
func (c *conntrackCount) readTunnels(n *rule.Node) error {
	bridges, err := n.Bridges()
	if err != nil {
		return err
	}
	printed, err := n.Output("ofproto.list-tunnels")
	if err != nil {
		return err
	}
	kinds := appctl.TunnelTypes(printed)
	for i := range node.Interfaces(bridges...) {
		kinds = append(kinds, i.Type)
	}
	for _, kind := range kinds {
		for _, port := range tunnelPorts(kind) {
			c.tunnels[port] = true
		}
	}
	return nil
}

// addZones adds the largest zones, each with its first talker.
func (c *conntrackCount) addZones(to *Conntrack) {
	first := map[uint16]Talker{}
	for key, n := range c.talkers.kept {
		if best, ok := first[key.zone]; !ok || n.n > best.Entries || n.n == best.Entries && key.address.Less(best.Address) {
			first[key.zone] = Talker{Address: key.address, Entries: n.n}
		}
	}
	for _, zone := range c.zones {
		if talker, ok := first[uint16(zone.Zone)]; ok {
			zone.Talker = &talker
		}
		to.Zones = append(to.Zones, *zone)
	}
	slices.SortFunc(to.Zones, func(a, b Zone) int { return cmp.Or(b.Entries-a.Entries, a.Zone-b.Zone) })
	to.Zones = to.Zones[:min(most, len(to.Zones))]
}

// addTalkers adds the addresses with the most entries in all zones, and what has them.
func (c *conntrackCount) addTalkers(to *Conntrack, known *names.Names) {
	sums := map[netip.Addr]int{}
	for key, n := range c.talkers.kept {
		sums[key.address] += n.n
	}
	owners := map[string]int{}
	for address, entries := range sums {
		name := ownerOf(known, address)
		to.Talkers = append(to.Talkers, Talker{Address: address, Name: name, Entries: entries})
		owners[cmp.Or(name, "other addresses")] += entries
	}
	slices.SortFunc(to.Talkers, func(a, b Talker) int {
		return cmp.Or(b.Entries-a.Entries, a.Address.Compare(b.Address))
	})
	to.Talkers = slices.Clone(to.Talkers[:min(most, len(to.Talkers))])
	for name, entries := range owners {
		to.Owners = append(to.Owners, Count{name, entries})
	}
	sortCounts(to.Owners)
	to.Owners = slices.Clone(to.Owners[:min(most, len(to.Owners))])
}

// ownerOf returns the name of what has an address, "" for nothing or for several things.
func ownerOf(known *names.Names, address netip.Addr) string {
	found := known.WithIP(address)
	if len(found) == 0 {
		return ""
	}
	for _, other := range found[1:] {
		if other.Name != found[0].Name {
			return ""
		}
	}
	return found[0].Name
}

// nameZones names the owners of the zones.
func nameZones(n *rule.Node, result *Conntrack, known *names.Names) error {
	zones := ovn.Zones{}
	if n.OVS != nil {
		for row, err := range n.OVS.Rows("Bridge", "external_ids") {
			if err != nil {
				return err
			}
			zones.AddIDs(row.Map("external_ids"))
		}
	}
	if printed, ok, err := n.Dir.Collected(n.Dir.Recorded(workdir.RecordedZones)); err != nil {
		return err
	} else if ok && len(zones) == 0 {
		err := zones.AddPrinted(printed)
		printed.Close()
		if err != nil {
			return err
		}
	}
	datapaths := map[string]ovn.Datapath{}
	if sb := n.Deployment.SB; sb != nil {
		var err error
		if datapaths, err = ovn.Datapaths(sb); err != nil {
			return err
		}
	}
	for i := range result.Zones {
		zone := &result.Zones[i]
		zone.Owner, zone.port = ownerOfZone(zones[uint16(zone.Zone)], datapaths, known)
		if t := zone.Talker; t != nil {
			t.Name = ownerOf(known, t.Address)
			t.own = t.Name != "" && t.Name == zone.Owner
		}
	}
	return nil
}

// ownerOfZone returns what a zone is for, and the logical port whose zone it is.
func ownerOfZone(name string, datapaths map[string]ovn.Datapath, known *names.Names) (owner, port string) {
	for _, kind := range []string{"dnat", "snat"} {
		id, ok := strings.CutSuffix(name, "_"+kind)
		if !ok {
			continue
		}
		if datapath, ok := datapaths[id]; ok {
			return fmt.Sprintf("%s (%s)", datapath, kind), ""
		}
		return fmt.Sprintf("%s (%s)", id, kind), ""
	}
	if endpoint, ok := known.Holder(name, 0); ok {
		return endpoint.Name, name
	}
	return name, name
}

// hwOffload reports whether a node is configured to offload flows.
func hwOffload(n *rule.Node) (bool, error) {
	if n.OVS == nil {
		return false, nil
	}
	for row, err := range n.OVS.Rows(ovsdb.OVS, "other_config") {
		return row.Map("other_config")["hw-offload"] == "true", err // the table has one row
	}
	return false, nil
}
