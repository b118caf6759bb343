package odp

import (
	"regexp"
	"sort"
	"strings"

	"ovs-offline/internal/portmap"
)

// The order of a flood's output ports differs between two runs of a switch. A change
// of the packet that only some ports need (a VLAN tag, another MAC address) is made
// and undone between the outputs. So floods are compared by the packet that each
// port sends, in any order.

// flooded matches the lines of a trace that announce a flood.
var flooded = regexp.MustCompile(`(?m)(flooding$|^\s+(FLOOD|ALL)$| -> forwarding to mcast)`)

// Floods reports whether a trace of ofproto/trace announces a flood.
func Floods(trace string) bool { return flooded.MatchString(trace) }

// packet holds the changes made to a packet so far.
type packet struct {
	vlans  []string          // pushed tags
	popped int               // number of the packet's own tags that were popped
	fields map[string]string // changed header fields
	other  []string          // all other changes, in order
	origin map[string]string // the packet's header fields before any change
}

// FloodOutputs lists the outputs of datapath actions, each with the changes made to
// the packet before it, sorted. flow is the trace's "Flow:" line.
func FloodOutputs(actions, flow string) string {
	p := packet{fields: map[string]string{}, origin: origins(flow)}
	var outputs []string
	tokens := portmap.SplitActions(actions)
	for i := 0; i < len(tokens); i++ {
		token := tokens[i]
		if strings.HasPrefix(token, "tnl_push(") {
			// The last output to a tunnel is not in a clone action.
			outputs = append(outputs, p.String()+"clone("+strings.Join(tokens[i:], ",")+")")
			break
		}
		if strings.HasPrefix(token, "trunc(") && i+1 < len(tokens) {
			i++
			outputs = append(outputs, p.String()+token+","+tokens[i]) // trunc applies to the next output only
			continue
		}
		if !p.apply(token) {
			outputs = append(outputs, p.String()+token)
		}
	}
	sort.Strings(outputs)
	return strings.Join(outputs, " ")
}

// apply applies an action to the packet. It returns false for outputs.
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

// set stores changed fields: "eth(src=..,dst=..)". Those of a tunnel count as one.
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

// String returns the changes that were not undone.
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

// origins returns the header fields of a flow, by the names in datapath actions.
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

var (
	outputName = regexp.MustCompile(`^([A-Za-z0-9_.@-]+|"(\\.|[^"\\])*")$`)
	nestedList = regexp.MustCompile(`^(clone|sample|actions|check_pkt_len|gt|le)\((.*)\)$`)
)

// isOutput reports whether an action is a port, rather than one of the other actions
// without parentheses.
func isOutput(action string) bool {
	switch action {
	case "drop", "pop_vlan", "pop_eth", "ct_clear", "dec_ttl":
		return false
	}
	return outputName.MatchString(action)
}

// SortOutputs sorts each run of consecutive outputs, also in nested lists of actions.
func SortOutputs(actions string) string {
	tokens := portmap.SplitActions(actions)
	for start := 0; start < len(tokens); {
		if m := nestedList.FindStringSubmatch(tokens[start]); m != nil {
			tokens[start] = m[1] + "(" + SortOutputs(m[2]) + ")"
		}
		if strings.HasPrefix(tokens[start], "trunc(") {
			start += 2 // trunc applies to the next output only
			continue
		}
		end := start
		for end < len(tokens) && isOutput(tokens[end]) {
			end++
		}
		sort.Strings(tokens[start:end])
		start = max(end, start+1)
	}
	return strings.Join(tokens, ",")
}
