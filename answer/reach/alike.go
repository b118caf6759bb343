package reach

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot/names"
)

// facts holds what northbound databases contain about ports and addresses, beside their networks.
type facts struct {
	groups map[string][]string     // port groups by logical port
	about  map[string][]string     // what else is known of a logical port
	exact  map[netip.Addr][]string // the facts about an address
	spans  map[string]span         // the prefixes in rules, by their texts
	routes map[string]span         // the spans of static routes
}

// span is a set of addresses that have some bits in common.
type span struct{ base, mask []byte }

func (s span) contains(ip netip.Addr) bool {
	raw := ip.AsSlice()
	if len(raw) != len(s.base) {
		return false
	}
	for i := range raw {
		if (raw[i]^s.base[i])&s.mask[i] != 0 {
			return false
		}
	}
	return true
}

func newFacts() *facts {
	return &facts{groups: map[string][]string{}, about: map[string][]string{}, exact: map[netip.Addr][]string{}, spans: map[string]span{}, routes: map[string]span{}}
}

// read adds the facts of a northbound database.
func (f *facts) read(db *file.Index) error {
	ports, err := f.readPorts(db)
	if err != nil {
		return err
	}
	for _, table := range []struct {
		table string
		use   func(ovsdb.Row)
	}{
		{"Port_Group", func(row ovsdb.Row) {
			for _, id := range row.UUIDs("ports") {
				f.groups[ports[id]] = insert(f.groups[ports[id]], row.String("name"))
			}
		}},
		{"Address_Set", func(row ovsdb.Row) {
			for _, text := range row.Strings("addresses") {
				f.noteAddress(text, "address set "+row.String("name"))
			}
		}},
		{"ACL", func(row ovsdb.Row) { f.match(row, "ACL "+row.String("action")) }},
		{"QoS", func(row ovsdb.Row) { f.match(row, "QoS") }},
		{"Logical_Router_Policy", func(row ovsdb.Row) {
			f.match(row, fmt.Sprint("policy ", row.String("action"), row.Strings("nexthops"), row.Strings("nexthop")))
		}},
		{"NAT", func(row ovsdb.Row) {
			f.noteAddress(row.String("logical_ip"), fmt.Sprintf("NAT %s %t %t", row.String("type"), row.String("external_mac") != "", row.String("logical_port") != ""))
		}},
		{"Logical_Router_Static_Route", func(row ovsdb.Row) {
			if span, ok := parseSpan(row.String("ip_prefix")); ok {
				f.routes[row.String("ip_prefix")] = span
			}
		}},
	} {
		for row, err := range db.Rows(table.table) {
			if err != nil {
				return err
			}
			table.use(row)
		}
	}
	return nil
}

// readPorts returns the names of logical switch ports by UUID, and adds the facts about them.
func (f *facts) readPorts(db *file.Index) (map[string]string, error) {
	ports := map[string]string{}
	return ports, ovn.EachSwitchPort(db, func(p *ovn.SwitchPort) {
		ports[p.UUID] = p.Name
		f.about[p.Name] = append(f.about[p.Name], fmt.Sprint("port ", p.Type, p.Disabled, len(p.Security) > 0, slices.Contains(p.Addresses, "unknown"), []string{p.DHCP, p.DHCPv6}))
	})
}

func insert(sorted []string, text string) []string {
	i, found := slices.BinarySearch(sorted, text)
	if found {
		return sorted
	}
	return slices.Insert(sorted, i, text)
}

// noteAddress adds a fact about an address. For a prefix, or an address with a mask, it keeps
// the span alone: the fact is the same for all addresses in it.
func (f *facts) noteAddress(text, about string) {
	if ip, err := netip.ParseAddr(text); err == nil {
		f.exact[ip.Unmap()] = insert(f.exact[ip.Unmap()], about)
	} else if span, ok := parseSpan(text); ok {
		f.spans[text] = span
	}
}

// parseSpan reads ADDRESS/BITS or ADDRESS/MASK.
func parseSpan(text string) (span, bool) {
	address, behind, _ := strings.Cut(text, "/")
	base, err := netip.ParseAddr(address)
	if err != nil {
		return span{}, false
	}
	if mask, err := netip.ParseAddr(behind); err == nil && mask.BitLen() == base.BitLen() {
		return span{base: base.AsSlice(), mask: mask.AsSlice()}, true
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return span{}, false
	}
	mask := make([]byte, len(base.AsSlice()))
	for i := range prefix.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return span{base: base.AsSlice(), mask: mask}, true
}

var (
	isLiteral = lazyregexp.New(`[0-9a-fA-F]*[.:][0-9a-fA-F.:]*[0-9a-fA-F:](/[0-9a-fA-F.:]+)?`)
	isQuoted  = lazyregexp.New(`"[^"]+"`)
)

// match adds a row's facts about the addresses and the ports that its match names. Rows
// whose matches differ only in one of these give it the same fact, so that a rule for each
// port does not make ports differ.
func (f *facts) match(row ovsdb.Row, what string) {
	match := row.String("match")
	priority, _ := row.Int("priority")
	what = fmt.Sprintf("%s %s %d", what, row.String("direction"), priority)
	for _, at := range isLiteral.FindAllStringIndex(match, -1) {
		f.noteAddress(match[at[0]:at[1]], what+" "+withoutConstant(match, at))
	}
	for _, at := range isQuoted.FindAllStringIndex(match, -1) {
		name := match[at[0]+1 : at[1]-1]
		f.about[name] = insert(f.about[name], what+" "+withoutConstant(match, at))
	}
}

// withoutConstant returns a match without a constant in it, or without the set of constants in
// braces that it belongs to.
func withoutConstant(match string, at []int) string {
	before, behind := match[:at[0]], match[at[1]:]
	if open := strings.LastIndexByte(before, '{'); open >= 0 && !strings.Contains(before[open:], "}") {
		before = before[:open]
		_, behind, _ = strings.Cut(behind, "}")
	}
	return before + "..." + behind
}

// backend adds that a service leads to ADDRESS:PORT.
func (f *facts) backend(text, service string) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		f.noteAddress(at.Addr().String(), fmt.Sprint("backend of ", service, at.Port()))
		return
	}
	f.noteAddress(text, "backend of "+service)
}

// alike returns a text that two endpoints share if they behave alike: they are on switches
// of one kind, and the same port groups, address sets, rules, translations, routes and
// services are about them.
func (v *view) alike(endpoint names.Endpoint) string {
	if !v.known { // what protects the port is not known
		return endpoint.Name
	}
	words := []string{string(endpoint.Kind), switchKind(endpoint), fmt.Sprint(endpoint.Node == "", endpoint.Chassis == "", endpoint.Parent, endpoint.External)}
	words = append(words, v.groups[endpoint.LogicalPort]...)
	words = append(words, v.about[endpoint.LogicalPort]...)
	for _, ip := range endpoint.IPs {
		words = append(words, fmt.Sprint("IPv", ip.BitLen()))
		words = append(words, v.exact[ip]...)
		words = append(words, textsAt(v.spans, ip)...)
		if endpoint.Switch == switchKind(endpoint) { // else routes differ by node
			words = append(words, textsAt(v.routes, ip)...)
		}
	}
	return strings.Join(words, "\n")
}

// switchKind returns the name of a switch, or the same text for the switches of all nodes
// where each node has one, as in ovn-kubernetes.
func switchKind(endpoint names.Endpoint) string {
	if endpoint.Chassis != "" && strings.HasSuffix(endpoint.Switch, endpoint.Chassis) {
		return strings.TrimSuffix(endpoint.Switch, endpoint.Chassis) + "of each node"
	}
	return endpoint.Switch
}

// textsAt returns the texts of the spans that contain an address, sorted.
func textsAt(spans map[string]span, ip netip.Addr) []string {
	var found []string
	for text, span := range spans {
		if span.contains(ip) {
			found = append(found, text)
		}
	}
	slices.Sort(found)
	return found
}
