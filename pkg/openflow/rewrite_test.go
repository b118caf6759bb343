package openflow

import (
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// rewritten lists texts that ovs-ofctl prints and can't read, each with a text that
// adds the same flow to a switch.
var rewritten = []struct{ rewrite, source, printed string }{
	{setFieldRewrite, "ip actions=load:26->OXM_OF_IP_DSCP[]", "ip actions=set_field:26/0x3f->ip_dscp"},
	{setFieldRewrite, "ip actions=load:1->OXM_OF_IP_DSCP[1]", "ip actions=set_field:2/0x2->ip_dscp"},
	{setFieldRewrite, "ip actions=load:1->NXM_NX_IP_ECN[]", "ip actions=set_field:1/0x3->nw_ecn"},
	{setFieldRewrite, "ip actions=load:5->NXM_NX_IP_TTL[0..3]", "ip actions=set_field:5/0xf->nw_ttl"},
	{setFieldRewrite, "mpls actions=load:5->OXM_OF_MPLS_LABEL[]", "mpls actions=set_field:5/0xfffff->mpls_label"},
	{setFieldRewrite, "mpls actions=load:5->OXM_OF_MPLS_TC[]", "mpls actions=set_field:5/0x7->mpls_tc"},
	{setFieldRewrite, "mpls actions=load:5->NXM_NX_MPLS_TTL[0..3]", "mpls actions=set_field:5/0xf->mpls_ttl"},
	{setFieldRewrite, "dl_vlan=1 actions=load:5->OXM_OF_VLAN_PCP[]", "dl_vlan=1 actions=set_field:5/0x7->vlan_pcp"},
	{setFieldRewrite, "arp actions=load:2->NXM_OF_ARP_OP[0..3]", "arp actions=set_field:2/0xf->arp_op"},
	{setFieldRewrite, "icmp actions=load:8->NXM_OF_ICMP_TYPE[0..3]", "icmp actions=set_field:8/0xf->icmp_type"},
	{setFieldRewrite, "icmp actions=load:8->NXM_OF_ICMP_CODE[0..3]", "icmp actions=set_field:8/0xf->icmp_code"},
	{setFieldRewrite, "icmp6 actions=load:8->NXM_NX_ICMPV6_TYPE[0..3]", "icmp6 actions=set_field:8/0xf->icmpv6_type"},
	{setFieldRewrite, "icmp6 actions=load:8->NXM_NX_ICMPV6_CODE[0..3]", "icmp6 actions=set_field:8/0xf->icmpv6_code"},
	{setFieldRewrite, "icmp6,icmp_type=136,icmp_code=0 actions=load:1->ERICOXM_OF_ICMPV6_ND_RESERVED[0..3]",
		"icmp6,icmp_type=136,icmp_code=0 actions=set_field:1/0xf->nd_reserved"},
	{setFieldRewrite, "icmp6,icmp_type=136,icmp_code=0 actions=load:1->ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE[0..3]",
		"icmp6,icmp_type=136,icmp_code=0 actions=set_field:1/0xf->nd_options_type"},
	{setFieldRewrite, "actions=load:1->NXM_OF_IN_PORT[0..3]", " actions=set_field:1/0xf->in_port"},
	{setFieldRewrite, "ip actions=resubmit(,5),load:26->OXM_OF_IP_DSCP[],clone(load:1->NXM_NX_IP_ECN[],resubmit(,6))",
		"ip actions=resubmit(,5),set_field:26/0x3f->ip_dscp,clone(set_field:1/0x3->nw_ecn,resubmit(,6))"},
	{gtpuRewrite, "tun_gtpu_msgtype=1 actions=drop", "gtpu_msgtype=1 actions=drop"},
	{gtpuRewrite, "tun_gtpu_flags=0x30,tun_gtpu_msgtype=1 actions=drop", "gtpu_flags=0x30,gtpu_msgtype=1 actions=drop"},
}

const (
	setFieldRewrite = "masked set_field of a field that takes no mask"
	igmpRewrite     = "igmp, which ovs-ofctl prints and cannot read"
	gtpuRewrite     = "gtpu fields without their tun_ prefix"
)

// TestRewritesOnRealSwitch checks that ovs-ofctl prints and refuses the text before
// each rewrite, and accepts the text after it, for which the switch prints the text
// before.
func TestRewritesOnRealSwitch(t *testing.T) {
	s := startSwitch(t)
	tried := map[string]bool{}
	for _, c := range rewritten {
		s.clear(t)
		if err := s.add(t, "OpenFlow15", c.source); err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		want := s.print(t)
		if want != strings.TrimSpace(c.printed) {
			t.Logf("OVS %s prints %q, not %q: not tried", s.version(t), want, c.printed)
			continue
		}
		s.clear(t)
		if err := s.add(t, "OpenFlow15", c.printed); err == nil {
			t.Logf("OVS %s reads %q: not tried", s.version(t), c.printed)
			continue
		}
		text, names := Rewrite(c.printed)
		if !reflect.DeepEqual(names, []string{c.rewrite}) {
			t.Errorf("%s: rewritten by %q", c.printed, names)
		}
		if out, err := s.run(t, "ovs-ofctl", "parse-flow", text); err != nil {
			t.Errorf("%s becomes %s, and parse-flow says %v %s", c.printed, text, err, out)
		}
		if err := s.add(t, "OpenFlow15", text); err != nil {
			t.Errorf("%s becomes %s, which is refused: %v", c.printed, text, err)
			continue
		}
		if got := s.print(t); got != want {
			t.Errorf("%s becomes %s, which prints as %s", c.printed, text, got)
		}
		tried[c.rewrite] = true
	}
	if s.version(t) == "3.1.0" && (!tried[setFieldRewrite] || !tried[gtpuRewrite]) {
		t.Errorf("tried only %v", tried)
	}
}

// TestIGMPMatchKeepsOnlyTheProtocol checks that only the protocol remains of an IGMP
// match: ovs-ofctl does not read "igmp", and no IGMP field can be matched.
func TestIGMPMatchKeepsOnlyTheProtocol(t *testing.T) {
	s := startSwitch(t)
	for _, printed := range []string{"priority=5,igmp actions=drop", "priority=5,igmp,in_port=1,igmp_type=17 actions=drop",
		"priority=5,igmp,nw_src=1.2.3.4,igmp_type=22,igmp_code=0 actions=output:1"} {
		s.clear(t)
		if err := s.add(t, "OpenFlow15", printed); err == nil {
			t.Logf("OVS %s reads %q: not tried", s.version(t), printed)
			continue
		}
		text, names := Rewrite(printed)
		if !reflect.DeepEqual(names, []string{igmpRewrite}) {
			t.Errorf("%s: rewritten by %q", printed, names)
		}
		if err := s.add(t, "OpenFlow15", text); err != nil {
			t.Errorf("%s becomes %s: %v", printed, text, err)
		}
		if got := s.flows(t, "OpenFlow15"); len(got) != 1 || !strings.Contains(got[0], "ip,") ||
			!strings.Contains(got[0], "nw_proto=2") {
			t.Errorf("%s becomes %s, which prints as %q", printed, text, got)
		}
	}
}

// TestMaskWithGapsIsRewritten checks masks whose bits are not contiguous.
func TestMaskWithGapsIsRewritten(t *testing.T) {
	s := startSwitch(t)
	// Both texts change a packet in the same way.
	for _, c := range []struct{ printed, want string }{
		{"priority=1,ip actions=set_field:0x21/0x2d->ip_dscp,output:1",
			"priority=1,ip actions=load:0x1->OXM_OF_IP_DSCP[0..0],load:0x0->OXM_OF_IP_DSCP[2..3],load:0x1->OXM_OF_IP_DSCP[5..5],output:1"},
		{"priority=1,mpls actions=set_field:0xa0005/0xf000f->mpls_label",
			"priority=1,mpls actions=load:0x5->OXM_OF_MPLS_LABEL[0..3],load:0xa->OXM_OF_MPLS_LABEL[16..19]"},
	} {
		got, _ := Rewrite(c.printed)
		if got != c.want {
			t.Errorf("%s becomes %s", c.printed, got)
		}
		s.clear(t)
		if err := s.add(t, "OpenFlow15", got); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
	s.clear(t)
	text, _ := Rewrite("priority=1,ip actions=set_field:0x21/0x2d->ip_dscp,output:1")
	if err := s.add(t, "OpenFlow15", text); err != nil {
		t.Fatal(err)
	}
	out, err := s.run(t, "ovs-appctl", "ofproto/trace", "br0",
		"in_port=2,ip,nw_tos=0x58,nw_src=1.1.1.1,nw_dst=2.2.2.2,nw_ttl=9")
	if _, lookErr := exec.LookPath("ovs-appctl"); lookErr != nil {
		t.Skip(lookErr)
	}
	// DSCP 0x16 = 010110; the mask 101101 sets bits 5 and 0, clears 3 and 2: 110011 =
	// 0x33, as a TOS 0xcc.
	if err != nil || !strings.Contains(out, "nw_tos=204") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRewriteKeepsReadableText checks that text that ovs-ofctl reads is not changed.
func TestRewriteKeepsReadableText(t *testing.T) {
	for _, text := range []string{
		"ip actions=set_field:26->ip_dscp", "actions=set_field:0x1/0xf->reg0",
		"actions=set_field:aa:55:aa:00:00:00/ff:ff:ff:00:00:00->eth_src",
		"ip actions=set_field:1.2.0.0/255.255.0.0->ip_src", "actions=set_field:0x5/0xffff->tun_id,set_field:0x2/0x2->ct_mark",
		"tun_gtpu_flags=0x1 actions=drop", `in_port="igmp" actions=output:"gtpu_x"`, "ip,nw_proto=2 actions=note:00",
		"mpls actions=set_field:5/0->mpls_label", "mpls actions=set_field:99999999999999999999/0xf->mpls_label",
		"no actions at all: igmp gtpu_flags=1",
		"group_id=1,type=all,bucket=actions=set_field:1/0xf->reg0",
	} {
		if got, names := Rewrite(text); got != text {
			t.Errorf("%s becomes %s by %q", text, got, names)
		}
	}
	got, _ := Rewrite("group_id=1,type=all,bucket=bucket_id:0,actions=set_field:26/0x3f->ip_dscp,output:1,bucket=actions=output:2")
	expect.Equal(t, got, "group_id=1,type=all,bucket=bucket_id:0,actions=load:0x1a->OXM_OF_IP_DSCP[0..5],output:1,bucket=actions=output:2", "in a group")
}

// matches lists fields of ovs-fields(7) with their prerequisites and values.
var matches = []string{
	"tun_id=0x12345", "tun_id=0x12345/0xff0", "tun_src=1.2.3.4,tun_dst=1.2.3.0/24", "tun_ipv6_src=2001::1",
	"tun_ipv6_dst=2001::1/ffff::f",
	"tun_gbp_id=0x123/0xf0f,tun_gbp_flags=0x48", "tun_erspan_ver=1,tun_erspan_idx=0x12345",
	"tun_erspan_ver=2,tun_erspan_dir=1,tun_erspan_hwid=0x3",
	"tun_gtpu_flags=0x30,tun_gtpu_msgtype=1", "tun_gtpu_flags=0x30/0x10", "tun_flags=+oam", "tun_flags=-oam",
	"tun_metadata0=0x1234", "tun_metadata0=0x1234/0xff00", "tun_metadata1", "tun_metadata2=0x1/0xff", "in_port=1",
	"in_port=LOCAL", "in_port=65533",
	"pkt_mark=0x10001/0xff00ff", "reg0=0x1234/0xf0f", "reg15=1", "xreg3=0x100000001/0xf0000000f",
	"xxreg0=0x1/0xf0000000000000000f", "xxreg3=0x10000000000000000000000000000001",
	"metadata=0x1234567890/0xff00ff", "conj_id=5", "actset_output=1", "packet_type=(0,0)", "packet_type=(1,0x800)",
	"packet_type=(1,0x894f)",
	"ct_state=+trk+new", "ct_state=+trk+est-new+rel+rpl-inv+snat-dnat,ip", "ct_zone=5", "ct_mark=5/0xf",
	"ct_label=0x1/0xf", "ct_label=0x10000000000000001",
	"ct_state=+trk+est,ip,ct_nw_src=1.2.3.4", "ct_state=+trk+est,ip,ct_nw_dst=1.2.0.0/16,ct_nw_proto=6,ct_tp_src=80/0xff",
	"ct_state=+est+trk,ipv6,ct_ipv6_src=2001::1,ct_nw_proto=17,ct_tp_dst=53",
	"dl_src=aa:55:aa:55:00:01", "dl_src=aa:55:aa:00:00:00/ff:ff:ff:00:00:00", "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00",
	"dl_dst=aa:55:aa:55:00:01/fe:ff:ff:ff:ff:ff",
	"dl_type=0x1234", "dl_type=0x88cc", "dl_type=0x5ff", "vlan_tci=0x1123/0x1fff", "vlan_tci=0x1123/0xf0f0", "vlan_tci=0",
	"vlan_tci=0/0x1fff", "vlan_tci=0xf123", "vlan_tci=0x1000/0x1000",
	"dl_vlan=10", "dl_vlan=10,dl_vlan_pcp=0", "dl_vlan_pcp=3", "vlan_vid=0x100a/0x100f",
	"mpls,mpls_label=100,mpls_tc=3,mpls_bos=1,mpls_ttl=64", "mplsm,mpls_label=3",
	"ip,nw_src=1.2.0.0/16,nw_dst=1.0.3.0/255.0.255.0", "ipv6,ipv6_src=ffff::/16,ipv6_dst=2001::1/ffff::f",
	"ipv6,ipv6_label=0x12345", "ip,nw_proto=47", "ip,nw_proto=2", "ip,nw_proto=0", "ipv6,nw_proto=0", "arp,arp_op=0",
	"ip,nw_tos=0x68", "ip,ip_dscp=26,nw_ecn=2", "ipv6,ip_ecn=1,nw_ttl=255", "ip,nw_frag=first", "ip,nw_frag=no",
	"ip,nw_frag=later", "ip,nw_frag=not_later", "ipv6,nw_frag=yes",
	"arp,arp_op=1,arp_spa=1.2.0.0/16,arp_tpa=1.0.3.0/255.0.255.0,arp_sha=aa:55:aa:55:00:01,arp_tha=aa:55:aa:00:00:00/ff:ff:ff:00:00:00", "rarp,arp_op=3,arp_spa=1.2.3.4",
	"tcp,tcp_src=80,tcp_dst=80/0xff0", "tcp6,tcp_dst=80", "tcp,tcp_flags=+syn-ack", "tcp,tcp_flags=0x2",
	"tcp6,tcp_flags=+syn+ack+fin-rst", "udp,udp_src=53/0xff", "udp6,udp_dst=53", "sctp,sctp_src=5", "sctp6,sctp_dst=5/0xf",
	"tcp,tp_src=0",
	"icmp,icmp_type=8,icmp_code=0", "icmp6,icmpv6_type=135,icmpv6_code=0",
	"icmp6,icmp_type=135,icmp_code=0,nd_target=2001::1,nd_sll=aa:55:aa:55:00:01",
	"icmp6,icmp_type=136,icmp_code=0,nd_tll=aa:55:aa:55:00:01,nd_reserved=0x40000000,nd_options_type=2",
	"dl_type=0x894f,nsh_flags=1,nsh_ttl=63,nsh_mdtype=1,nsh_np=3,nsh_spi=0x123456,nsh_si=255,nsh_c1=0x1/0xf,nsh_c4=0x12345678", "cookie=0x123456789abcdef0,ip", "send_flow_rem,no_packet_counts,no_byte_counts,importance=9,ip",
	"idle_timeout=60,hard_timeout=100,ip",
}

// actions lists the actions of ovs-actions(7); each is tried with a match that
// satisfies its prerequisites.
var actions = []string{
	"tcp|output:1,NORMAL,FLOOD,ALL,LOCAL,IN_PORT", "tcp|CONTROLLER:128",
	"tcp|controller(reason=no_match,max_len=100,id=5)", "tcp|controller(max_len=100,userdata=00.01.02,pause)",
	"tcp|controller(max_len=65535,meter_id=1)", "tcp|controller(reason=invalid_ttl,pause)",
	"tcp|output(port=1,max_len=100)", "tcp|enqueue:1:5", "tcp|output:reg0[0..15]",
	"tcp|bundle(eth_src,0,hrw,ofport,members:1,2)", "tcp|bundle(symmetric_l3l4+udp,60,active_backup,ofport,members:1,2)",
	"tcp|bundle(nw_dst,0,hrw,ofport,members:)",
	"tcp|bundle_load(eth_src,0,hrw,ofport,reg0[0..15],members:1,2)", "tcp|multipath(eth_src,50,hrw,12,0,reg0[0..3])",
	"tcp|multipath(symmetric_l4,1024,modulo_n,1,0,reg0[0..15])", "tcp|group:1", "tcp|meter:1,output:1",
	"tcp,dl_vlan=5|pop_vlan", "tcp|push_vlan:0x8100,set_field:4106->vlan_vid,set_field:3->vlan_pcp",
	"tcp|push_vlan:0x88a8,set_field:4106->vlan_vid", "tcp|mod_vlan_vid:10", "tcp|mod_vlan_pcp:3",
	"tcp,dl_vlan=5|set_field:4106->vlan_vid",
	"ip|push_mpls:0x8847,set_field:100->mpls_label,set_field:3->mpls_tc", "mpls|pop_mpls:0x0800",
	"mpls|pop_mpls:0x86dd,output:1", "mpls|dec_mpls_ttl", "mpls|set_mpls_ttl:64",
	"tcp|mod_dl_src:aa:55:aa:55:00:01,mod_dl_dst:aa:55:aa:55:00:02",
	"tcp|mod_nw_src:1.2.3.4,mod_nw_dst:1.2.3.5,mod_nw_tos:104,mod_nw_ecn:2,mod_nw_ttl:9,mod_tp_src:80,mod_tp_dst:81",
	"udp|mod_tp_src:80", "sctp|mod_tp_dst:80", "tcp6|mod_nw_ttl:9,set_field:5->ipv6_label", "ip|dec_ttl",
	"ip|dec_ttl(1,2)",
	"tcp|set_tunnel:5", "tcp|set_tunnel64:0x1000000000", "tcp|set_queue:5,output:1,pop_queue", "tcp|resubmit(,5)",
	"tcp|resubmit:1", "tcp|resubmit(1,5)", "tcp|note:00.01.02.03.04.05.06", "tcp|exit",
	"tcp|clone(set_field:aa:55:aa:55:00:01->eth_dst,resubmit(,5)),output:2",
	"tcp|clone(ct(commit,zone=5,nat(src=1.2.3.4)),clone(output:1)),exit",
	"tcp|sample(probability=100,collector_set_id=1,obs_domain_id=2,obs_point_id=3,sampling_port=1,egress)",
	"tcp|sample(probability=65535,collector_set_id=1,obs_domain_id=2,obs_point_id=3)",
	"tcp|fin_timeout(idle_timeout=10,hard_timeout=20)", "tcp|conjunction(5,1/2),conjunction(6,2/3)",
	"tcp|push:reg0[0..15],pop:reg1[0..15]", "tcp|push:NXM_OF_ETH_SRC[],pop:NXM_OF_ETH_DST[]",
	"tcp|ct", "tcp|ct(commit)", "tcp|ct(commit,force,zone=reg0[0..15],table=5)",
	"tcp|ct(table=5,zone=NXM_NX_CT_ZONE[],nat)",
	"tcp|ct(commit,zone=5,exec(set_field:1->ct_mark,set_field:0x2/0xf->ct_label,move:reg0[]->ct_mark[]))",
	"tcp|ct(commit,exec(load:0->ct_label[96..127],load:1->ct_label[0..31]))",
	"tcp|ct(commit,exec(move:NXM_OF_ETH_SRC[]->NXM_NX_CT_LABEL[32..79]))",
	"tcp|ct(commit,nat(src=10.0.0.1-10.0.0.255:1-100,random,persistent))", "tcp|ct(commit,nat(dst=10.0.0.1:80,hash))",
	"tcp6|ct(commit,nat(src=[2001::1]-[2001::ff]:1-100,random))", "tcp6|ct(commit,nat(src=2001::1))",
	"tcp6|ct(commit,nat(dst=[2001::1]:80))", "tcp|ct(nat)", "tcp|ct(commit,nat(src))",
	"tcp|ct(commit,alg=ftp,nat(src=10.0.0.1))", "udp|ct(commit,alg=tftp)", "tcp|ct_clear",
	"tcp|check_pkt_larger(1500)->reg0[0]", "tcp|check_pkt_larger(1500)->NXM_NX_XXREG0[5]", "tcp|encap(nsh(md_type=1))",
	"tcp|encap(nsh(md_type=2,tlv(0x1000,10,0x12345678)))", "packet_type=(1,0x894f)|encap(ethernet)", "tcp|encap(mpls)",
	"tcp|decap()", "tcp|delete_field:tun_metadata0",
	"tcp|write_metadata:0x5/0xff", "tcp|goto_table:5", "tcp|clear_actions,write_actions(output:1)",
	"tcp|write_actions(output:1,set_field:5->tun_id)", "tcp|write_actions(group:1)",
	"tcp|output:1,write_metadata:1,goto_table:5",
	"tcp|meter:1,output:1,clear_actions,write_actions(output:2),write_metadata:1,goto_table:5",
	"tcp|learn(table=2,idle_timeout=10,hard_timeout=20,fin_idle_timeout=5,fin_hard_timeout=6,priority=7,cookie=0x5,send_flow_rem,delete_learned,limit=5,result_dst=reg0[3],eth_dst=eth_src,output:in_port)",
	"tcp|learn(table=2,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:0->NXM_OF_VLAN_TCI[],load:NXM_NX_TUN_ID[]->NXM_NX_TUN_ID[],output:NXM_OF_IN_PORT[])", "tcp|learn(table=2,eth_type=0x800,nw_proto=6,tcp_src=tcp_dst,load:1->reg0[5..6])", "tcp6|learn(table=2,eth_type=0x86dd,ipv6_src=ipv6_dst)",
	"tcp|learn(table=2,load:0x123456789abcdef->xreg0[])",
	"tcp|set_field:0x204/0xf0f->reg0,set_field:0x100000001/0xf0000000f->xreg0,set_field:0x5->xxreg1",
	"tcp|load:0x1->NXM_NX_REG0[3],load:0x5->NXM_NX_XXREG0[64..95],move:NXM_NX_REG0[0..5]->NXM_NX_REG1[6..11]",
	"tcp|set_field:0x1/0xff->tun_metadata1,set_field:0x12->tun_metadata0",
	"tcp|set_field:1.2.3.4->tun_dst,set_field:2001::1->tun_ipv6_dst,set_field:oam->tun_flags",
	"tcp|set_field:0x5->tun_gbp_id,set_field:0x8->tun_gbp_flags",
	"tcp|set_field:1.2.0.0/255.255.0.0->ip_src,set_field:80/0xff->tcp_dst", "tcp6|set_field:2001::1/ffff::f->ipv6_dst",
	"arp|set_field:2->arp_op,set_field:aa:55:aa:55:00:01->arp_sha,move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[]",
	"icmp6,icmp_type=135,icmp_code=0|set_field:2001::1->nd_target,set_field:aa:55:aa:55:00:01->nd_sll",
	"ip|load:26->OXM_OF_IP_DSCP[],load:1->NXM_NX_IP_ECN[]", "icmp|load:0->NXM_OF_ICMP_TYPE[]",
	"dl_type=0x894f,nsh_mdtype=1|set_field:5->nsh_spi,set_field:6->nsh_si,set_field:7->nsh_c1,dec_nsh_ttl", "tcp|drop",
}

// TestRoundTrip adds many flows to a real switch, and adds the dump of each in three
// OpenFlow versions again: each must be accepted, and dumped with the same text.
func TestRoundTrip(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	s := startSwitch(t)
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-tlv-map", "br0",
		"{class=0xffff,type=0,len=4}->tun_metadata0,{class=0xffff,type=1,len=8}->tun_metadata1,{class=0xffff,type=2,len=124}->tun_metadata2")
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-meter", "br0", "meter=1 kbps bands=type=drop rate=1")
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-group", "br0", "group_id=1,type=all")
	var sources []string
	for _, m := range matches {
		sources = append(sources, m+" actions=drop")
	}
	for _, a := range actions {
		match, action, _ := strings.Cut(a, "|")
		sources = append(sources, match+" actions="+action)
	}
	for i, source := range sources {
		sources[i] = fmt.Sprintf("table=1,priority=%d,%s", i+1, source) // a place of its own: none replaces another
	}
	known := len(sources)
	for source, err := range s.addAll(t, sources) {
		t.Logf("OVS %s does not know %s: %.200v", s.version(t), source, err)
		known--
	}
	if known < len(sources)*9/10 {
		t.Errorf("only %d of %d flows could be added", known, len(sources))
	}
	want := map[string][]string{}
	versions := []string{"OpenFlow15", "OpenFlow14", "OpenFlow13"}
	for _, v := range versions {
		want[v] = s.flows(t, v)
		if len(want[v]) != known {
			t.Errorf("%s: %d of %d flows are in the dump", v, len(want[v]), known)
		}
	}
	for _, v := range versions {
		s.clear(t)
		var again []string
		for _, text := range want[v] {
			text, _ = Rewrite(text)
			again = append(again, text)
		}
		for text, err := range s.addAll(t, again) {
			t.Errorf("%s: %s can't be read back: %v", v, text, err)
		}
		have := map[string]bool{}
		for _, text := range s.flows(t, v) {
			have[text] = true
		}
		for _, text := range want[v] {
			if !have[text] {
				t.Errorf("%s: %s reads back otherwise", v, text)
			}
		}
	}
}
