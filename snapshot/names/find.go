package names

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// Filter narrows what a name may be; its zero value narrows nothing.
type Filter struct {
	Network  string // the name of a network or a logical switch, or the beginning of it
	Protocol string // of a service
	Port     uint16 // of a service; 0 for any
	// Ping says that a ping is asked if the name is an address without a port, or Protocol is icmp or icmp6: of a service,
	// the address alone is meant then.
	Ping bool
	// From is the sender, nil for none. If several zones have a service, the name means the one in the
	// sender's zone.
	From *Endpoint
}

// AmbiguousError is the error for a name that several endpoints have.
type AmbiguousError struct {
	Name       string
	Candidates []Endpoint
}

// maxListed bounds the endpoints and names that an error lists.
const maxListed = 20

func (e *AmbiguousError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%q is ambiguous: name one of these, or narrow it by network (--network) or protocol", e.Name)
	for i, endpoint := range e.Candidates {
		if i == maxListed {
			fmt.Fprintf(&text, "\n  and %d more", len(e.Candidates)-i)
			break
		}
		text.WriteString("\n  " + endpoint.String())
	}
	return text.String()
}

// Class returns that the question is wrong.
func (e *AmbiguousError) Class() fault.Class { return fault.Usage }

// UnknownError is the error for a name that no endpoint has.
type UnknownError struct {
	Name    string
	Nearest []string // names that are like it
	// Port is what follows the last colon of a name, whose beginning is an endpoint or an address.
	Port string
	// Inside describes the logical network in whose subnet an address is, "" for none.
	Inside string
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("nothing is called %q in the collected databases", e.Name)
	if e.Inside != "" {
		return text + ": no port, router or load balancer has the address, which is in " + e.Inside
	}
	address := strings.TrimSuffix(e.Name, ":"+e.Port)
	if number, err := strconv.ParseUint(e.Port, 10, 16); e.Port != "" && (err != nil || number == 0) {
		return fmt.Sprintf("%s: %q is not a port: a port is a number from 1 to 65535", text, e.Port)
	}
	if _, ok := ovn.ParseAddress(strings.Trim(address, "[]")); ok {
		return text + "; an address outside of the logical networks is external/" + e.Name
	}
	if e.Port != "" {
		return fmt.Sprintf("%s: %q is, and only the destination's name can have a port; set the sender's with --source-port", text, address)
	}
	if len(e.Nearest) > 0 {
		text += "; names like it: " + strings.Join(e.Nearest, ", ")
	}
	return text
}

// Class returns that the question is wrong.
func (e *UnknownError) Class() fault.Class { return fault.Usage }

// ProtocolError is the error for a load balancer that is asked about with a protocol that
// it does not have.
type ProtocolError struct {
	Name      string
	Protocols []string // those that it has
	Wanted    string
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("%q is a load balancer for %s, not %s", e.Name, strings.Join(e.Protocols, " and "), e.Wanted)
}

// Class returns that the question is wrong.
func (e *ProtocolError) Class() fault.Class { return fault.Usage }

// Find returns the endpoint with a name: NAMESPACE/POD or pod/NAMESPACE/POD,
// svc/NAMESPACE/NAME[:PORT], node/NAME, external/ADDRESS, a MAC address, an IP address or
// ADDRESS:PORT, the name of a port in OVN or neutron, of an instance, or in OVN's DNS
// records, of an interface of its node, or the beginning of a UUID. An endpoint that is found by an
// address has that address alone. The error is an *AmbiguousError, an *UnknownError or a *ProtocolError.
func (n *Names) Find(name string, filter Filter) (Endpoint, error) {
	if text, ok := strings.CutPrefix(name, "external/"); ok {
		ip, ok := ovn.ParseAddress(Unbracketed(text))
		if !ok {
			return Endpoint{}, &UnknownError{Name: name}
		}
		return Endpoint{Kind: External, Name: "external/" + ip.String(), IPs: []netip.Addr{ip}}, nil
	}
	found := n.matching(name, filter)
	switch len(found) {
	case 0:
		return Endpoint{}, n.notFound(name, filter)
	case 1:
		return found[0].onlyAddress(name), nil
	}
	slices.SortFunc(found, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.LogicalPort, b.LogicalPort))
	})
	return Endpoint{}, &AmbiguousError{Name: name, Candidates: found}
}

// Unbracketed returns a text without the brackets around an IPv6 address (RFC 3986, 3.2.2).
func Unbracketed(text string) string { return brackets.ReplaceAllString(text, "$1$2") }

var brackets = lazyregexp.New(`^(external/)?\[([0-9A-Fa-f:.]+)\]$`)

// matching returns the endpoints with a name that a filter accepts.
func (n *Names) matching(name string, filter Filter) []Endpoint {
	_, port, isAddress := ovn.ParseVIP(name)
	pings := filter.Ping && port == 0 && (isAddress || filter.Protocol != "" && !strings.Contains(name, ":"))
	if pings {
		filter.Protocol = ""
	}
	found := slices.DeleteFunc(n.candidates(name), func(endpoint Endpoint) bool { return !filter.accepts(endpoint) })
	ofPorts := func(e Endpoint) bool { return e.Kind == Service && e.Port != 0 }
	if pings && !slices.ContainsFunc(found, func(e Endpoint) bool { return !ofPorts(e) }) {
		return pinged(n.joinAddresses(mergeServices(filter.inZone(found)), name), name)
	}
	if pings { // a node or a router has the address as well
		found = slices.DeleteFunc(found, ofPorts)
	}
	return n.joinAddresses(mergeServices(filter.inZone(inPrimary(preferred(found)))), name)
}

// pinged returns one endpoint in place of services that have a name, none for no services: their address without a port.
func pinged(services []Endpoint, name string) []Endpoint {
	if len(services) == 0 {
		return nil
	}
	e := services[0]
	e.Name, e.Protocol, e.Port, e.Backends = name, "", 0, nil
	return []Endpoint{e}
}

// PortsAt returns the ports for which load balancers have an address, with their protocols; none if one has all.
func (n *Names) PortsAt(address netip.Addr) (ports []string) {
	for _, e := range n.WithIP(address) {
		switch {
		case e.Kind != Service:
		case e.Port == 0:
			return nil
		default:
			ports = append(ports, fmt.Sprintf("%s (%s)", netip.AddrPortFrom(address, e.Port), e.Protocol))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// notFound returns the error for a name that no endpoint has that a filter accepts.
func (n *Names) notFound(name string, filter Filter) error {
	wanted := filter.Protocol
	filter.Protocol = ""
	var protocols []string
	for _, endpoint := range n.matching(name, filter) {
		protocols = append(protocols, endpoint.Protocol)
	}
	if len(protocols) == 0 {
		unknown := &UnknownError{Name: name}
		before, port, cut := cutLast(name)
		_, isAddress := ovn.ParseAddress(strings.Trim(before, "[]"))
		switch _, whole := ovn.ParseAddress(strings.Trim(name, "[]")); {
		case cut && !whole && (isAddress || len(n.matching(before, Filter{Network: filter.Network})) > 0):
			unknown.Port = port
		case cut && !whole && port != "" && strings.Trim(port, "0123456789") == "":
			unknown.Nearest = n.nearest(before)
		default:
			unknown.Nearest = n.nearest(name)
		}
		if ip, _, ok := ovn.ParseVIP(name); ok {
			unknown.Inside = n.networkAround(ip)
		}
		return unknown
	}
	slices.Sort(protocols)
	return &ProtocolError{Name: name, Protocols: slices.Compact(protocols), Wanted: wanted}
}

// cutLast cuts a name at its last colon.
func cutLast(name string) (before, after string, found bool) {
	at := strings.LastIndexByte(name, ':')
	if at < 0 {
		return name, "", false
	}
	return name[:at], name[at+1:], true
}

// preferred leaves out what is only found beside a better candidate: an address belongs to
// the port that has it, even if a floating IP or a VIP leads to the same address; and the
// port of a zone comes before what other zones have of it.
func preferred(found []Endpoint) []Endpoint {
	rank := func(endpoint Endpoint) int {
		switch {
		case endpoint.Kind == Service:
			return 2
		case endpoint.Kind == FloatingIP:
			return 3
		case endpoint.Kind == RouterPort:
			return 4
		case endpoint.remote:
			return 1
		}
		return 0
	}
	if len(found) < 2 {
		return found
	}
	best := rank(slices.MinFunc(found, func(a, b Endpoint) int { return cmp.Compare(rank(a), rank(b)) }))
	return slices.DeleteFunc(found, func(endpoint Endpoint) bool { return rank(endpoint) > best })
}

func (f Filter) accepts(endpoint Endpoint) bool {
	if f.Protocol != "" && endpoint.Protocol != "" && endpoint.Protocol != f.Protocol || f.Port != 0 && endpoint.Port != 0 && endpoint.Port != f.Port {
		return false
	}
	if f.Network == "" {
		return true
	}
	for _, name := range append([]string{endpoint.Network, endpoint.Switch, strings.TrimPrefix(endpoint.Switch, "neutron-")}, endpoint.networks...) {
		if name == f.Network || len(f.Network) >= minBeginning && strings.HasPrefix(name, f.Network) {
			return true
		}
	}
	return false
}

// inZone leaves out the services of other zones, where the sender's has the same one.
func (f Filter) inZone(found []Endpoint) []Endpoint {
	if f.From == nil || f.From.Kind == External {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(e Endpoint) bool {
		return e.Kind == Service && e.zone != f.From.zone && slices.ContainsFunc(found, func(other Endpoint) bool {
			return other.Kind == Service && other.zone == f.From.zone && other.Name == e.Name && other.Protocol == e.Protocol
		})
	})
}

// candidates returns the endpoints with a name, or, if none has it, those whose UUID begins
// with it.
func (n *Names) candidates(name string) []Endpoint {
	key := strings.ToLower(name)
	key = strings.TrimPrefix(key, "pod/")
	if ip, port, ok := ovn.ParseVIP(key); ok && port == 0 {
		key = ip.String()
	}
	var found []Endpoint
	known := n.byKey[key]
	if len(known) == 0 {
		known = n.byAlias[key]
	}
	for _, at := range known {
		found = append(found, n.endpoints[at])
	}
	if len(found) > 0 || len(key) < minBeginning || strings.Trim(key, "0123456789abcdef-") != "" {
		return found
	}
	for _, endpoint := range n.endpoints {
		if beginsUUID(endpoint.LogicalPort, key) || slices.ContainsFunc(endpoint.keys, func(id string) bool { return beginsUUID(id, key) }) {
			found = append(found, endpoint)
		}
	}
	return found
}

// mergeServices returns the endpoints without services that several zones have: OVN
// interconnection writes each service into the databases of every zone.
func mergeServices(found []Endpoint) []Endpoint {
	var all []Endpoint
	for _, e := range found {
		same := func(endpoint Endpoint) bool {
			return e.Kind == Service && endpoint.Kind == Service && endpoint.zone != e.zone && endpoint.Name == e.Name && endpoint.Protocol == e.Protocol &&
				endpoint.Balancer == e.Balancer && slices.Equal(endpoint.IPs, e.IPs) && slices.Equal(endpoint.Backends, e.Backends)
		}
		if !slices.ContainsFunc(all, same) {
			all = append(all, e)
		}
	}
	return all
}

// minBeginning is the length that the beginning of a UUID must have, in digits.
const minBeginning = 4

// beginsUUID reports whether a name is a UUID that begins with a text.
func beginsUUID(name, text string) bool {
	return len(name) == 36 && strings.Count(name, "-") == 4 && strings.HasPrefix(strings.ToLower(name), text)
}

// Complete returns the names that begin with a text, sorted, at most limit.
func (n *Names) Complete(text string, limit int) []string {
	var found []string
	for _, endpoint := range n.endpoints {
		if endpoint.Kind != RouterPort && endpoint.Kind != FloatingIP && strings.HasPrefix(endpoint.Name, text) {
			found = append(found, endpoint.Name)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(limit, len(found))]
}

// nearest returns the names that are most like a text.
func (n *Names) nearest(text string) []string {
	var all []string
	for _, endpoint := range n.endpoints {
		all = append(all, endpoint.Name)
	}
	for alias := range n.byAlias {
		if !ovsdb.IsUUID(alias) { // an interface
			all = append(all, alias)
		}
	}
	return Nearest(text, all)
}

// Nearest returns the names among all that are most like a text, or like it without their
// namespace, or that have it as a part.
func Nearest(text string, all []string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	text = strings.ToLower(text)
	most := max(2, len(text)/3)
	for _, given := range all {
		name := strings.ToLower(given)
		edits := distance(text, name, most)
		if _, last, ok := strings.Cut(name, "/"); ok { // without its namespace
			edits = min(edits, distance(text, last, most)+1)
		}
		if len(text) >= leastPart && strings.Contains(name, text) {
			edits = min(edits, most)
		}
		if edits <= most {
			found = append(found, near{given, edits})
		}
	}
	slices.SortFunc(found, func(a, b near) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name)) })
	var names []string
	for _, f := range found {
		if !slices.Contains(names, f.name) && len(names) < maxNearest {
			names = append(names, f.name)
		}
	}
	return names
}

const (
	maxNearest = 3
	leastPart  = 3 // letters of a part by which a name is found
)

// distance returns the number of letters to insert, remove or replace to make one text of
// the other, or a number above most if it is more than that.
func distance(a, b string, most int) int {
	if max(len(a), len(b))-min(len(a), len(b)) > most || len(a) > maxName || len(b) > maxName {
		return most + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
		if slices.Min(row) > most {
			return most + 1
		}
	}
	return row[len(b)]
}

// maxName bounds the names that are compared letter by letter.
const maxName = 80

// Holder returns the endpoint that receives what comes out of the interface of a logical
// port: the port itself, or for a packet with a VLAN tag (0 for none) the port of a
// container or of a trunk that has this tag.
func (n *Names) Holder(port string, tag int) (endpoint Endpoint, ok bool) {
	if tag != 0 {
		at := slices.IndexFunc(n.endpoints, func(endpoint Endpoint) bool { return endpoint.Parent == port && endpoint.Tag == tag })
		if at >= 0 {
			return n.endpoints[at], true
		}
	}
	for _, at := range n.byKey[strings.ToLower(port)] {
		if endpoint := n.endpoints[at]; endpoint.LogicalPort == port {
			return endpoint, true
		}
	}
	return Endpoint{}, false
}

// WithIP returns the endpoints with an IP address.
func (n *Names) WithIP(ip netip.Addr) []Endpoint {
	var found []Endpoint
	for _, at := range n.byKey[ip.String()] {
		if endpoint := n.endpoints[at]; slices.Contains(endpoint.IPs, ip) {
			found = append(found, endpoint)
		}
	}
	return found
}

// WithMAC returns the endpoints with a MAC address.
func (n *Names) WithMAC(mac string) []Endpoint {
	var found []Endpoint
	for _, at := range n.byKey[mac] {
		if endpoint := n.endpoints[at]; endpoint.MAC == mac {
			found = append(found, endpoint)
		}
	}
	return found
}
