package odp_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/oracle/captures"
)

// liveActions returns the datapath actions of all recorded traces.
func liveActions(tb testing.TB) []string {
	tb.Helper()
	var list []string
	captures.Captured(tb, "[0-9][0-9][0-9]", 1<<20, func(content []byte) {
		for line := range strings.Lines(string(content)) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "Datapath actions: "); ok {
				list = append(list, text)
			}
		}
	})
	return list
}

// unknown returns the actions of a tree that are not known.
func unknown(list []odp.Action) []string {
	var found []string
	for _, action := range list {
		switch a := action.(type) {
		case odp.Unknown:
			found = append(found, a.Text)
		case odp.Clone:
			found = append(found, unknown(a.Actions)...)
		case odp.Sample:
			found = append(found, unknown(a.Actions)...)
		case odp.CheckLength:
			found = append(found, unknown(append(a.Greater, a.AtMost...))...)
		}
	}
	return found
}

func TestActionsOfLiveSwitchesAreKnown(t *testing.T) {
	for _, text := range liveActions(t) {
		for _, action := range unknown(odp.Parse(text)) {
			if !strings.Contains(action, "_nsh(") { // NSH is not followed
				t.Errorf("%q is not known in %s", action, text)
			}
		}
	}
}

func TestParse(t *testing.T) {
	one := netip.MustParseAddr
	for text, want := range map[string]odp.Action{
		"6081":                           odp.Output{Port: "6081"},
		`"tap, a"`:                       odp.Output{Port: "tap, a"},
		"ct":                             odp.Track{},
		"ct(commit,zone=8,mark=0/0x1)":   odp.Track{Commit: true, Zone: 8, Mark: "0/0x1"},
		"ct(zone=13,nat)":                odp.Track{Zone: 13, NAT: &odp.NAT{}},
		"ct(force_commit,label=0x1/0x1)": odp.Track{Commit: true, Force: true, Label: "0x1/0x1"},
		"ct(commit,timeout=x,nat(src))":  odp.Track{Commit: true, NAT: &odp.NAT{Src: true}},
		"ct(commit,nat(dst=10.0.0.5:80))": odp.Track{Commit: true,
			NAT: &odp.NAT{Dst: true, Min: one("10.0.0.5"), Max: one("10.0.0.5"), MinPort: 80, MaxPort: 80}},
		"ct(commit,nat(src=10.0.0.5-10.0.0.9:1024-65535,random))": odp.Track{Commit: true,
			NAT: &odp.NAT{Src: true, Min: one("10.0.0.5"), Max: one("10.0.0.9"), MinPort: 1024, MaxPort: 65535}},
		"ct(commit,nat(dst=[fd00::5]:80))": odp.Track{Commit: true,
			NAT: &odp.NAT{Dst: true, Min: one("fd00::5"), Max: one("fd00::5"), MinPort: 80, MaxPort: 80}},
		"ct(commit,nat(src=fd00::5))": odp.Track{Commit: true,
			NAT: &odp.NAT{Src: true, Min: one("fd00::5"), Max: one("fd00::5")}},
		"recirc(0x14)":  odp.Recirculate{ID: 0x14},
		"hash(l4(0))":   odp.Hash{Kind: "l4(0)"},
		"ct_clear":      odp.Untrack{},
		"trunc(100)":    odp.Truncate{Size: 100},
		"tnl_pop(6081)": odp.PopTunnel{Port: "6081"},
		"userspace(pid=4294967295,controller(reason=1,dont_send=1,continuation=0,recirc_id=48,rule_cookie=0x495c0d3e,controller_id=0,max_len=65535))": odp.Userspace{Controller: true, Cookie: 0x495c0d3e, Reason: 1},
		"userspace(pid=0,slow_path(cfm))":                      odp.Userspace{SlowPath: true},
		"userspace(pid=0,sFlow(vid=0,pcp=0,output=1),actions)": odp.Userspace{},
		"sample(sample=50.0%,actions(meter(0),1))": odp.Sample{Percent: "50.0%",
			Actions: []odp.Action{odp.Meter{ID: "0"}, odp.Output{Port: "1"}}},
		"check_pkt_len(size=1514,gt(drop),le(clone(ct_clear,2)))": odp.CheckLength{Size: 1514,
			Greater: []odp.Action{odp.Drop{}}, AtMost: []odp.Action{odp.Clone{Actions: []odp.Action{odp.Untrack{},
				odp.Output{Port: "2"}}}}, GreaterText: "drop", Text: "clone(ct_clear,2)"},
		"set(tunnel(tun_id=0x4,dst=192.168.24.12,ttl=64,tp_dst=6081,geneve({class=0x102,type=0x80,len=4,0x30004}),flags(df|csum|key)))": odp.SetTunnel{Tunnel: odp.Tunnel{Type: "geneve", ID: "0x4", Dst: one("192.168.24.12"), TTL: "64", Options: []odp.Option{{Class: "0x102", Type: "0x80", Value: "0x30004"}}, OptionBytes: 8, DontFragment: true}},
		"set(tunnel(src=10.0.0.1,dst=10.0.0.2,ttl=64,flags(df)))":                                                                       odp.SetTunnel{Tunnel: odp.Tunnel{Src: one("10.0.0.1"), Dst: one("10.0.0.2"), TTL: "64", DontFragment: true}},
		"set(tunnel(tun_id=0x1,ipv6_dst=fd00::2,ttl=64,flags(df|key)))":                                                                 odp.SetTunnel{Tunnel: odp.Tunnel{ID: "0x1", Dst: one("fd00::2"), TTL: "64", DontFragment: true}},
		"tnl_push(tnl_port(6081),header(size=58,type=5,eth(dst=52:54:00:18:00:12,src=52:54:00:18:00:11,dl_type=0x0800),ipv4(src=192.168.24.11,dst=192.168.24.12,proto=17,tos=0,ttl=64,frag=0x4000),udp(src=0,dst=6081,csum=0xffff),geneve(crit,vni=0x3,options({class=0x102,type=0x80,len=4,0x40003}))),out_port(100))": odp.PushTunnel{Port: "6081", Out: "100", Header: 58, Tunnel: odp.Tunnel{Type: "geneve", ID: "0x3", Src: one("192.168.24.11"), Dst: one("192.168.24.12"), TTL: "64", TOS: "0", Options: []odp.Option{{Class: "0x102", Type: "0x80", Value: "0x40003"}}}},
		"tnl_push(tnl_port(4),header(size=50,type=4,eth(dst=52:54:00:18:00:12,src=52:54:00:18:00:11,dl_type=0x86dd),ipv6(src=fd00::1,dst=fd00::2,label=0,proto=17,tclass=0x0,hlimit=64),udp(src=0,dst=4789,csum=0x0),vxlan(flags=0x8000000,vni=0x7b)),out_port(1))":                                                     odp.PushTunnel{Port: "4", Out: "1", Header: 50, Tunnel: odp.Tunnel{Type: "vxlan", ID: "0x7b", Src: one("fd00::1"), Dst: one("fd00::2"), TTL: "64", TOS: "0x0"}},
		"tnl_push(tnl_port(3),header(size=42,type=3,eth(dst=52:54:00:18:00:12,src=52:54:00:18:00:11,dl_type=0x0800),ipv4(src=10.0.0.1,dst=10.0.0.2,proto=47,tos=0,ttl=64,frag=0x4000),gre((flags=0x2000,proto=0x6558),key=0x1c8)),out_port(1))":                                                                         odp.PushTunnel{Port: "3", Out: "1", Header: 42, Tunnel: odp.Tunnel{Type: "gre", ID: "0x1c8", Src: one("10.0.0.1"), Dst: one("10.0.0.2"), TTL: "64", TOS: "0"}},
	} {
		if got := odp.Parse(text); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("%s:\n got %#v\nwant %#v", text, got, want)
		}
	}
}

func TestActionsThatAreNotKnownKeepTheirText(t *testing.T) {
	for _, text := range []string{"set(ipv9(src=1))", "ct(commit,colour=red)", "ct(nat(up=1))",
		"check_pkt_len(size=x,gt(),le())", "recirc(zz)", "push_nsh(flags=0)", "sample(error)", "tnl_push(tnl_port(1))",
		"bad length 4, expected 8 for: action7(01)", "action99(0102)", "set(eth)"} {
		got := odp.Parse(text)
		if names := unknown(got); len(names) == 0 {
			t.Errorf("%s was read as %#v", text, got)
		}
	}
}

func TestChangesOfHeaders(t *testing.T) {
	const tcp = "tcp,vlan_tci=0x0000,dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=104,nw_ecn=1,nw_ttl=64,tp_src=5,tp_dst=80"
	for actions, want := range map[string]string{
		"set(eth(src=0a:00:00:00:00:03,dst=0a:00:00:00:00:04)),set(ipv4(ttl=63))": "dl_src=0a:00:00:00:00:03 dl_dst=0a:00:00:00:00:04 nw_ttl=63",
		"set(ipv4(tos=0/0xfc))":                                  "nw_tos=0 nw_ecn=1",
		"set(ipv4(tos=0x2/0x3))":                                 "nw_tos=104 nw_ecn=2",
		"set(ipv4(src=192.168.0.0/255.255.0.0,dst=1.2.3.4))":     "nw_src=192.168.0.1 nw_dst=1.2.3.4",
		"set(tcp(src=6,dst=81))":                                 "tp_src=6 tp_dst=81",
		"push_vlan(vid=120,pcp=3)":                               "dl_vlan=120 dl_vlan_pcp=3 vlan_tci=",
		"push_vlan(vid=1,pcp=0),pop_vlan":                        "vlan_tci=0x0000 dl_vlan=",
		"set(skb_mark(0x1))":                                     "pkt_mark=0x1",
		"push_mpls(label=100,tc=0,ttl=64,bos=1,eth_type=0x8847)": "mpls_label=100 mpls_bos=1 nw_src= tp_dst=",
		"push_mpls(label=100,tc=0,ttl=64,bos=1,eth_type=0x8847),pop_mpls(eth_type=0x800)": "nw_src=10.0.0.1 mpls_label=",
	} {
		p, err := flow.Parse(tcp)
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range odp.Parse(actions) {
			change, ok := action.(odp.HeaderChange)
			if !ok {
				t.Fatalf("%s: %#v", actions, action)
			}
			if err := change.Apply(&p); err != nil {
				t.Errorf("%s: %v", actions, err)
			}
		}
		for _, field := range strings.Fields(want) {
			name, value, _ := strings.Cut(field, "=")
			if p.Get(name) != value {
				t.Errorf("%s: %s is %q in %s", actions, name, p.Get(name), p)
			}
		}
	}
}

func TestChangesOfARPAndND(t *testing.T) {
	p, _ := flow.Parse("arp,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_op=1,arp_sha=0a:00:00:00:00:01,arp_tha=00:00:00:00:00:00")
	for _, action := range odp.Parse("set(arp(sip=10.0.0.2,tip=10.0.0.1,op=2/0xff,sha=0a:00:00:00:00:02,tha=0a:00:00:00:00:01))") {
		if err := action.(odp.HeaderChange).Apply(&p); err != nil {
			t.Error(err)
		}
	}
	expect.Equal(t, p.String(), "arp,arp_spa=10.0.0.2,arp_tpa=10.0.0.1,arp_op=2,arp_sha=0a:00:00:00:00:02,arp_tha=0a:00:00:00:00:01")
	p, _ = flow.Parse("icmp6,icmp_type=135,nd_target=fd00::1,nd_sll=0a:00:00:00:00:01")
	for _, action := range odp.Parse("set(icmpv6(type=136,code=0)),set(nd(target=fd00::2,tll=0a:00:00:00:00:02))") {
		if err := action.(odp.HeaderChange).Apply(&p); err != nil {
			t.Error(err)
		}
	}
	expect.Equal(t, p.Get("icmp_type"), "136", p)
	expect.Equal(t, p.Get("nd_target"), "fd00::2", p)
	expect.Equal(t, p.Get("nd_tll"), "0a:00:00:00:00:02", p)
}

func TestHeadersOfTunnels(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")
	// What a tnl_push of the same tunnel has as its size, without the Ethernet header.
	for size, tunnel := range map[int]odp.Tunnel{
		58 - 14: {Type: "geneve", ID: "0x3", Dst: v4, OptionBytes: 8},
		50 - 14: {Type: "vxlan", ID: "0x7b", Dst: v4},
		70 - 14: {Type: "vxlan", ID: "0x7b", Dst: v6},
		42 - 14: {Type: "gre", ID: "0x1c8", Dst: v4},
		38 - 14: {Type: "gre", Dst: v4},
		0:       {Type: "lisp", Dst: v4},
	} {
		if got := tunnel.HeaderSize(); got != size {
			t.Errorf("%+v has %d bytes, want %d", tunnel, got, size)
		}
	}
}

func TestTTLExpires(t *testing.T) {
	p, _ := flow.Parse("tcp,nw_ttl=2")
	action, ok := odp.Parse("dec_ttl(le_1(userspace(pid=1)))")[0].(odp.DecrementTTL)
	if !ok || len(action.Expired) != 1 || !action.Apply(&p) || p.Get("nw_ttl") != "1" || action.Apply(&p) {
		t.Errorf("%+v %s", action, p)
	}
}

func TestNestingIsBounded(t *testing.T) {
	deep := strings.Repeat("clone(", 5000) + "1" + strings.Repeat(")", 5000)
	if got := unknown(odp.Parse(deep)); len(got) != 1 || len(got[0]) > 100 {
		t.Errorf("%d actions are not known", len(got))
	}
}

// FuzzParse gives any text to the parser, and applies what it read.
func FuzzParse(f *testing.F) {
	for i, text := range liveActions(f) {
		if i%20 == 0 {
			f.Add(text)
		}
	}
	f.Add("tnl_push(tnl_port(6081),header(size=58,type=5,eth(dst=52:54:00:18:00:12,src=52:54:00:18:00:11,dl_type=0x0800),ipv4(src=192.168.24.11,dst=192.168.24.12,proto=17,tos=0,ttl=64,frag=0x4000),udp(src=0,dst=6081,csum=0xffff),geneve(crit,vni=0x3,options({class=0x102,type=0x80,len=4,0x40003}))),out_port(100))")
	f.Add("push_mpls(label=100,tc=0,ttl=64,bos=1,eth_type=0x8847),pop_mpls(eth_type=0x800),check_pkt_len(size=1514,gt(drop),le(1))")
	f.Fuzz(func(t *testing.T, text string) {
		p, _ := flow.Parse("tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ttl=64,tp_src=5,tp_dst=80")
		for _, action := range odp.Parse(text) {
			if change, ok := action.(odp.HeaderChange); ok {
				if err := change.Apply(&p); err != nil && fmt.Sprint(err) == "" {
					t.Error("an error without a text")
				}
			}
		}
	})
}
