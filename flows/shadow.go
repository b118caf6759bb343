package flows

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/trace/flow"
	"ovs-offline/trace/host"
	"ovs-offline/trace/pass"
)

// Shadows is which ACLs no packet reaches. Only those are examined that matched no packet:
// what was hit is not shadowed.
type Shadows struct {
	Rules    []Shadow `json:"rules"`
	Examined int      `json:"examined"` // ACLs for which a packet was traced up to their stage
	Reached  int      `json:"reached"`  // of those, the ACLs that the packet reached
	// NotExamined counts the other ACLs that were never hit, by the reason.
	NotExamined map[string]int `json:"not_examined"`
}

// Shadow is an ACL that a packet made for it does not reach: in its stage, the flow of
// another rule matches.
type Shadow struct {
	Node   string `json:"node,omitempty"`
	Name   string `json:"name"`
	UUID   string `json:"uuid"`
	Packet string `json:"packet"` // as ofproto/trace takes it
	By     string `json:"by"`     // the rule that took the packet
	Flow   string `json:"flow"`   // the match of that rule's flow
}

// Why an ACL is not examined.
const (
	noReplica = "its node's replica does not run"
	noPacket  = "its match can't be turned into a packet from a port of the node"
	elsewhere = "the packet made for it does not get to its stage"
	tooMany   = "more ACLs were never hit than are examined"
)

// maxTried bounds the flows of one ACL for which packets are made, and maxExamined the
// ACLs of a node.
const (
	maxTried    = 8
	maxExamined = 1000
)

// FindShadows traces a packet for each ACL that was never hit, on the replicas of the
// nodes.
func FindShadows(ctx context.Context, sources []Source) (*Shadows, error) {
	s := &Shadows{Rules: []Shadow{}, NotExamined: map[string]int{}}
	hit := map[string]bool{}
	var nodes [][]*unhit
	for _, source := range sources {
		found, err := neverHit(ctx, source, hit)
		if err != nil {
			return nil, nodeError(source.Name, err)
		}
		nodes = append(nodes, found)
	}
	done := map[string]bool{} // ACLs with an answer from one node need none from others
	for i, source := range sources {
		list := slices.DeleteFunc(nodes[i], func(u *unhit) bool { return hit[u.uuid] || done[u.uuid] })
		if err := s.examine(ctx, source, list, done); err != nil {
			return nil, nodeError(source.Name, err)
		}
	}
	return s, nil
}

// unhit is an ACL with some of its flows on a node.
type unhit struct {
	uuid  string
	name  string
	flows []record
}

// neverHit returns the ACLs of a node without packets, and adds the others to hit.
func neverHit(ctx context.Context, source Source, hit map[string]bool) ([]*unhit, error) {
	n, err := Open(ctx, source.Name, source.Dir, "")
	if err != nil {
		return nil, err
	}
	defer n.Close()
	if n.rules == nil {
		return nil, nil
	}
	origins := n.rules.NewOrigins()
	found := map[string]*unhit{}
	var ignored Listed
	for _, b := range n.Bridges {
		if !n.isOVN(b) {
			continue
		}
		err := n.each(ctx, b, &Filter{}, nil, &ignored, func(r *record) (bool, error) {
			if !b.layout.IsLogical(r.table) {
				return true, nil
			}
			key, err := b.ruleKey(r)
			if err != nil {
				return false, err
			}
			origin, _, _, err := origins.Find(key)
			if err != nil || origin.Table != "ACL" {
				return true, err
			}
			if r.Packets > 0 {
				hit[origin.UUID] = true
				return true, nil
			}
			u := found[origin.UUID]
			if u == nil {
				u = &unhit{uuid: origin.UUID}
				found[origin.UUID] = u
			}
			if len(u.flows) < maxTried && !r.isClause && !strings.Contains(r.fields, "conj_id=") {
				one := *r
				one.cookie = key.Cookie
				u.flows = append(u.flows, one)
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	list := slices.SortedFunc(maps.Values(found), func(a, b *unhit) int { return strings.Compare(a.uuid, b.uuid) })
	for _, u := range list {
		if u.name, err = n.rules.NB("ACL", u.uuid); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// examiner makes and traces packets on one node.
type examiner struct {
	node    *Node
	bridge  *Bridge
	host    *host.Host
	entries map[[2]uint64]entry // by datapath and port
}

// entry is where packets of a logical port enter the bridge, and the port's addresses.
type entry struct {
	inPort, vlan string
	key          uint64
	mac          string
	v4, v6       netip.Addr
}

// examine traces a packet for each ACL of a list.
func (s *Shadows) examine(ctx context.Context, source Source, list []*unhit, done map[string]bool) error {
	if len(list) == 0 {
		return nil
	}
	n, err := Open(ctx, source.Name, source.Dir, "")
	if err != nil {
		return err
	}
	defer n.Close()
	h, err := host.Open(ctx, cmp.Or(source.Name, "this"), source.Dir)
	if err != nil {
		s.NotExamined[noReplica] += len(list)
		return ctx.Err()
	}
	defer h.Close()
	for _, b := range n.Bridges {
		if !n.isOVN(b) {
			continue
		}
		x := &examiner{node: n, bridge: b, host: h}
		if err := x.readEntries(ctx); err != nil {
			return err
		}
		for i, u := range list {
			if i >= maxExamined {
				s.NotExamined[tooMany] += len(list) - i
				break
			}
			if err := s.one(ctx, x, u, done); err != nil {
				return err
			}
		}
	}
	return nil
}

// one traces packets for an ACL until one reaches it.
func (s *Shadows) one(ctx context.Context, x *examiner, u *unhit, done map[string]bool) error {
	why := noPacket
	var shadow *Shadow
	for i := range u.flows {
		for _, try := range x.packets(&u.flows[i]) {
			packet, state := try[0], try[1]
			r, err := x.trace(ctx, &u.flows[i], packet, state)
			switch {
			case err != nil:
				return err
			case r.reached:
				s.Examined++
				s.Reached++
				done[u.uuid] = true
				return nil
			case r.taken == nil:
				if why == noPacket {
					why = elsewhere
				}
			case shadow == nil:
				by, _, err := x.node.rule(x.bridge, r.taken)
				if err != nil {
					return err
				}
				if by.Cause.UUID == u.uuid {
					s.Examined++
					s.Reached++
					done[u.uuid] = true
					return nil
				}
				if by.Cause.Table == "ACL" {
					shadow = &Shadow{Node: x.node.Name, Name: u.name, UUID: u.uuid, Packet: packet, By: by.Words, Flow: r.taken.fields}
				}
			}
		}
	}
	switch {
	case shadow != nil:
		s.Examined++
		done[u.uuid] = true
		s.Rules = append(s.Rules, *shadow)
	default:
		s.NotExamined[why]++
	}
	return nil
}

// reading is what a trace shows of a flow's table.
type reading struct {
	reached bool
	taken   *record // the flow of the same table that matched instead, nil for none
}

// trace has ovs-vswitchd trace a packet, and looks for a flow.
func (x *examiner) trace(ctx context.Context, want *record, packet, state string) (r reading, err error) {
	text, err := x.host.Ask(ctx, "ofproto/trace", x.bridge.Name, packet, "--ct-next", state, "--ct-next", state, "--ct-next", state)
	if err != nil {
		return r, ctx.Err() // a packet that ovs-vswitchd refuses shows nothing
	}
	passes, err := pass.Parse(text)
	if err != nil {
		return r, err
	}
	for _, p := range passes {
		for _, s := range p.Stages {
			if s.Table != want.table || s.Miss {
				continue
			}
			other := &record{cookie: s.Cookie, table: s.Table, priority: s.Priority, fields: s.Flow}
			for _, token := range split(s.Flow) {
				other.add(token)
			}
			if other.metadata != want.metadata {
				continue
			}
			if s.Cookie == want.cookie {
				return reading{reached: true}, nil
			}
			// A flow with a lower priority matches where the packet is not the right one.
			if r.taken == nil && s.Priority >= want.priority {
				r.taken = other
			}
		}
	}
	return r, nil
}

// readEntries reads by which ports packets of logical ports enter the bridge, from table
// 0, and their addresses.
func (x *examiner) readEntries(ctx context.Context) error {
	x.entries = map[[2]uint64]entry{}
	var ignored Listed
	table0 := func(line string) bool { return strings.Contains(line, "table=0,") }
	return x.node.each(ctx, x.bridge, &Filter{}, table0, &ignored, func(r *record) (bool, error) {
		if r.table != 0 || r.inPort == "" {
			return true, nil
		}
		datapath, key := setField(r.Text, "metadata"), setField(r.Text, "reg14")
		if datapath == 0 || key == 0 {
			return true, nil
		}
		e := entry{inPort: r.inPort, key: key}
		for _, field := range split(r.fields) {
			if vlan, ok := strings.CutPrefix(field, "dl_vlan="); ok {
				e.vlan = vlan
			}
		}
		if p, ok := x.node.rules.Port(datapath, key); ok {
			e.addresses(p.Addresses)
		}
		if e.mac != "" {
			x.entries[[2]uint64{datapath, key}] = e
		}
		return true, nil
	})
}

// setField returns the value that a flow sets a field to, 0 for none.
func setField(text, field string) uint64 {
	before, _, found := strings.Cut(text, "->"+field)
	at := strings.LastIndex(before, "set_field:")
	if !found || at < 0 {
		return 0
	}
	n, _ := strconv.ParseUint(before[at+len("set_field:"):], 0, 64)
	return n
}

// addresses reads the addresses of a port binding: a MAC address, and IP addresses.
func (e *entry) addresses(list []string) {
	for _, text := range list {
		for i, word := range strings.Fields(text) {
			a, err := netip.ParseAddr(word)
			switch {
			case i == 0 && strings.Count(word, ":") == 5 && e.mac == "":
				e.mac = word
			case err == nil && a.Is4() && !e.v4.IsValid():
				e.v4 = a
			case err == nil && a.Is6() && !e.v6.IsValid():
				e.v6 = a
			}
		}
	}
}

// packets makes packets for a flow, each with the ct_state that conntrack gives it: new or
// established, and of several protocols if the flow matches all.
func (x *examiner) packets(r *record) (list [][2]string) {
	for _, protocol := range []string{"icmp", "tcp", "udp"} {
		packet, any, ok := x.packet(r, protocol)
		if !ok {
			break
		}
		list = append(list, [2]string{packet, "trk,new"}, [2]string{packet, "trk,est"})
		if !any {
			break
		}
	}
	return list
}

// packet makes a packet for a flow of a logical switch, as ofproto/trace takes it: from
// the port that the flow matches or another one of the switch, with the fields of the
// match. any reports that the flow leaves the IP protocol open, which is then protocol.
func (x *examiner) packet(r *record, protocol string) (text string, any, ok bool) {
	pipeline := x.bridge.layout
	egress := pipeline.Egress > 0 && r.table >= pipeline.Egress
	from, to, ok := x.ends(r, egress)
	if !ok {
		return "", false, false
	}
	var p flow.Packet
	v6 := false
	for _, field := range split(r.fields) {
		name, value, _ := strings.Cut(field, "=")
		value, _, _ = strings.Cut(value, "/")
		switch {
		case strings.HasPrefix(name, "reg"), strings.HasPrefix(name, "xreg"), strings.HasPrefix(name, "xxreg"), strings.HasPrefix(name, "ct_"), name == "metadata", name == "":
			continue
		case name == "ipv6", strings.HasSuffix(name, "6"), strings.HasPrefix(name, "ipv6_"):
			v6 = true
		}
		p.Set(name, value)
	}
	if _, has := p.Protocol(); !has && (p.EtherType() == 0 || p.EtherType() == flow.IPv4 || p.EtherType() == flow.IPv6) {
		any = true
		p.Delete("ip", "ipv6", "dl_type", "nw_proto")
		if v6 {
			protocol += "6"
		}
		p.Prepend(protocol, "")
		if !strings.HasPrefix(protocol, "icmp") {
			p.Set("tp_src", "40000")
			p.Set("tp_dst", "39999")
		}
	}
	set := func(name, value string) {
		if !p.Has(name) && value != "" {
			p.Set(name, value)
		}
	}
	set("dl_src", from.mac)
	set("dl_dst", to.mac)
	switch {
	case p.EtherType() == flow.ARP:
		set("arp_spa", address(from.v4))
		set("arp_tpa", address(to.v4))
	case v6:
		set("ipv6_src", address(from.v6))
		set("ipv6_dst", address(to.v6))
	default:
		set("nw_src", address(from.v4))
		set("nw_dst", address(to.v4))
	}
	set("nw_ttl", "64")
	p.Prepend("in_port", from.inPort)
	if from.vlan != "" {
		p.Set("dl_vlan", from.vlan)
	}
	return p.Input(), any, true
}

func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// ends returns the ports that a packet for a flow comes from and goes to.
func (x *examiner) ends(r *record, egress bool) (from, to entry, ok bool) {
	own := r.in
	if egress {
		own = r.out
	}
	var others []entry
	for _, at := range slices.SortedFunc(maps.Keys(x.entries), func(a, b [2]uint64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		if at[0] == r.metadata && at[1] != own {
			others = append(others, x.entries[at])
		}
	}
	matched, found := x.entries[[2]uint64{r.metadata, own}]
	switch {
	case own != 0 && !found:
		if p, known := x.node.rules.Port(r.metadata, own); egress && known {
			matched.addresses(p.Addresses) // of another chassis
		}
		if matched.mac == "" {
			return from, to, false
		}
	case own == 0 && len(others) == 0:
		return from, to, false
	case own == 0:
		matched, others = others[0], others[1:]
	}
	other := entry{mac: "0a:00:00:00:00:01", v4: netip.MustParseAddr("198.51.100.1"), v6: netip.MustParseAddr("2001:db8::1")}
	if len(others) > 0 {
		other = others[0]
	}
	if egress {
		return other, matched, len(others) > 0
	}
	return matched, other, true
}
