package reach

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/snapshot/names"
)

// Port is a protocol, with a destination port if it has ports.
type Port struct {
	Protocol string // icmp, tcp, udp or sctp
	Number   uint16 // 0 for icmp
}

// String returns "tcp/80" or "icmp".
func (p Port) String() string {
	if p.Number == 0 {
		return p.Protocol
	}
	return fmt.Sprintf("%s/%d", p.Protocol, p.Number)
}

// MarshalText implements encoding.TextMarshaler.
func (p Port) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// ParsePort reads "tcp/80" or "icmp".
func ParsePort(text string) (Port, error) {
	protocol, number, numbered := strings.Cut(strings.TrimSpace(text), "/")
	if protocol == "icmp" && !numbered {
		return Port{Protocol: protocol}, nil
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if !slices.Contains([]string{"tcp", "udp", "sctp"}, protocol) || err != nil || n == 0 {
		return Port{}, fault.Usagef("a port is icmp, tcp/NUMBER, udp/NUMBER or sctp/NUMBER, not %q", text)
	}
	return Port{protocol, uint16(n)}, nil
}

// ComparePorts compares ports by protocol, and then by number.
func ComparePorts(a, b Port) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
}

// portsOf returns ICMP, and the ports that ACLs and load balancers name. Of a range, they
// are its ends.
func portsOf(views []*view) []Port {
	found := []Port{{Protocol: "icmp"}}
	for _, view := range views {
		found = append(found, view.ports...)
		for _, endpoint := range view.services {
			found = append(found, servicePorts(endpoint)...)
		}
	}
	slices.SortFunc(found, ComparePorts)
	return slices.Compact(found)
}

// servicePorts returns the ports of a VIP and of its backends.
func servicePorts(endpoint names.Endpoint) []Port {
	if endpoint.Port == 0 {
		return nil
	}
	found := []Port{{endpoint.Protocol, endpoint.Port}}
	for _, backend := range endpoint.Backends {
		if n, err := strconv.ParseUint(backend[strings.LastIndexByte(backend, ':')+1:], 10, 16); err == nil && n > 0 {
			found = append(found, Port{endpoint.Protocol, uint16(n)})
		}
	}
	return found
}

var (
	// isPort matches a comparison of a destination port with numbers, on its right.
	isPort = lazyregexp.New(`\b(tcp|udp|sctp)\.dst\s*(==|!=|<=|>=|<|>)\s*(\{[^}]*\}|\d+)`)
	// isPortFrom matches one with a number on its left: 9100 <= tcp.dst.
	isPortFrom = lazyregexp.New(`\b(\d+)\s*(<=|<|>=|>)\s*(tcp|udp|sctp)\.dst\b`)
	isNumber   = lazyregexp.New(`\d+`)
)

// portsIn returns the destination ports that a match of OVN names. A comparison without
// equality gives the nearest port that fulfils it.
func portsIn(match string) []Port {
	var found []Port
	add := func(protocol, operator, number string) {
		n, err := strconv.ParseUint(number, 10, 16)
		switch operator {
		case "<":
			n--
		case ">":
			n++
		}
		if err == nil && n > 0 && n <= 65535 {
			found = append(found, Port{protocol, uint16(n)})
		}
	}
	for _, m := range isPort.FindAllStringSubmatch(match, -1) {
		for _, number := range isNumber.FindAllString(m[3], -1) {
			add(m[1], m[2], number)
		}
	}
	turned := map[string]string{"<": ">", ">": "<"}
	for _, m := range isPortFrom.FindAllStringSubmatch(match, -1) {
		add(m[3], turned[m[2]], m[1])
	}
	return found
}
