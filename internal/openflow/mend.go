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
	names := map[string]string{
		"ip_dscp": "OXM_OF_IP_DSCP", "nw_ecn": "NXM_NX_IP_ECN", "ip_ecn": "NXM_NX_IP_ECN",
		"nw_ttl": "NXM_NX_IP_TTL", "mpls_ttl": "NXM_NX_MPLS_TTL",
		"mpls_label": "OXM_OF_MPLS_LABEL", "mpls_tc": "OXM_OF_MPLS_TC", "mpls_bos": "OXM_OF_MPLS_BOS",
		"arp_op": "NXM_OF_ARP_OP", "icmp_type": "NXM_OF_ICMP_TYPE", "icmp_code": "NXM_OF_ICMP_CODE",
		"icmpv6_type": "NXM_NX_ICMPV6_TYPE", "icmpv6_code": "NXM_NX_ICMPV6_CODE",
		"nd_reserved": "ERICOXM_OF_ICMPV6_ND_RESERVED", "nd_options_type": "ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE",
		"vlan_pcp": "OXM_OF_VLAN_PCP", "in_port": "NXM_OF_IN_PORT",
	}
	return names[field]
}

func mendSetField(text string) string {
	if !strings.Contains(text, "set_field:") {
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
