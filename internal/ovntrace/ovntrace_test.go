package ovntrace_test

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/internal/ovntrace"
	"ovs-offline/test/check/expect"
)

// The texts are what ovn-trace of OVN 23.03 printed.
const (
	dropped = `# tcp,reg14=0x1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:03,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=0,tp_dst=80,tcp_flags=0

ingress(dp="sw0", inport="p1")
------------------------------
 0. ls_in_check_port_sec (northd.c:8432): 1, priority 50, uuid a22d14db
    reg0[15] = check_in_port_sec();
    next;
 4. ls_in_pre_acl (northd.c:5922): ip, priority 100, uuid a83f46d4
    reg0[0] = 1;
    next;
 6. ls_in_pre_stateful (northd.c:6140): reg0[0] == 1, priority 100, uuid e7c7b42d
    ct_next;

ct_next(ct_state=new|trk)
-------------------------
 7. ls_in_acl_hint (northd.c:6190): ct.new && !ct.est, priority 7, uuid 5b58f2e3
    reg0[7] = 1;
    reg0[9] = 1;
    next;
 8. ls_in_acl (northd.c:6809): ip && !ct.est, priority 1, uuid 64242cb7
    reg0[1] = 1;
    next;
18. ls_in_stateful (northd.c:7607): reg0[1] == 1 && reg0[13] == 0, priority 100, uuid 900221ce
    ct_commit { ct_mark.blocked = 0; };
    next;
25. ls_in_l2_lkup (northd.c:9122): eth.dst == 00:00:00:00:00:03, priority 50, uuid 920e5ea0
    outport = "p3";
    output;

egress(dp="sw0", inport="p1", outport="p3")
-------------------------------------------
 0. ls_out_pre_acl (northd.c:5924): ip, priority 100, uuid d97e7935
    reg0[0] = 1;
    next;
 2. ls_out_pre_stateful (northd.c:6143): reg0[0] == 1, priority 100, uuid 8340642d
    ct_next;

ct_next(ct_state=est|trk /* default (use --ct to customize) */)
---------------------------------------------------------------
 3. ls_out_acl_hint (northd.c:6228): !ct.new && ct.est && !ct.rpl && ct_mark.blocked == 0, priority 4, uuid bbc3e552
    reg0[8] = 1;
    reg0[10] = 1;
    next;
 4. ls_out_acl (northd.c:6571): reg0[10] == 1 && (outport=="p3" && ip), priority 2000, uuid e304a9c5
    ct_commit { ct_mark.blocked = 1; };
`
	summary = `# tcp,reg14=0x1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=0,tp_dst=80,tcp_flags=0
ingress(dp="sw0", inport="p1") {
    reg0[15] = check_in_port_sec();
    next;
    reg0[0] = 1;
    next;
    ct_next;
    ct_next(ct_state=est|trk /* default (use --ct to customize) */) {
        reg0[8] = 1;
        reg0[10] = 1;
        next;
        outport = "p2";
        output;
        egress(dp="sw0", inport="p1", outport="p2") {
            reg0[0] = 1;
            next;
            ct_next;
            ct_next(ct_state=est|trk /* default (use --ct to customize) */) {
                reg0[8] = 1;
                reg0[10] = 1;
                next;
                next;
                reg0[15] = check_out_port_sec();
                next;
                output;
                /* output to "p2", type "" */;
            };
        };
    };
};
`
	minimal = `# tcp,reg14=0x1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=0,tp_dst=80,tcp_flags=0
ct_next(ct_state=est|trk /* default (use --ct to customize) */) {
    ct_next(ct_state=est|trk /* default (use --ct to customize) */) {
        output("p2");
    };
};
`
	unknown = `# tcp,reg14=0x1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:09,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=0,tp_dst=80,tcp_flags=0

ingress(dp="sw0", inport="p1")
------------------------------
 0. ls_in_check_port_sec (northd.c:8432): 1, priority 50, uuid a22d14db
    reg0[15] = check_in_port_sec();
    next;
 4. ls_in_pre_acl (northd.c:5922): ip, priority 100, uuid a83f46d4
    reg0[0] = 1;
    next;
 6. ls_in_pre_stateful (northd.c:6140): reg0[0] == 1, priority 100, uuid e7c7b42d
    ct_next;

ct_next(ct_state=est|trk /* default (use --ct to customize) */)
---------------------------------------------------------------
 7. ls_in_acl_hint (northd.c:6228): !ct.new && ct.est && !ct.rpl && ct_mark.blocked == 0, priority 4, uuid 62c65477
    reg0[8] = 1;
    reg0[10] = 1;
    next;
25. ls_in_l2_lkup (northd.c:8373): 1, priority 0, uuid 6959c212
    outport = get_fdb(eth.dst);
    next;
26. ls_in_l2_unknown (northd.c:8381): outport == "none", priority 50, uuid 6345017d
    drop;
`
	// routed is a part of what it prints for a packet that a router answers and forwards.
	routed = `# icmp,reg14=0x1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.1.1,nw_tos=0,nw_ecn=0,nw_ttl=1,nw_frag=no,icmp_type=8,icmp_code=0

ingress(dp="lr0", inport="lrp0")
--------------------------------
 3. lr_in_ip_input (northd.c:1): inport == "lrp0" && ip4 && ip.ttl == {0, 1} && !ip.later_frag, priority 100, uuid 01234567

    icmp4
    -----
        eth.dst <-> eth.src;
        ip.ttl = 254;
        next;
    17. lr_in_arp_request: 1, priority 0, uuid 89abcdef
        output;

    egress(dp="lr0", inport="lrp0", outport="lrp0")
    -----------------------------------------------
     6. lr_out_delivery: outport == "lrp0", priority 100, uuid aaaaaaaa
        output;
        /* output to "lrp0", type "patch" */

    ingress(dp="sw0", inport="rp0")
    -------------------------------
    25. ls_in_l2_lkup: eth.dst == 00:00:00:00:00:01, priority 50, uuid bbbbbbbb
        outport = "p1";
        output;
        /* output to "p1", type "" */
`
)

// TestTraceIsRead checks where packets end, in each form of ovn-trace.
func TestTraceIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		outputs []string
		last    string
		stages  int
	}{
		"detailed, dropped":         {dropped, nil, "egress sw0 4 ls_out_acl 2000 e304a9c5", 11},
		"detailed, unknown address": {unknown, nil, "ingress sw0 26 ls_in_l2_unknown 50 6345017d", 6},
		"summary":                   {summary, []string{"p2"}, "", 0},
		"minimal":                   {minimal, []string{"p2"}, "", 0},
		"an answer of a router":     {routed, nil, "ingress lr0 3 lr_in_ip_input 100 01234567", 4},
		"no flow": {"ingress(dp=\"sw0\", inport=\"p1\")\n----\n 0. ls_in_x: no match (implicit drop)\n",
			nil, "ingress sw0 0 ls_in_x 0 ", 1},
	} {
		read, err := ovntrace.Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var outputs []string
		for _, output := range read.Outputs {
			outputs = append(outputs, output.Port)
		}
		expect.Equal(t, outputs, c.outputs, name)
		expect.Equal(t, len(read.Stages), c.stages, name)
		last, _ := read.Last()
		got := ""
		if last.Pipeline != "" {
			got = fmt.Sprintf("%s %s %d %s %d %s", last.Pipeline, last.Datapath, last.Table, last.Name, last.Priority, last.UUID)
		}
		expect.Equal(t, got, c.last, name)
	}
}

// TestOtherTextIsNoTrace checks texts that are no output of ovn-trace.
func TestOtherTextIsNoTrace(t *testing.T) {
	for _, text := range []string{"", "ovn-trace: no datapath", "# a comment\n\nText.\n", "Flow: tcp,in_port=1\n"} {
		if read, err := ovntrace.Parse(text); err == nil {
			t.Errorf("%q: %+v", text, read)
		}
	}
}

// FuzzParse gives any text to the reader.
func FuzzParse(f *testing.F) {
	for _, text := range []string{dropped, summary, minimal, unknown, routed} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, err := ovntrace.Parse(text)
		if err != nil {
			return
		}
		if lines := strings.Count(text, "\n") + 1; len(read.Stages) > lines || len(read.Outputs) > lines {
			t.Errorf("%d lines have %d stages and %d outputs", lines, len(read.Stages), len(read.Outputs))
		}
		read.Last()
	})
}
