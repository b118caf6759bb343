package trace

import (
	"fmt"
	"strings"

	"ovs-offline/pkg/openflow/flow"
)

// Microflow returns a packet that enters at a logical port as ovn-trace(8) takes it.
func Microflow(inport string, p flow.Packet) string {
	terms := []string{fmt.Sprintf("inport == %q", inport)}
	add := func(name, field string) {
		if v := p.Get(field); v != "" {
			terms = append(terms, name+" == "+v)
		}
	}
	add("eth.src", "dl_src")
	add("eth.dst", "dl_dst")
	add("vlan.vid", "dl_vlan")
	ip, icmp := "ip4", "icmp4"
	if p.Has("ipv6_src") {
		ip, icmp = "ip6", "icmp6"
	}
	for _, end := range []string{"src", "dst"} {
		add(ip+"."+end, "nw_"+end)
		add(ip+"."+end, "ipv6_"+end)
	}
	if p.Has("arp") {
		for name, field := range map[string]string{"arp.op": "arp_op", "arp.spa": "arp_spa", "arp.tpa": "arp_tpa", "arp.sha": "arp_sha", "arp.tha": "arp_tha"} {
			add(name, field)
		}
		return strings.Join(terms, " && ")
	}
	add("ip.ttl", "nw_ttl")
	switch number, _ := p.Protocol(); number {
	case flow.TCP, flow.UDP, flow.SCTP:
		word := map[uint8]string{flow.TCP: "tcp", flow.UDP: "udp", flow.SCTP: "sctp"}[number]
		add(word+".src", "tp_src")
		add(word+".dst", "tp_dst")
	default:
		add(icmp+".type", "icmp_type")
		add(icmp+".code", "icmp_code")
	}
	add("nd.target", "nd_target")
	for _, word := range []string{"nd.sll", "nd.tll"} {
		if v := p.Get(strings.Replace(word, ".", "_", 1)); v != "" && v != "00:00:00:00:00:00" {
			terms = append(terms, word+" == "+v)
		}
	}
	return strings.Join(terms, " && ")
}
