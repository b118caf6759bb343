package odp

import (
	"iter"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow"
)

// Masks are the bits on which a flow of the datapath matches, by the names that the fields have in a
// match of OpenFlow.
type Masks map[string]openflow.Mask

// Criterion is a field of the match of a datapath flow. A field without a name of its own has the one
// of its header: "recirc_id", "ct_state".
type Criterion struct {
	Header, Field string
	Value         string // with its mask, if it has one
}

// Criteria yields the fields of the match of a datapath flow, as dpctl/dump-flows prints it. Those of an
// encapsulated packet follow their header.
func Criteria(match string) iter.Seq[Criterion] {
	return func(yield func(Criterion) bool) { criteria(match, yield) }
}

func criteria(match string, yield func(Criterion) bool) bool {
	for match != "" {
		end := openflow.IndexSeparator(match, false)
		header, inner, _ := strings.Cut(strings.TrimLeft(match[:end], " "), "(")
		inner = strings.TrimSuffix(inner, ")")
		match = match[min(end+1, len(match)):]
		if header == "encap" {
			if !criteria(inner, yield) {
				return false
			}
			continue
		}
		for more := header != ""; more; {
			part := inner
			if end := openflow.IndexSeparator(inner, false); end < len(inner) {
				part, inner = inner[:end], inner[end+1:]
			} else {
				more = false
			}
			name, value, named := strings.Cut(part, "=")
			if !named {
				name, value = "", part
			}
			if !yield(Criterion{header, name, value}) {
				return false
			}
		}
	}
	return true
}

// IsOpen reports whether the criterion accepts every value: its mask has no bits.
func (c Criterion) IsOpen() bool {
	at := strings.IndexByte(c.Value, '/')
	if at < 0 {
		return false
	}
	for i := at + 1; i < len(c.Value); i++ {
		switch c.Value[i] {
		case '0', '.', ':', 'x':
		default:
			return false
		}
	}
	return true
}

// Name returns the name that the field has in a match of OpenFlow, "" for one that no match has.
func (c Criterion) Name() string {
	switch name, own := c.Field, ""; c.Header {
	case "in_port", "recirc_id", "dp_hash", "skb_priority", "ct_state", "ct_zone", "ct_mark", "ct_label", "tcp_flags":
		return c.Header
	case "skb_mark":
		return "pkt_mark"
	case "eth_type":
		return "dl_type"
	case "ct_tuple4":
		own = map[string]string{"src": "ct_nw_src", "dst": "ct_nw_dst", "proto": "ct_nw_proto", "tp_src": "ct_tp_src", "tp_dst": "ct_tp_dst"}[name]
		return own
	case "ct_tuple6":
		own = map[string]string{"src": "ct_ipv6_src", "dst": "ct_ipv6_dst", "proto": "ct_nw_proto", "tp_src": "ct_tp_src", "src_port": "ct_tp_src", "tp_dst": "ct_tp_dst", "dst_port": "ct_tp_dst"}[name]
		return own
	case "tunnel":
		return map[string]string{"tun_id": "tun_id", "src": "tun_src", "dst": "tun_dst", "ipv6_src": "tun_ipv6_src", "ipv6_dst": "tun_ipv6_dst"}[name]
	case "ipv4", "ipv6":
		switch name {
		case "proto":
			return "nw_proto"
		case "tos", "tclass":
			return "nw_tos"
		case "frag":
			return "nw_frag"
		}
	}
	if name, known := openflow.FieldName(c.Header + "." + c.Field); known {
		return name
	}
	return ""
}

// MasksOf returns the masks of the match of a datapath flow. headers are the headers of its packets,
// matched or not.
func MasksOf(match string) (masks Masks, headers map[string]bool) {
	masks, headers = Masks{}, map[string]bool{}
	for c := range Criteria(match) {
		headers[c.Header] = true
		name := c.Name()
		if name == "" {
			continue
		}
		if _, mask, ok := openflow.MaskOf(name, c.Value); ok {
			masks[name] = mask
			if name == "nw_tos" {
				masks.splitTOS(mask)
			}
		}
	}
	return masks, headers
}

// splitTOS sets the masks of the two fields of OpenFlow that one field of the datapath holds. A match
// of OpenFlow prints no masks for them.
func (m Masks) splitTOS(tos openflow.Mask) {
	const dscp, ecn = 0xfc, 0x3
	all := openflow.AllBits("nw_tos")
	m["nw_tos"], m["nw_ecn"] = all, openflow.AllBits("nw_ecn")
	if !tos.Covers(all.And(dscp)) {
		m["nw_tos"] = openflow.Mask{}
	}
	if !tos.Covers(all.And(ecn)) {
		m["nw_ecn"] = openflow.Mask{}
	}
}

// comparable are the fields whose masks Lacking compares. The datapath states all others in another
// way, or always matches them as a whole.
var comparable = strings.Fields("pkt_mark dp_hash skb_priority ct_state ct_zone ct_mark ct_label " +
	"ct_nw_src ct_nw_dst ct_ipv6_src ct_ipv6_dst ct_nw_proto ct_tp_src ct_tp_dst tun_id tun_src tun_dst tun_ipv6_src tun_ipv6_dst " +
	"dl_src dl_dst dl_vlan dl_vlan_pcp nw_src nw_dst ipv6_src ipv6_dst ipv6_label arp_spa arp_tpa arp_op arp_sha arp_tha " +
	"nw_proto nw_tos nw_ecn nw_ttl tp_src tp_dst tcp_flags icmp_type icmp_code nd_target nd_sll nd_tll")

// Lacking returns the fields of which a recorded flow of the datapath does not match bits that the line
// "Megaflow:" of ofproto/trace has for one of its packets. ovs-vswitchd deletes such a flow when it
// revalidates it (revalidate_ukey in ofproto/ofproto-dpif-upcall.c). held is false if the datapath
// can't hold one of them for such a packet.
func Lacking(match, megaflow string) (fields []string, held bool) {
	recorded, headers := MasksOf(match)
	held = true
	for token := range openflow.Tokens(megaflow) {
		name, value, valued := strings.Cut(token, "=")
		if !valued {
			continue
		}
		name, wanted, ok := openflow.MaskOf(name, value)
		if name == "arp_op" { // ovs-vswitchd keeps the lower half
			wanted = wanted.And(0xff)
		}
		if !ok || !slices.Contains(comparable, name) || isOfVLAN(name) && !headers["vlan"] || recorded[name].Covers(wanted) {
			continue
		}
		fields = append(fields, name)
		held = held && holds(recorded, headers, name)
	}
	return fields, held
}

func isOfVLAN(name string) bool { return strings.HasPrefix(name, "dl_vlan") }

// holds reports whether the key of a flow can hold a field. It holds the fields of neighbour discovery only
// beside the whole type of the message (odp_flow_key_from_flow__ in lib/odp-util.c).
func holds(recorded Masks, headers map[string]bool, name string) bool {
	switch {
	case strings.HasPrefix(name, "nd_"):
		return headers["nd"] && recorded["icmp_type"].Covers(openflow.AllBits("icmp_type"))
	case strings.HasPrefix(name, "tp_"): // without -m, headers are left out
		return headers["tcp"] || headers["udp"] || headers["sctp"] || !headers["skb_priority"]
	}
	return true
}
