package openflow

import (
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// Mend is a known fault in the way from ovs-ofctl's output back into ovs-ofctl,
// and the text that means the same and can be read.
type Mend struct {
	Name string
	Seen string // the OVS versions in which the fault was seen
	fix  func(string) string
}

// Mends lists the faults, in the order in which they are mended.
func Mends() []Mend {
	return []Mend{
		{Name: "masked set_field of a field that takes no mask", Seen: "2.13 to 3.1", fix: mendSetField},
		{Name: "igmp, which is printed and not read", Seen: "all", fix: mendIGMP},
		{Name: "gtpu fields without their tun_ prefix", Seen: "2.13 to 3.1", fix: mendGTPU},
	}
}

// Apply mends text and names the mends that changed it.
func Apply(text string) (mended string, names []string) {
	for _, m := range Mends() {
		if fixed := m.fix(text); fixed != text {
			text = fixed
			names = append(names, m.Name)
		}
	}
	return text, names
}

// maskedField matches what OpenFlow 1.5 dumps print for a load of a part of a
// field, or of a field whose width is no multiple of eight bits.
var maskedField = regexp.MustCompile(`set_field:(0x[0-9a-fA-F]+|[0-9]+)/(0x[0-9a-fA-F]+|[0-9]+)->([a-z0-9_]+)`)

// loadName maps fields that ovs-ofctl refuses a mask for to the name that
// load takes (ovs-fields(7)).
func loadName(field string) string {
	switch field {
	case "ip_dscp":
		return "OXM_OF_IP_DSCP"
	case "nw_ecn", "ip_ecn":
		return "NXM_NX_IP_ECN"
	case "nw_ttl":
		return "NXM_NX_IP_TTL"
	case "mpls_ttl":
		return "NXM_NX_MPLS_TTL"
	case "mpls_label":
		return "OXM_OF_MPLS_LABEL"
	case "mpls_tc":
		return "OXM_OF_MPLS_TC"
	case "mpls_bos":
		return "OXM_OF_MPLS_BOS"
	case "arp_op":
		return "NXM_OF_ARP_OP"
	case "icmp_type":
		return "NXM_OF_ICMP_TYPE"
	case "icmp_code":
		return "NXM_OF_ICMP_CODE"
	case "icmpv6_type":
		return "NXM_NX_ICMPV6_TYPE"
	case "icmpv6_code":
		return "NXM_NX_ICMPV6_CODE"
	case "nd_reserved":
		return "ERICOXM_OF_ICMPV6_ND_RESERVED"
	case "nd_options_type":
		return "ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE"
	case "vlan_pcp":
		return "OXM_OF_VLAN_PCP"
	case "in_port":
		return "NXM_OF_IN_PORT"
	}
	return ""
}

// setsMasked tells whether text may hold what mendSetField mends. Nearly no flow
// does, and a pattern costs more than all else that is done to a flow.
func setsMasked(text string) bool {
	const set = "set_field:"
	for {
		at := strings.Index(text, set)
		if at < 0 {
			return false
		}
		text = text[at+len(set):]
		value, rest, ok := strings.Cut(text, "->")
		if !ok {
			return false
		}
		if last := strings.LastIndex(value, set); last >= 0 { // those before have no end of their own
			value = value[last+len(set):]
		}
		text = rest
		if !strings.Contains(value, "/") {
			continue
		}
		end := strings.IndexFunc(rest, func(c rune) bool { return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') })
		if end < 0 {
			end = len(rest)
		}
		if loadName(rest[:end]) != "" {
			return true
		}
	}
}

func mendSetField(text string) string {
	if !setsMasked(text) {
		return text
	}
	return maskedField.ReplaceAllStringFunc(text, func(action string) string {
		part := maskedField.FindStringSubmatch(action)
		name := loadName(part[3])
		value, err1 := strconv.ParseUint(part[1], 0, 64)
		mask, err2 := strconv.ParseUint(part[2], 0, 64)
		if name == "" || err1 != nil || err2 != nil || mask == 0 {
			return action
		}
		return strings.Join(loads(value, mask, name), ",")
	})
}

// loads spells a masked set as one load for each run of ones in the mask.
func loads(value, mask uint64, name string) []string {
	var out []string
	for mask != 0 {
		low := bits.TrailingZeros64(mask)
		width := bits.TrailingZeros64(^(mask >> low))
		run := uint64(1)<<width - 1
		out = append(out, fmt.Sprintf("load:%#x->%s[%d..%d]", value>>low&run, name, low, low+width-1))
		mask &^= run << low
	}
	return out
}

// mendIGMP follows ovs-save, which rewrites the same (type and code first).
func mendIGMP(text string) string {
	if !strings.Contains(text, "igmp") {
		return text
	}
	match, actions, ok := cutActions(text)
	if !ok || !strings.Contains(match, "igmp") {
		return text
	}
	list := tokens(match)
	for i, token := range list {
		key, value, _ := strings.Cut(token, "=")
		switch key {
		case "igmp":
			list[i] = "ip,nw_proto=2"
		case "igmp_type":
			list[i] = "tp_src=" + value
		case "igmp_code":
			list[i] = "tp_dst=" + value
		}
	}
	return strings.Join(list, ",") + " actions=" + actions
}

func mendGTPU(text string) string {
	if !strings.Contains(text, "gtpu_") {
		return text
	}
	match, actions, ok := cutActions(text)
	if !ok || !strings.Contains(match, "gtpu_") {
		return text
	}
	list := tokens(match)
	for i, token := range list {
		if strings.HasPrefix(token, "gtpu_") {
			list[i] = "tun_" + token
		}
	}
	return strings.Join(list, ",") + " actions=" + actions
}
