package match

import (
	"strings"
	"sync"
)

// field is what is known about a symbol.
type field struct {
	known     bool
	wrong     bool // no release of OVN has it
	predicate bool // it may stand alone
	text      bool // its values are names in quotes
	nominal   bool // it may only be tested for equality
}

// fieldOf returns what is known about a symbol (lib/logical-fields.c of OVN). Releases of OVN add symbols.
// So an unknown symbol is only known to be wrong if it is a field of a protocol whose fields have been the
// same for long, or if it is a name of Open vSwitch.
func fieldOf(name string) field {
	bare, bits, part := strings.Cut(name, "[")
	if f, listed := symbols()[bare]; listed {
		switch {
		case f.predicate && part:
			f.known = false
		case part && !strings.Contains(bits, ".."):
			f.predicate = true
		}
		return f
	}
	protocol, _, ok := strings.Cut(bare, ".")
	return field{wrong: ok && symbols()[protocol+"."].wrong}
}

// symbols are the symbols in the lists below, and with a dot the protocols whose fields are all there.
var symbols = sync.OnceValue(func() map[string]field {
	all := map[string]field{"inport": {known: true, text: true, nominal: true}, "outport": {known: true, text: true, nominal: true}}
	for name := range strings.FieldsSeq(predicates) {
		all[name] = field{known: true, predicate: true}
	}
	for name := range strings.FieldsSeq(fields) {
		all[name] = field{known: true}
	}
	for name := range strings.FieldsSeq(nominal) {
		f := all[name]
		f.nominal = true
		all[name] = f
	}
	for name := range strings.FieldsSeq(openvswitch) {
		all[name] = field{wrong: true}
	}
	for name := range strings.FieldsSeq(complete) {
		all[name+"."] = field{wrong: true}
	}
	return all
})

const (
	predicates = "0 1 eth.bcast eth.mcast eth.mcastv6 vlan.present ip4 ip6 ip ip4.mcast ip4.src_mcast ip4.bcast ip6.mcast ip6.mcast_all_nodes ip6.mcast_all_rtrs " +
		"ip6.mcast_sol_node ip6.mcast_flood ip6.mcast_rsvd icmp icmp4 icmp6 igmp mldv1 mldv2 tcp udp sctp arp rarp nd nd_ns nd_ns_mcast nd_na nd_na_router nd_rs nd_ra " +
		"ip.is_frag ip.later_frag ip.first_frag"
	fields = "eth.src eth.dst eth.type vlan.tci vlan.vid vlan.pcp ip.proto ip.dscp ip.ecn ip.ttl ip.frag ip4.src ip4.dst ip6.src ip6.dst ip6.label " +
		"arp.op arp.spa arp.tpa arp.sha arp.tha rarp.op rarp.spa rarp.tpa rarp.sha rarp.tha tcp.src tcp.dst tcp.flags udp.src udp.dst sctp.src sctp.dst " +
		"icmp4.type icmp4.code icmp6.type icmp6.code nd.target nd.sll nd.tll"
	// nominal are the fields and predicates of the lists above that may only be tested for equality
	// (ovn-sb(5), Level of Measurement).
	nominal = "ip4 ip6 ip icmp icmp4 icmp6 igmp mldv1 mldv2 tcp udp sctp arp rarp nd nd_ns nd_na nd_rs nd_ra eth.type ip.proto ip.dscp ip.ecn ip.ttl arp.op icmp4.type icmp4.code icmp6.type icmp6.code"
	// complete are the protocols whose fields are all in the lists above.
	complete = "eth ip4 arp rarp tcp udp sctp"
	// openvswitch are names of Open vSwitch and of other filters, which are mistaken for OVN's.
	openvswitch = "ipv4 ipv6 icmpv4 icmpv6 in_port out_port nw_src nw_dst nw_proto dl_src dl_dst dl_type dl_vlan tp_src tp_dst " +
		"tcp_src tcp_dst udp_src udp_dst ip_src ip_dst ip_proto ipv6_src ipv6_dst arp_tpa arp_spa"
)
