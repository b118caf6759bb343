package openflow

import (
	"strconv"
	"strings"
	"sync"
)

// notation is how ovs-ofctl prints the values of a field.
type notation int

const (
	hexadecimal notation = iota
	decimal
	macAddress
	ipAddress // of version 4 or 6, by the width of the field
	portName  // the number or the name of a port
)

// field is a field that flows match or set, with its spellings (ovs-fields(7), lib/meta-flow.xml
// of Open vSwitch).
type field struct {
	name  string // in set_field
	match string // in a match
	bits  int    // 0 if the width is not known
	notation
	// load is the name in load, if set_field of ovs-ofctl refuses a mask for the field.
	load string
	// unmasked reports that OpenFlow 1.0 and 1.1 have an action of their own that sets the
	// whole field (mod_nw_src), and lose the mask.
	unmasked bool
	rank     int // the order in which matches have the fields
}

// spelling is a row of the table of fields. The first of the names is for set_field, the
// second one for matches if there are several. The names of NXM and OXM are without their
// prefixes and in lower case; one that is equal to another name is left out. Those with a dot
// are of set actions of the datapath: set(ipv4(src=...)) sets "ipv4.src".
type spelling struct {
	names    string
	bits     int
	notation notation
	load     string
	unmasked bool
}

// spellings is the table of all fields of which a name is spelled in several ways, or whose
// values are. The rows are in the order in which ovs-ofctl prints them in a match.
func spellings() []spelling {
	return []spelling{
		{names: "pkt_mark", bits: 32}, {names: "recirc_id", bits: 32}, {names: "dp_hash", bits: 32}, {names: "conj_id", bits: 32, notation: decimal},
		{names: "skb_priority", bits: 32}, {names: "actset_output", bits: 32, notation: portName},
		{names: "ct_state", bits: 32}, {names: "ct_zone", bits: 16}, {names: "ct_mark", bits: 32}, {names: "ct_label", bits: 128},
		{names: "ct_nw_src", bits: 32, notation: ipAddress}, {names: "ct_ipv6_src", bits: 128, notation: ipAddress},
		{names: "ct_nw_dst", bits: 32, notation: ipAddress}, {names: "ct_ipv6_dst", bits: 128, notation: ipAddress},
		{names: "ct_nw_proto", bits: 8, notation: decimal}, {names: "ct_tp_src", bits: 16, notation: decimal}, {names: "ct_tp_dst", bits: 16, notation: decimal},
		{names: "eth_type dl_type", bits: 16},
		{names: "tun_id tun_id tunnel_id", bits: 64}, {names: "tun_src tun_src tun_ipv4_src", bits: 32, notation: ipAddress},
		{names: "tun_dst tun_dst tun_ipv4_dst", bits: 32, notation: ipAddress}, {names: "tun_ipv6_src", bits: 128, notation: ipAddress},
		{names: "tun_ipv6_dst", bits: 128, notation: ipAddress}, {names: "tun_gbp_id", bits: 16, notation: decimal}, {names: "tun_gbp_flags", bits: 8},
		{names: "tun_gtpu_flags tun_gtpu_flags gtpu_flags", bits: 8}, {names: "tun_gtpu_msgtype tun_gtpu_msgtype gtpu_msgtype", bits: 8, notation: decimal},
		{names: "tun_erspan_ver", bits: 8, notation: decimal}, {names: "tun_erspan_idx", bits: 32}, {names: "tun_erspan_dir", bits: 8, notation: decimal},
		{names: "tun_erspan_hwid", bits: 8}, {names: "tun_flags", bits: 16},
		{names: "metadata", bits: 64}, {names: "in_port in_port in_port_oxm", bits: 16, notation: portName, load: "NXM_OF_IN_PORT"},
		{names: "vlan_tci", bits: 16}, {names: "vlan_vid", bits: 13, notation: decimal, unmasked: true}, {names: "dl_vlan dl_vlan vlan.vid", bits: 12, notation: decimal},
		{names: "vlan_pcp dl_vlan_pcp vlan.pcp", bits: 3, notation: decimal, load: "OXM_OF_VLAN_PCP", unmasked: true},
		{names: "eth_src dl_src eth.src", bits: 48, notation: macAddress, unmasked: true}, {names: "eth_dst dl_dst eth.dst", bits: 48, notation: macAddress, unmasked: true},
		{names: "ipv6_src ipv6_src ipv6.src", bits: 128, notation: ipAddress}, {names: "ipv6_dst ipv6_dst ipv6.dst", bits: 128, notation: ipAddress}, {names: "ipv6_label ipv6_label ipv6.label", bits: 20},
		{names: "arp_spa arp_spa arp.sip", bits: 32, notation: ipAddress}, {names: "arp_tpa arp_tpa arp.tip", bits: 32, notation: ipAddress},
		{names: "ip_src nw_src ipv4_src ipv4.src", bits: 32, notation: ipAddress, unmasked: true}, {names: "ip_dst nw_dst ipv4_dst ipv4.dst", bits: 32, notation: ipAddress, unmasked: true},
		{names: "nw_proto nw_proto ip_proto", bits: 8, notation: decimal}, {names: "arp_op arp_op arp.op", bits: 16, notation: decimal, load: "NXM_OF_ARP_OP"},
		{names: "arp_sha arp_sha arp.sha", bits: 48, notation: macAddress}, {names: "arp_tha arp_tha arp.tha", bits: 48, notation: macAddress},
		{names: "nw_tos nw_tos ip_tos", bits: 8, notation: decimal}, {names: "ip_dscp", bits: 6, notation: decimal, load: "OXM_OF_IP_DSCP", unmasked: true},
		{names: "nw_ecn nw_ecn ip_ecn", bits: 2, notation: decimal, load: "NXM_NX_IP_ECN", unmasked: true},
		{names: "nw_ttl nw_ttl ip_ttl ipv4.ttl ipv6.hlimit", bits: 8, notation: decimal, load: "NXM_NX_IP_TTL"}, {names: "nw_frag nw_frag ip_frag", bits: 8},
		{names: "mpls_label mpls_label mpls.label", bits: 20, notation: decimal, load: "OXM_OF_MPLS_LABEL"}, {names: "mpls_tc mpls_tc mpls.tc", bits: 3, notation: decimal, load: "OXM_OF_MPLS_TC"},
		{names: "mpls_ttl mpls_ttl mpls.ttl", bits: 8, notation: decimal, load: "NXM_NX_MPLS_TTL"}, {names: "mpls_bos mpls_bos mpls.bos", bits: 1, notation: decimal, load: "OXM_OF_MPLS_BOS"},
		{names: "icmp_type icmp_type icmpv4_type icmp.type", bits: 8, notation: decimal, load: "NXM_OF_ICMP_TYPE"},
		{names: "icmp_code icmp_code icmpv4_code icmp.code", bits: 8, notation: decimal, load: "NXM_OF_ICMP_CODE"},
		{names: "icmpv6_type icmp_type icmpv6.type", bits: 8, notation: decimal, load: "NXM_NX_ICMPV6_TYPE"}, {names: "icmpv6_code icmp_code icmpv6.code", bits: 8, notation: decimal, load: "NXM_NX_ICMPV6_CODE"},
		{names: "nd_target nd_target ipv6_nd_target nd.target", bits: 128, notation: ipAddress}, {names: "nd_sll nd_sll ipv6_nd_sll nd.sll", bits: 48, notation: macAddress},
		{names: "nd_tll nd_tll ipv6_nd_tll nd.tll", bits: 48, notation: macAddress}, {names: "nd_reserved nd_reserved icmpv6_nd_reserved nd_ext.nd_reserved", bits: 32, load: "ERICOXM_OF_ICMPV6_ND_RESERVED"},
		{names: "nd_options_type nd_options_type icmpv6_nd_options_type nd_ext.nd_options_type", bits: 8, notation: decimal, load: "ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE"},
		{names: "tp_src tp_src tcp_src udp_src sctp_src tcp.src udp.src sctp.src", bits: 16, notation: decimal, unmasked: true}, {names: "tp_dst tp_dst tcp_dst udp_dst sctp_dst tcp.dst udp.dst sctp.dst", bits: 16, notation: decimal, unmasked: true},
		{names: "tcp_flags", bits: 12},
		{names: "nsh_flags", bits: 8}, {names: "nsh_ttl", bits: 8, notation: decimal}, {names: "nsh_mdtype", bits: 8, notation: decimal}, {names: "nsh_np", bits: 8, notation: decimal},
		{names: "nsh_spi", bits: 24}, {names: "nsh_si", bits: 8, notation: decimal}, {names: "nsh_c1", bits: 32}, {names: "nsh_c2", bits: 32}, {names: "nsh_c3", bits: 32}, {names: "nsh_c4", bits: 32},
	}
}

// registers are the groups of registers, of which matches have the smaller ones first. Open
// vSwitch has 32 since 3.7, and 16 before.
func registers() []spelling {
	var list []spelling
	for _, r := range []struct {
		name, other string
		n, bits     int
	}{{"reg", "", 32, 32}, {"xreg", " xreg# pkt_reg#", 16, 64}, {"xxreg", "", 8, 128}} {
		for i := range r.n {
			number := strconv.Itoa(i)
			list = append(list, spelling{names: r.name + number + strings.ReplaceAll(r.other, "#", number), bits: r.bits})
		}
	}
	return list
}

// fieldsByName returns the fields by all of their names.
var fieldsByName = sync.OnceValue(func() map[string]field {
	all := map[string]field{}
	for rank, s := range append(registers(), spellings()...) {
		names := strings.Fields(s.names)
		f := field{name: names[0], match: names[min(1, len(names)-1)], bits: s.bits, notation: s.notation, load: s.load, unmasked: s.unmasked, rank: rank}
		for i, name := range names {
			if _, taken := all[name]; i != 1 || !taken { // icmp_type is a name of its own
				all[name] = f
			}
		}
	}
	return all
})

// fieldNamed returns the field with a name in any spelling. A field that the table does not
// have keeps its name.
func fieldNamed(name string) field {
	all := fieldsByName()
	if f, ok := all[name]; ok {
		return f
	}
	short := withoutPrefix(name)
	if f, ok := all[short]; ok {
		return f
	}
	return field{name: short, match: short, rank: len(all)}
}

// FieldName returns the name of a field in a match, from its name in any spelling; known is
// false for a field that the table does not have.
func FieldName(name string) (inMatch string, known bool) {
	f := fieldNamed(name)
	return f.match, f.rank < len(fieldsByName())
}

// withoutPrefix returns a name of NXM or OXM without its prefix and in lower case, and any
// other name unchanged.
func withoutPrefix(name string) string {
	for _, prefix := range []string{"NXM_NX_", "NXM_OF_", "OXM_OF_", "ERICOXM_OF_", "NXOXM_NSH_", "NXOXM_ET_"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if prefix == "NXOXM_NSH_" {
				rest = "nsh_" + rest
			}
			return strings.ToLower(rest)
		}
	}
	return name
}
