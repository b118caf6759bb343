package flow_test

import (
	"net/netip"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/oracle/captures"
)

func parse(t *testing.T, text string) flow.Packet {
	t.Helper()
	p, err := flow.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// liveFlows returns the packets of all recorded traces, as the live switches printed them.
func liveFlows(tb testing.TB) []string {
	tb.Helper()
	var list []string
	captures.Captured(tb, "[0-9][0-9][0-9]", 1<<20, func(content []byte) {
		for line := range strings.Lines(string(content)) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "Flow: "); ok {
				list = append(list, text)
			}
		}
	})
	return list
}

func TestParseKeepsThePacketsThatLiveSwitchesPrinted(t *testing.T) {
	for _, text := range liveFlows(t) {
		if got := parse(t, text).String(); got != text {
			t.Errorf("read %s\nwrote %s", text, got)
		}
	}
}

func TestInputHasTheNamesThatTracesTake(t *testing.T) {
	for text, want := range map[string]string{
		"udp,in_port=1,vlan_tci=0x0000,nw_src=10.0.0.1,tp_src=68,tp_dst=67":                "udp,in_port=1,vlan_tci=0x0000,nw_src=10.0.0.1,udp_src=68,udp_dst=67",
		"tcp6,tp_src=1,tp_dst=2,tcp_flags=0":                                               "tcp6,tcp_src=1,tcp_dst=2,tcp_flags=0",
		"icmp6,icmp_type=135,nd_sll=00:00:00:00:00:00,nd_tll=0a:00:00:00:00:01":            "icmp6,icmpv6_type=135,nd_tll=0a:00:00:00:00:01",
		"icmp,icmp_type=8,icmp_code=0":                                                     "icmp,icmp_type=8,icmp_code=0",
		"recirc_id=0x1,eth,ip,nw_proto=132,tp_src=9,dl_vlan=5,dl_vlan_pcp=0,vlan_tci1=0x0": "recirc_id=0x1,ip,nw_proto=132,sctp_src=9,dl_vlan=5,dl_vlan_pcp=0",
	} {
		expect.Equal(t, parse(t, text).Input(), want, text)
	}
}

func TestParseRefusesWhatIsNoPacket(t *testing.T) {
	for _, text := range []string{"a b=", "nw_src=", "=5", "in-port=1", "Bad openflow flow syntax: in_port=6",
		strings.Repeat("a=1,b=2,", 10) + "c;d", manyFields()} {
		if p, err := flow.Parse(text); err == nil {
			t.Errorf("%.80q was read as %s", text, p)
		}
	}
}

func manyFields() string {
	var b strings.Builder
	for i := range 300 {
		b.WriteString("f" + strings.Repeat("x", i) + "=1,")
	}
	return b.String()
}

func TestParseKnowsTheOtherNamesOfFields(t *testing.T) {
	p := parse(t, "tcp, eth_src=0a:00:00:00:00:01 ip_src=10.0.0.1,tcp_dst=80")
	expect.Equal(t, p.String(), "tcp,dl_src=0a:00:00:00:00:01,nw_src=10.0.0.1,tp_dst=80")
}

func TestHeadersAreWhatAnotherNodeReceives(t *testing.T) {
	p := parse(t, "recirc_id=0x14,ct_state=new|trk,ct_zone=8,eth,icmp,reg0=0x5,xreg4=0x1,metadata=0x3,tun_id=0x4,tun_metadata0=0x30004,in_port=3,pkt_mark=0x1,vlan_tci=0x0000,dl_src=0a:00:00:00:00:01,nw_src=10.0.0.1,icmp_type=8")
	expect.Equal(t, p.Headers().String(), "icmp,vlan_tci=0x0000,dl_src=0a:00:00:00:00:01,nw_src=10.0.0.1,icmp_type=8")
	expect.Equal(t, p.WithoutPipeline().String(),
		"icmp,in_port=3,pkt_mark=0x1,vlan_tci=0x0000,dl_src=0a:00:00:00:00:01,nw_src=10.0.0.1,icmp_type=8")
}

func TestProtocols(t *testing.T) {
	for text, want := range map[string]struct {
		ethernet uint16
		proto    uint8
	}{
		"tcp,nw_src=1.2.3.4":           {flow.IPv4, flow.TCP},
		"sctp6,tp_src=1":               {flow.IPv6, flow.SCTP},
		"icmp6":                        {flow.IPv6, flow.ICMPv6},
		"ip,nw_proto=47":               {flow.IPv4, 47},
		"dl_type=0x86dd,nw_proto=17":   {flow.IPv6, flow.UDP},
		"arp,arp_op=1":                 {flow.ARP, 0},
		"in_port=1,dl_type=0x88cc":     {0x88cc, 0},
		"mpls,mpls_label=3,mpls_bos=1": {0x8847, 0},
	} {
		p := parse(t, text)
		proto, _ := p.Protocol()
		if p.EtherType() != want.ethernet || proto != want.proto {
			t.Errorf("%s: %#x, protocol %d", text, p.EtherType(), proto)
		}
	}
}

func TestVLANTags(t *testing.T) {
	p := parse(t, "tcp,vlan_tci=0x0000,dl_src=0a:00:00:00:00:01")
	p.PushVLAN("120", "0")
	if p.Get("dl_vlan") != "120" || p.DoubleTagged() {
		t.Error(p)
	}
	p.PushVLAN("7", "3")
	if p.Get("dl_vlan") != "7" || !p.DoubleTagged() {
		t.Error(p)
	}
	p.PopVLAN()
	if p.Get("dl_vlan") != "120" || p.DoubleTagged() {
		t.Error(p)
	}
	p.PopVLAN()
	if p.IsTagged() || p.Get("vlan_tci") != "0x0000" || p.Has("dl_vlan_pcp") {
		t.Error(p)
	}
}

func TestMPLSHidesThePacketUntilItIsPopped(t *testing.T) {
	p := parse(t, "tcp,in_port=1,vlan_tci=0x0000,dl_src=0a:00:00:00:00:01,nw_src=10.0.0.1,tp_dst=80")
	var header flow.Packet
	header.Set("mpls_label", "100")
	p.Encapsulate("mpls", header)
	expect.Equal(t, p.String(), "mpls,in_port=1,vlan_tci=0x0000,dl_src=0a:00:00:00:00:01,mpls_label=100")
	p.Set("dl_src", "0a:00:00:00:00:02")
	if err := p.Decapsulate(); err != nil {
		t.Error(err)
	}
	expect.Equal(t, p.String(), "tcp,in_port=1,vlan_tci=0x0000,dl_src=0a:00:00:00:00:02,nw_src=10.0.0.1,tp_dst=80")
	if err := p.Decapsulate(); err == nil {
		t.Error("a header was removed that is not there")
	}
}

func TestSetMasked(t *testing.T) {
	for _, c := range []struct{ packet, name, value, want string }{
		{"nw_tos=104", "nw_tos", "0x4/0x7", "108"},
		{"mpls_ttl=0x40", "mpls_ttl", "0x1/0x1", "0x41"},
		{"dl_src=0a:00:00:00:00:01", "dl_src", "ff:ff:ff:ff:ff:ff/ff:00:00:00:00:ff", "ff:00:00:00:00:ff"},
		{"nw_src=10.1.2.3", "nw_src", "192.168.0.0/255.255.0.0", "192.168.2.3"},
		{"ipv6_src=fd00::5", "ipv6_src", "fe80::/64", "fe80::5"},
		{"tp_src=5", "tp_dst", "8/0xffff", "8"},
	} {
		p := parse(t, c.packet)
		if err := p.SetMasked(c.name, c.value); err != nil || p.Get(c.name) != c.want {
			t.Errorf("%s with %s=%s: %s %v", c.packet, c.name, c.value, p, err)
		}
	}
	p := parse(t, "nw_src=10.1.2.3,dl_src=x")
	for name, value := range map[string]string{"nw_src": "fe80::1/64", "dl_src": "0a:00:00:00:00:01/ff:ff",
		"tp_src": "a/b"} {
		if err := p.SetMasked(name, value); err == nil {
			t.Errorf("%s=%s was set", name, value)
		}
	}
}

func TestClonesAreIndependent(t *testing.T) {
	p := parse(t, "tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2")
	c := p.Clone()
	c.SetAddresses(netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.8"))
	expect.Equal(t, p.String(), "tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2", p)
	if !p.SameHeaders(parse(t, "tcp,nw_dst=10.0.0.2,nw_src=10.0.0.1,nw_tos=0,nw_frag=no")) || p.SameHeaders(c) {
		t.Error("packets compare wrongly")
	}
	advertisement := parse(t, "icmp6,icmp_type=136,nd_target=fe80::1")
	for options, want := range map[string]bool{"nd_sll=00:00:00:00:00:00,nd_tll=00:00:00:00:00:00": true,
		"nd_tll=02:00:00:00:00:01": false} {
		expect.Equal(t, advertisement.SameHeaders(parse(t, "icmp6,icmp_type=136,nd_target=fe80::1,"+options)), want, options)
	}
}

// FuzzParse checks that what was read is written in a form that reads the same.
func FuzzParse(f *testing.F) {
	for i, text := range liveFlows(f) {
		if i%20 == 0 {
			f.Add(text)
		}
	}
	f.Add("packet_type=(1,0x894f),nsh_spi=0x1234")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := flow.Parse(text)
		if err != nil {
			return
		}
		q, err := flow.Parse(p.String())
		if err != nil || q.String() != p.String() {
			t.Errorf("%q became %q: %v", p, q, err)
		}
		_ = p.Input()
		p.Protocol()
		p.Headers()
		p.PushVLAN("1", "0")
		p.PopVLAN()
		if err := p.SetMasked("nw_src", "1.2.3.4/"+text); err == nil && !p.Has("nw_src") {
			t.Error("nw_src was not set")
		}
	})
}
