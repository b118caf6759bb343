package trace

import (
	"regexp"
	"sort"
	"strings"

	"ovs-offline/internal/portmap"
)

// A flood goes to ports in an order that differs between two runs of a switch,
// and what one port needs done to the packet (a VLAN tag, another MAC address)
// is done and undone between the outputs. So a flood is compared as what each
// output gets, whatever their order.

// flooded tells the lines of a trace that announce a flood.
var flooded = regexp.MustCompile(`(?m)(flooding$|^\s+(FLOOD|ALL)$| -> forwarding to mcast)`)

// packet is what was done to a packet so far.
type packet struct {
	vlans  []string          // tags pushed
	popped int               // tags of its own taken off
	fields map[string]string // header fields set
	other  []string          // anything else, in order
	origin map[string]string // header fields as the flow tells them
}

// floodOutputs lists each output of datapath actions with what was done to the
// packet before it, sorted. flow is the trace's "Flow:" line.
func floodOutputs(actions, flow string) string {
	p := packet{fields: map[string]string{}, origin: origins(flow)}
	var outputs []string
	tokens := portmap.SplitActions(actions)
	for i := 0; i < len(tokens); i++ {
		token := tokens[i]
		if strings.HasPrefix(token, "tnl_push(") {
			// The last output needs no clone of the packet to be pushed into a tunnel.
			outputs = append(outputs, p.String()+"clone("+strings.Join(tokens[i:], ",")+")")
			break
		}
		if strings.HasPrefix(token, "trunc(") && i+1 < len(tokens) {
			i++
			outputs = append(outputs, p.String()+token+","+tokens[i]) // it cuts for the next output alone
			continue
		}
		if !p.apply(token) {
			outputs = append(outputs, p.String()+token)
		}
	}
	sort.Strings(outputs)
	return strings.Join(outputs, " ")
}

// apply does to the packet what an action does; false for one that puts it out.
func (p *packet) apply(action string) bool {
	name, arguments, _ := strings.Cut(strings.TrimSuffix(action, ")"), "(")
	switch name {
	case "push_vlan":
		p.vlans = append(p.vlans, arguments)
	case "pop_vlan":
		if n := len(p.vlans); n > 0 {
			p.vlans = p.vlans[:n-1]
		} else {
			p.popped++
		}
	case "set":
		p.set(arguments)
	case "push_mpls", "pop_mpls", "push_eth", "pop_eth", "push_nsh", "pop_nsh", "ct_clear", "dec_ttl", "hash":
		p.other = append(p.other, action)
	default:
		return false
	}
	return true
}

// set notes fields: "eth(src=..,dst=..)". A tunnel's count as one.
func (p *packet) set(arguments string) {
	header, fields, nested := strings.Cut(strings.TrimSuffix(arguments, ")"), "(")
	if !nested || header == "tunnel" || header == "encap" {
		p.fields[header] = arguments
		return
	}
	for _, field := range portmap.SplitActions(fields) {
		key, value, _ := strings.Cut(field, "=")
		p.fields[header+"."+key] = value
	}
}

// String says what was done and not undone.
func (p *packet) String() string {
	var done []string
	if !(p.popped == 1 && len(p.vlans) == 1 && p.vlans[0] == p.origin["vlan"]) {
		for range p.popped {
			done = append(done, "pop")
		}
		done = append(done, p.vlans...)
	}
	var fields []string
	for key, value := range p.fields {
		if p.origin[key] != value {
			fields = append(fields, key+"="+value)
		}
	}
	sort.Strings(fields)
	return "[" + strings.Join(append(append(done, fields...), p.other...), " ") + "]"
}

// origins reads a packet's own fields, by the names that datapath actions use.
func origins(flow string) map[string]string {
	names := map[string]string{"dl_src": "eth.src", "dl_dst": "eth.dst", "nw_src": "ipv4.src", "nw_dst": "ipv4.dst", "nw_ttl": "ipv4.ttl",
		"ipv6_src": "ipv6.src", "ipv6_dst": "ipv6.dst", "arp_spa": "arp.sip", "arp_tpa": "arp.tip", "arp_op": "arp.op", "arp_sha": "arp.sha", "arp_tha": "arp.tha"}
	fields := map[string]string{}
	vid, pcp := "", "0"
	for _, token := range portmap.SplitActions(strings.TrimPrefix(flow, "Flow: ")) {
		key, value, _ := strings.Cut(token, "=")
		switch key {
		case "dl_vlan":
			vid = value
		case "dl_vlan_pcp":
			pcp = value
		default:
			if name := names[key]; name != "" {
				fields[name] = value
			}
		}
	}
	if vid != "" {
		fields["vlan"] = "vid=" + vid + ",pcp=" + pcp
	}
	return fields
}
