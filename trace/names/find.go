package names

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Filter narrows what a name may be; its zero value narrows nothing.
type Filter struct {
	Network  string // the name of a network or a logical switch, or the beginning of it
	Protocol string // of a service
}

// AmbiguousError is the error for a name that several endpoints have.
type AmbiguousError struct {
	Name       string
	Candidates []Endpoint
}

// maxListed bounds the endpoints and names that an error lists.
const maxListed = 20

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q is ambiguous: name one of these, or narrow it by network (--network) or protocol", e.Name)
	for i, c := range e.Candidates {
		if i == maxListed {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Candidates)-i)
			break
		}
		b.WriteString("\n  " + c.String())
	}
	return b.String()
}

// UnknownError is the error for a name that no endpoint has.
type UnknownError struct {
	Name    string
	Nearest []string // names that are like it
	// Inside describes the logical network in whose subnet an address is, "" for none.
	Inside string
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("nothing is called %q in the collected databases", e.Name)
	if e.Inside != "" {
		return text + ": no port, router or load balancer has the address, which is in " + e.Inside
	}
	if _, ok := parseAddress(e.Name); ok {
		return text + "; an address outside of the logical networks is external/" + e.Name
	}
	if len(e.Nearest) > 0 {
		text += "; names like it: " + strings.Join(e.Nearest, ", ")
	}
	return text
}

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

// Find returns the endpoint with a name: NAMESPACE/POD or pod/NAMESPACE/POD,
// svc/NAMESPACE/NAME[:PORT], node/NAME, external/ADDRESS, a MAC address, an IP address or
// ADDRESS:PORT, the name of a port in OVN or neutron, of an instance, or in OVN's DNS
// records, or the beginning of a UUID. An endpoint that is found by an address has no other.
// The error is an *AmbiguousError, an *UnknownError or a *ProtocolError.
func (n *Names) Find(name string, filter Filter) (Endpoint, error) {
	if text, ok := strings.CutPrefix(name, "external/"); ok {
		ip, ok := parseAddress(text)
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
		return found[0].at(name), nil
	}
	slices.SortFunc(found, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.LogicalPort, b.LogicalPort))
	})
	return Endpoint{}, &AmbiguousError{Name: name, Candidates: found}
}

// matching returns the endpoints with a name that a filter accepts.
func (n *Names) matching(name string, filter Filter) []Endpoint {
	found := slices.DeleteFunc(n.candidates(name), func(e Endpoint) bool { return !filter.accepts(e) })
	return merged(preferred(found))
}

// notFound returns the error for a name that no endpoint has that a filter accepts.
func (n *Names) notFound(name string, filter Filter) error {
	wanted := filter.Protocol
	filter.Protocol = ""
	var protocols []string
	for _, e := range n.matching(name, filter) {
		protocols = append(protocols, e.Protocol)
	}
	if len(protocols) == 0 {
		unknown := &UnknownError{Name: name, Nearest: n.nearest(name)}
		if ip, _, ok := parseVIP(name); ok {
			unknown.Inside = n.inside(ip)
		}
		return unknown
	}
	slices.Sort(protocols)
	return &ProtocolError{Name: name, Protocols: slices.Compact(protocols), Wanted: wanted}
}

// preferred leaves out what is only found beside a better candidate: an address is that of
// the port that has it, even if a floating IP or a VIP leads to the same address; and the
// port of a zone comes before what other zones have of it.
func preferred(found []Endpoint) []Endpoint {
	rank := func(e Endpoint) int {
		switch {
		case e.Kind == Service:
			return 2
		case e.Kind == FloatingIP:
			return 3
		case e.Kind == RouterPort:
			return 4
		case e.remote:
			return 1
		}
		return 0
	}
	if len(found) < 2 {
		return found
	}
	best := rank(slices.MinFunc(found, func(a, b Endpoint) int { return cmp.Compare(rank(a), rank(b)) }))
	return slices.DeleteFunc(found, func(e Endpoint) bool { return rank(e) > best })
}

func (f Filter) accepts(e Endpoint) bool {
	if f.Protocol != "" && e.Protocol != "" && e.Protocol != f.Protocol {
		return false
	}
	if f.Network == "" {
		return true
	}
	for _, name := range []string{e.Network, e.Switch, strings.TrimPrefix(e.Switch, "neutron-")} {
		if name == f.Network || len(f.Network) >= minBeginning && strings.HasPrefix(name, f.Network) {
			return true
		}
	}
	return false
}

// candidates returns the endpoints with a name, or, if none has it, those whose UUID begins
// with it.
func (n *Names) candidates(name string) []Endpoint {
	key := strings.ToLower(name)
	key = strings.TrimPrefix(key, "pod/")
	if ip, port, ok := parseVIP(key); ok && port == 0 {
		key = ip.String()
	}
	var found []Endpoint
	for _, at := range n.byKey[key] {
		found = append(found, n.endpoints[at])
	}
	if len(found) > 0 || len(key) < minBeginning || strings.Trim(key, "0123456789abcdef-") != "" {
		return found
	}
	for _, e := range n.endpoints {
		if beginsUUID(e.LogicalPort, key) || slices.ContainsFunc(e.keys, func(id string) bool { return beginsUUID(id, key) }) {
			found = append(found, e)
		}
	}
	return found
}

// merged returns the endpoints without services that several zones have: OVN
// interconnection writes each service into the databases of every zone.
func merged(found []Endpoint) []Endpoint {
	var all []Endpoint
	for _, e := range found {
		same := func(o Endpoint) bool {
			return e.Kind == Service && o.Kind == Service && o.zone != e.zone && o.Name == e.Name && o.Protocol == e.Protocol &&
				o.Balancer == e.Balancer && slices.Equal(o.IPs, e.IPs) && slices.Equal(o.Backends, e.Backends)
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
	for _, e := range n.endpoints {
		if e.Kind != RouterPort && e.Kind != FloatingIP && strings.HasPrefix(e.Name, text) {
			found = append(found, e.Name)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(limit, len(found))]
}

// nearest returns the names that are most like a text.
func (n *Names) nearest(text string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	text = strings.ToLower(text)
	most := max(2, len(text)/3)
	for _, e := range n.endpoints {
		name := strings.ToLower(e.Name)
		d := distance(text, name, most)
		if _, last, ok := strings.Cut(name, "/"); ok { // without its namespace
			d = min(d, distance(text, last, most)+1)
		}
		if d <= most {
			found = append(found, near{e.Name, d})
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

const maxNearest = 3

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
func (n *Names) Holder(port string, tag int) (e Endpoint, ok bool) {
	if tag != 0 {
		at := slices.IndexFunc(n.endpoints, func(e Endpoint) bool { return e.Parent == port && e.Tag == tag })
		if at >= 0 {
			return n.endpoints[at], true
		}
	}
	for _, at := range n.byKey[strings.ToLower(port)] {
		if e := n.endpoints[at]; e.LogicalPort == port {
			return e, true
		}
	}
	return Endpoint{}, false
}

// WithIP returns the endpoints with an IP address.
func (n *Names) WithIP(ip netip.Addr) []Endpoint {
	var found []Endpoint
	for _, at := range n.byKey[ip.String()] {
		if e := n.endpoints[at]; slices.Contains(e.IPs, ip) {
			found = append(found, e)
		}
	}
	return found
}

// WithMAC returns the endpoints with a MAC address.
func (n *Names) WithMAC(mac string) []Endpoint {
	var found []Endpoint
	for _, at := range n.byKey[mac] {
		if e := n.endpoints[at]; e.MAC == mac {
			found = append(found, e)
		}
	}
	return found
}
