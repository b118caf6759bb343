package rules

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow/flow"
)

// Subject is a packet in a pipeline, with the logical ports by which it entered and leaves, ""
// where they are not known.
type Subject struct {
	Packet          flow.Packet
	InPort, OutPort string
	// State has the registers and the ct_state of the packet where it ended; nil if they are not
	// known.
	State     *flow.Packet
	anyPacket bool // it stands for all packets with these ports
}

// holding is how far the match of a logical flow holds for a packet. The order makes "and" the
// least of two and "or" the greatest.
type holding int

const (
	fails    holding = iota
	unclear          // a part is about something that this package does not evaluate
	possible         // apart from conntrack and registers, it holds
	holds
)

// matcher evaluates the match of a logical flow (ovn-sb(5), Logical_Flow).
type matcher struct {
	network *Network
	subject Subject
	tokens  []string
	depth   int
}

var matchToken = lazyregexp.New(`"[^"]*"|&&|\|\||[=!<>]=|[()!{},<>]|[^\s()!{},<>=&|"]+`)

// evaluate returns how far a match holds for a packet.
func (n *Network) evaluate(match string, s Subject) holding {
	m := matcher{network: n, subject: s, tokens: matchToken.FindAllString(match, -1)}
	result := m.or()
	if len(m.tokens) > 0 {
		return unclear
	}
	return result
}

func (m *matcher) next() string {
	if len(m.tokens) == 0 {
		return ""
	}
	token := m.tokens[0]
	m.tokens = m.tokens[1:]
	return token
}

func (m *matcher) accept(token string) bool {
	if len(m.tokens) == 0 || m.tokens[0] != token {
		return false
	}
	m.tokens = m.tokens[1:]
	return true
}

func (m *matcher) or() holding {
	result := m.and()
	for m.accept("||") {
		result = max(result, m.and())
	}
	return result
}

func (m *matcher) and() holding {
	result := m.not()
	for m.accept("&&") {
		result = min(result, m.not())
	}
	return result
}

// maxNested bounds parentheses and negations within each other.
const maxNested = 100

func (m *matcher) not() holding {
	if m.depth++; m.depth > maxNested {
		m.tokens = nil
		return unclear
	}
	defer func() { m.depth-- }()
	switch {
	case m.accept("!"):
		return map[holding]holding{fails: holds, unclear: unclear, possible: possible, holds: fails}[m.not()]
	case m.accept("("):
		result := m.or()
		if !m.accept(")") {
			return unclear
		}
		return result
	}
	return m.comparison()
}

// comparison evaluates "FIELD", "FIELD == VALUE" or "FIELD != VALUE".
func (m *matcher) comparison() holding {
	field := m.next()
	operator := "present"
	var values []string
	for _, o := range []string{"==", "!=", "<=", ">=", "<", ">"} {
		if m.accept(o) {
			operator, values = o, m.values()
			break
		}
	}
	if result, known := m.state(field, operator, values); known {
		return result
	}
	if strings.HasPrefix(field, "ct") || strings.HasPrefix(field, "reg") || strings.HasPrefix(field, "xreg") || strings.HasPrefix(field, "xxreg") || strings.HasPrefix(field, "flags") {
		return possible
	}
	switch operator {
	case "present":
		return m.predicate(field)
	case "==", "!=":
	default:
		return m.unknown()
	}
	result := fails
	for _, value := range values {
		result = max(result, m.equals(field, value))
	}
	if operator == "!=" {
		return map[holding]holding{fails: holds, unclear: unclear, possible: possible, holds: fails}[result]
	}
	return result
}

// registerBit matches a bit of a register, as ovn-northd writes it.
var registerBit = lazyregexp.New(`^(reg[0-9])\[([0-9]+)\]$`)

// state evaluates a bit of a register, or a flag of ct_state; known is false for another field,
// and where the packet's state is not known.
func (m *matcher) state(field, operator string, values []string) (result holding, known bool) {
	if m.subject.State == nil || m.subject.anyPacket {
		return unclear, false
	}
	is := func(yes bool) (holding, bool) {
		if yes {
			return holds, true
		}
		return fails, true
	}
	if flag, isFlag := strings.CutPrefix(field, "ct."); isFlag && operator == "present" {
		return is(slices.Contains(strings.Split(m.subject.State.Get("ct_state"), "|"), flag))
	}
	bit := registerBit.FindStringSubmatch(field)
	if bit == nil || len(values) != 1 || values[0] != "0" && values[0] != "1" || operator != "==" && operator != "!=" {
		return unclear, false
	}
	at, err := strconv.Atoi(bit[2])
	held, _ := m.subject.State.Number(bit[1]) // a register that is 0 is not in the text of a flow
	if err != nil || at > 31 {
		return unclear, false
	}
	return is((held>>at&1 == 1) == ((values[0] == "1") == (operator == "==")))
}

// values reads a value, or a set of them in braces.
func (m *matcher) values() []string {
	if !m.accept("{") {
		return []string{m.next()}
	}
	var all []string
	for len(m.tokens) > 0 && !m.accept("}") {
		if token := m.next(); token != "," {
			all = append(all, token)
		}
	}
	return all
}

// unknown returns how far a part holds that this package does not evaluate.
func (m *matcher) unknown() holding {
	if m.subject.anyPacket {
		return possible
	}
	return unclear
}

// predicate evaluates a word such as "ip4".
func (m *matcher) predicate(word string) holding {
	if m.subject.anyPacket && word != "0" && word != "1" {
		return possible
	}
	kind := m.subject.Packet.EtherType()
	protocol, ok := m.subject.Packet.Protocol()
	is := map[string]bool{"1": true, "0": false, "ip": kind == flow.IPv4 || kind == flow.IPv6, "ip4": kind == flow.IPv4, "ip6": kind == flow.IPv6,
		"arp": kind == flow.ARP, "tcp": ok && protocol == flow.TCP, "udp": ok && protocol == flow.UDP, "sctp": ok && protocol == flow.SCTP,
		"icmp": ok && (protocol == flow.ICMP || protocol == flow.ICMPv6), "icmp4": ok && protocol == flow.ICMP, "icmp6": ok && protocol == flow.ICMPv6}
	value, known := is[word]
	switch {
	case !known:
		return m.unknown()
	case value:
		return holds
	}
	return fails
}

// equals compares a field with a value: a constant, an address set or a port group.
func (m *matcher) equals(field, value string) holding {
	p := m.subject.Packet
	compare := func(equal bool) holding {
		if equal {
			return holds
		}
		return fails
	}
	protocol, port, _ := strings.Cut(field, ".")
	switch {
	case field == "inport":
		return m.isPort(m.subject.InPort, value)
	case field == "outport":
		return m.isPort(m.subject.OutPort, value)
	case m.subject.anyPacket:
		return possible
	case (port == "src" || port == "dst") && (protocol == "tcp" || protocol == "udp" || protocol == "sctp"):
		number, err := strconv.ParseUint(value, 0, 16)
		if err != nil {
			return unclear
		}
		actual, ok := p.Number("tp_" + port)
		return min(m.predicate(protocol), compare(ok && actual == number))
	case field == "eth.src", field == "eth.dst":
		return m.inSet(value, func(v string) bool { return strings.EqualFold(v, p.Get("dl_"+port)) })
	case (port == "src" || port == "dst") && (protocol == "ip4" || protocol == "ip6"):
		src, dst, ok := p.Addresses()
		if port == "dst" {
			src = dst
		}
		return min(m.predicate(protocol), m.inSet(value, func(v string) bool { return ok && contains(v, src) }))
	}
	return unclear
}

// contains reports whether a text is an address, or a network that holds it.
func contains(text string, a netip.Addr) bool {
	if network, err := netip.ParsePrefix(text); err == nil {
		return network.Contains(a)
	}
	other, err := netip.ParseAddr(text)
	return err == nil && other == a
}

// isPort compares a logical port with a name in quotes or a port group.
func (m *matcher) isPort(port, value string) holding {
	switch group, isGroup := strings.CutPrefix(value, "@"); {
	case port == "":
		return m.unknown()
	case isGroup && m.network.Holds(group, port), value == strconv.Quote(port):
		return holds
	}
	return fails
}

// inSet reports whether a value, or a member of the address set that it names, is accepted.
func (m *matcher) inSet(value string, accept func(string) bool) holding {
	members := []string{value}
	if name, isSet := strings.CutPrefix(value, "$"); isSet {
		members = m.network.addressSets()[name]
	}
	for _, member := range members {
		if accept(member) {
			return holds
		}
	}
	return fails
}
