package odp

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestLackingBits compares recorded matches with what ofproto/trace prints for one of their packets.
func TestLackingBits(t *testing.T) {
	const metadata = "skb_priority(0/0),skb_mark(0/0),ct_state(0/0),ct_zone(0/0),ct_mark(0/0),ct_label(0/0),recirc_id(0),dp_hash(0/0),in_port(p1),packet_type(ns=0,id=0),"
	const tcp = metadata + "eth(src=02:00:00:00:00:01/00:00:00:00:00:00,dst=02:00:00:00:00:02),eth_type(0x0800),ipv4(src=10.0.0.1/255.255.0.0,dst=10.0.0.2,proto=6,tos=0/0x3,ttl=64/0,frag=no),tcp(src=1000/0,dst=80/0xfff0),tcp_flags(0/0)"
	const echo = metadata + "eth(src=02:00:00:00:00:01/00:00:00:00:00:00,dst=02:00:00:00:00:02/00:00:00:00:00:00),eth_type(0x86dd),ipv6(src=fd00::5/::,dst=fd00::6/::,label=0/0,proto=58,tclass=0/0,hlimit=64/0,frag=no),icmpv6(type=128/0xfc,code=0/0)"
	const arp = metadata + "eth(src=02:00:00:00:00:01,dst=ff:ff:ff:ff:ff:ff),eth_type(0x0806),arp(sip=10.0.0.1,tip=10.0.0.2,op=1/0xff,sha=02:00:00:00:00:01,tha=00:00:00:00:00:00/00:00:00:00:00:00)"
	for name, test := range map[string]struct {
		match, megaflow string
		lacking         []string
		held            bool
	}{
		"the same":   {tcp, "recirc_id=0,eth,tcp,in_port=1,dl_dst=02:00:00:00:00:02,nw_src=10.0.0.0/16,nw_dst=10.0.0.2,nw_ecn=0,nw_frag=no,tp_dst=0x50/0xfff0", nil, true},
		"fewer bits": {tcp, "recirc_id=0,eth,tcp,in_port=1,nw_src=10.0.0.0/8,nw_frag=no", nil, true},
		"a longer prefix": {tcp, "recirc_id=0,eth,tcp,in_port=1,nw_src=10.0.0.0/17,nw_frag=no",
			[]string{"nw_src"}, true},
		"all bits of a port": {tcp, "recirc_id=0,eth,tcp,in_port=1,nw_frag=no,tp_dst=80", []string{"tp_dst"}, true},
		"another field": {tcp, "recirc_id=0,eth,tcp,in_port=1,nw_ttl=64,nw_tos=0,nw_frag=no",
			[]string{"nw_tos", "nw_ttl"}, true},
		"flags": {tcp, "recirc_id=0,ct_state=-new+trk,eth,tcp,in_port=1,nw_frag=no,tcp_flags=-psh",
			[]string{"ct_state", "tcp_flags"}, true},
		"flags that it has": {strings.Replace(strings.Replace(tcp, "ct_state(0/0)", "ct_state(-new+est+trk)", 1),
			"tcp_flags(0/0)", "tcp_flags(-psh)", 1), "recirc_id=0,ct_state=-new+trk,eth,tcp,in_port=1,nw_frag=no,tcp_flags=-psh",
			nil, true},
		"no VLAN tag": {tcp, "recirc_id=0,eth,tcp,in_port=1,vlan_tci=0x0000/0x1fff,nw_frag=no", nil, true},
		"neighbour discovery of echo": {echo, "recirc_id=0,eth,icmp6,in_port=1,nw_frag=no,icmp_type=0x80/0xfc,nd_target=::",
			[]string{"nd_target"}, false},
		"the operation of ARP": {arp, "recirc_id=0,eth,arp,in_port=1,dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_op=1,arp_sha=02:00:00:00:00:01", nil, true},
		"without -m": {"recirc_id(0),in_port(1),eth_type(0x0800),ipv4(dst=10.0.0.2,proto=17,frag=no)",
			"recirc_id=0,eth,udp,in_port=1,nw_dst=10.0.0.2,nw_frag=no,tp_dst=53", []string{"tp_dst"}, true},
	} {
		fields, held := Lacking(test.match, test.megaflow)
		slices.Sort(fields)
		expect.Equal(t, fields, test.lacking, name)
		expect.Equal(t, held, test.held, name+": held")
	}
}

// TestCriteriaOfAMatch reads matches with headers in headers, and texts that are none.
func TestCriteriaOfAMatch(t *testing.T) {
	for match, want := range map[string]string{
		"recirc_id(0x5),in_port(2)": "recirc_id:=0x5 in_port:=2",
		"eth_type(0x8100),vlan(vid=5,pcp=0/0x0),encap(eth_type(0x0800),ipv4(dst=10.0.0.1,frag=no))": "eth_type:=0x8100 vlan:vid=5 vlan:pcp=0/0x0 eth_type:=0x0800 ipv4:dst=10.0.0.1 ipv4:frag=no",
		"tunnel(tun_id=0x1,src=192.0.2.1,flags(-df+csum+key)),in_port(genev_sys_6081)":              "tunnel:tun_id=0x1 tunnel:src=192.0.2.1 tunnel:=flags(-df+csum+key) in_port:=genev_sys_6081",
		"": "", "(((": "", "a": "a:=", "eth(": "eth:=", ",,": "",
	} {
		var got []string
		for c := range Criteria(match) {
			got = append(got, c.Header+":"+c.Field+"="+c.Value)
		}
		expect.Equal(t, strings.Join(got, " "), want, match)
	}
}
