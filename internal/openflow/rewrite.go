package openflow

import (
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// rewrites lists the texts that ovs-ofctl prints and cannot read back: a name, and a
// function that returns a readable text with the same meaning. The comment names the
// OVS versions in which this was seen.
var rewrites = []struct {
	name string
	fix  func(string) string
}{
	{"masked set_field of a field that takes no mask", rewriteSetField}, // 2.13 to 3.1
	{"igmp, which ovs-ofctl prints and cannot read", rewriteIGMP},       // all
	{"gtpu fields without their tun_ prefix", rewriteGTPU},              // 2.13 to 3.1
}

// Rewrite returns the text of a flow or a group in a form that ovs-ofctl can read, and
// the names of the rewrites that changed it.
func Rewrite(text string) (rewritten string, names []string) {
	for _, r := range rewrites {
		if fixed := r.fix(text); fixed != text {
			text = fixed
			names = append(names, r.name)
		}
	}
	return text, names
}

// maskedField matches the notation of OpenFlow 1.5 dumps for a load into a part of a
// field, or into a field whose width is not a multiple of eight bits.
var maskedField = regexp.MustCompile(`set_field:(0x[0-9a-fA-F]+|[0-9]+)/(0x[0-9a-fA-F]+|[0-9]+)->([a-z0-9_]+)`)

// loadName returns the name of a field for load (ovs-fields(7)) if set_field rejects a
// mask with that field, and "" for other fields.
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

// setsMasked reports whether rewriteSetField may change text. This avoids the pattern,
// which costs more than everything else that is done with a flow, for nearly all flows.
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
		if last := strings.LastIndex(value, set); last >= 0 { // the earlier ones have no "->"
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

func rewriteSetField(text string) string {
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

// loads returns one load for each run of ones in the mask.
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

// rewriteIGMP rewrites an IGMP match as ovs-save does (type and code first).
func rewriteIGMP(text string) string {
	return rewriteMatch(text, "igmp", func(token string) string {
		switch key, value, _ := strings.Cut(token, "="); key {
		case "igmp":
			return "ip,nw_proto=2"
		case "igmp_type":
			return "tp_src=" + value
		case "igmp_code":
			return "tp_dst=" + value
		}
		return token
	})
}

func rewriteGTPU(text string) string {
	return rewriteMatch(text, "gtpu_", func(token string) string {
		if strings.HasPrefix(token, "gtpu_") {
			return "tun_" + token
		}
		return token
	})
}

// rewriteMatch replaces each token of a flow's match that holds word.
func rewriteMatch(text, word string, replace func(token string) string) string {
	match, actions, ok := cutActions(text)
	if !ok || !strings.Contains(match, word) {
		return text
	}
	list := tokens(match)
	for i, token := range list {
		list[i] = replace(token)
	}
	return strings.Join(list, ",") + " actions=" + actions
}
