package trace

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/collect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// pastedTicket has bridges of which something is missing, each in another way. What decides is plain from the text.
const pastedTicket = `[root@n1 ~]# ovs-vsctl show
aaaaaaaa-1111-2222-3333-444444444444
    Bridge whole
        Port w1
            Interface w1
        Port w2
            Interface w2
        Port to-absent
            Interface to-absent
                type: patch
                options: {peer=to-whole}
    Bridge absent
        Port to-whole
            Interface to-whole
                type: patch
                options: {peer=to-absent}
        Port eth1
            Interface eth1
    Bridge parts
        Port p1
            Interface p1
        Port p2
            Interface p2
    Bridge cut
        Port c1
            Interface c1
    Bridge refused
        Port r1
            Interface r1
        Port r2
            Interface r2
    Bridge nowhere
        Port n1
            Interface n1
    Bridge gone
        Port g1
            Interface g1
    Bridge tables
        Port t1
            Interface t1
        Port t2
            Interface t2
    Bridge alike
        Port a1
            Interface a1
        Port patch-alike-to-provider-one
            Interface patch-alike-to-provider-one
                type: patch
                options: {peer=patch-one-to-alike}
        Port patch-alike-to-provider-two
            Interface patch-alike-to-provider-two
                type: patch
                options: {peer=patch-two-to-alike}
    Bridge alike-ex
        Port e1
            Interface e1
        Port patch-one-to-alike
            Interface patch-one-to-alike
                type: patch
                options: {peer=patch-alike-to-provider-one}
        Port patch-two-to-alike
            Interface patch-two-to-alike
                type: patch
                options: {peer=patch-alike-to-provider-two}
    Bridge switches
        Port s1
            Interface s1
        Port s2
            tag: 7
            Interface s2
        Port s3
            Interface s3
    Bridge learned
        Port l1
            Interface l1
        Port l2
            Interface l2
        Port l3
            Interface l3
[root@n1 ~]# ovs-ofctl -O OpenFlow13 --names dump-flows whole
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,icmp,in_port=w1 actions=output:w2
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=10,tcp,in_port=w1 actions=output:to-absent
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=10,udp,in_port=w1 actions=group:7
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=0 actions=drop
[root@n1 ~]# ovs-ofctl -O OpenFlow13 --names dump-flows parts table=0
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,icmp,in_port=p1 actions=output:p2
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=10,tcp,in_port=p1 actions=resubmit(,2)
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=10,udp,in_port=p1 actions=resubmit(,5)
[root@n1 ~]# ovs-ofctl -O OpenFlow13 --names dump-flows parts table=2
 cookie=0x0, duration=1s, table=2, n_packets=0, n_bytes=0, priority=1 actions=drop
[root@n1 ~]# ovs-ofctl -O OpenFlow13 --names dump-flows cut
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=1,in_port=c1 actions=drop
[snip]
[root@n1 ~]# ovs-ofctl -O OpenFlow13 --names dump-flows refused
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=30,icmp,in_port=r1 actions=output:r2
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,in_port=r1 actions=new_action_of_2031
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=10,in_port=r1 actions=output:r2
[root@n1 ~]# ovs-ofctl -O OpenFlow13 dump-groups nowhere
OFPST_GROUP_DESC reply (OF1.3) (xid=0x2):
 group_id=10,type=all,bucket=actions=set_field:02:00:00:00:00:01->eth_dst,bucket=actions=dec_ttl
 group_id=11,type=select,bucket=weight:100,actions=dec_ttl,bucket=weight:100,actions=drop
 group_id=12,type=fast_failover,bucket=watch_port:77,actions=output:77
 group_id=13,type=all,bucket=actions=resubmit(,5)
 group_id=14,type=indirect,bucket=actions=group:10
[root@n1 ~]# ovs-ofctl -O OpenFlow13 --names dump-flows nowhere
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,tcp,in_port=n1 actions=group:10
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,udp,in_port=n1 actions=group:11
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,sctp,in_port=n1 actions=group:12
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,arp,in_port=n1 actions=group:13
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,tcp6,in_port=n1 actions=group:14
[root@n1 ~]# ovs-ofctl -O OpenFlow13 show gone
OFPT_FEATURES_REPLY (OF1.3) (xid=0x2): dpid:0000aabbccddee01
 1(g1): addr:02:00:00:00:00:01
     config:     0
     state:      LIVE
[root@n1 ~]# ovs-ofctl -O OpenFlow13 dump-groups gone
OFPST_GROUP_DESC reply (OF1.3) (xid=0x2):
 group_id=1,type=indirect,bucket=actions=dec_ttl
 group_id=2,type=all,bucket=actions=output:775
[root@n1 ~]# ovs-ofctl -O OpenFlow13 dump-flows gone
OFPST_FLOW reply (OF1.3) (xid=0x2):
 cookie=0x0, duration=1s, table=0, n_packets=100, n_bytes=0, priority=20,tcp,in_port=1 actions=output:775
 cookie=0x0, duration=1s, table=0, n_packets=100, n_bytes=0, priority=20,udp,in_port=1 actions=goto_table:61
 cookie=0x0, duration=1s, table=0, n_packets=100, n_bytes=0, priority=20,icmp,in_port=1 actions=group:1
 cookie=0x0, duration=1s, table=0, n_packets=100, n_bytes=0, priority=20,sctp,in_port=1 actions=group:2
 cookie=0x0, duration=1s, table=61, n_packets=100, n_bytes=0, priority=1 actions=set_field:02:00:00:00:00:09->eth_dst,output:775
[root@n1 ~]# ovs-ofctl -O OpenFlow13 --names dump-flows tables
 cookie=0x0, duration=1s, table=classifier, n_packets=0, n_bytes=0, priority=10,in_port=t1 actions=goto_table:acl
 cookie=0x0, duration=1s, table=acl, n_packets=0, n_bytes=0, priority=20,icmp actions=resubmit(,out)
 cookie=0x0, duration=1s, table=acl, n_packets=0, n_bytes=0, priority=10 actions=drop
 cookie=0x0, duration=1s, table=out, n_packets=0, n_bytes=0, priority=1 actions=output:t2
[root@n1 ~]# ovs-ofctl show alike
OFPT_FEATURES_REPLY (xid=0x2): dpid:0000020000000003
n_tables:254, n_buffers:0
 1(a1): addr:02:00:00:00:00:41
 2(patch-alike-to-): addr:02:00:00:00:00:42
 3(patch-alike-to-): addr:02:00:00:00:00:43
[root@n1 ~]# ovs-ofctl show alike-ex
OFPT_FEATURES_REPLY (xid=0x2): dpid:0000020000000004
n_tables:254, n_buffers:0
 1(e1): addr:02:00:00:00:00:51
 2(patch-one-to-al): addr:02:00:00:00:00:52
 3(patch-two-to-al): addr:02:00:00:00:00:53
[root@n1 ~]# ovs-ofctl -O OpenFlow13 dump-flows alike
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=9,icmp actions=push_vlan:0x8100,set_field:4103->vlan_vid,output:3
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=8,tcp actions=output:2
[root@n1 ~]# ovs-ofctl -O OpenFlow13 dump-flows alike-ex
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=9,in_port=2 actions=output:1
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=9,in_port=3 actions=drop
[root@n1 ~]# ovs-appctl fdb/show alike-ex
 port  VLAN  MAC                Age
    2     7  02:00:00:00:00:61    1
    3     0  02:00:00:00:00:62    1
[root@n1 ~]# ovs-ofctl show switches
OFPT_FEATURES_REPLY (xid=0x2): dpid:0000020000000001
n_tables:254, n_buffers:0
 1(s1): addr:02:00:00:00:00:11
 2(s2): addr:02:00:00:00:00:12
 3(s3): addr:02:00:00:00:00:13
[root@n1 ~]# ovs-ofctl dump-flows switches
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=0 actions=NORMAL
[root@n1 ~]# ovs-ofctl --names dump-flows learned
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=9,in_port=l3 actions=output:l1
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=0 actions=NORMAL
[root@n1 ~]# ovs-appctl fdb/show learned
 port  VLAN  MAC                Age
    2     0  02:00:00:00:00:22    1
[root@n1 ~]# ovs-ofctl show unshown
OFPT_FEATURES_REPLY (xid=0x2): dpid:0000020000000002
n_tables:254, n_buffers:0
 1(u1): addr:02:00:00:00:00:31
 2(u2): addr:02:00:00:00:00:32
[root@n1 ~]# ovs-ofctl dump-flows unshown
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=9,icmp actions=output:2
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=0 actions=NORMAL
[root@n1 ~]# ovs-appctl fdb/show unshown
 port  VLAN  MAC                Age
    2     0  02:00:00:00:00:32    1
`

// TestWhatIsMissingDecidesNothing asks about packets that meet tables of which a part was not collected or not
// restored, bridges without flows, and a group that nobody gave. Those that meet none of these have the verdict of the
// text.
func TestWhatIsMissingDecidesNothing(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl")
	s := startedTicket(t, pastedTicket)
	for flow, want := range map[string]struct {
		verdict answer.Verdict
		says    string // in the first line, or of a drop in the reason and the rule
	}{
		"gone in_port=1,tcp": {answer.Unreachable, "no such port: Nonexistent output port"},
		"gone in_port=1,udp": {answer.Unreachable, "no such port: Nonexistent output port"},
		"gone in_port=1,icmp": {answer.Unreachable,
			"explicit drop: group 1: none of the buckets that the packet took sends it anywhere"},
		"gone in_port=1,sctp": {answer.Unreachable, "no such port"},
		"nowhere in_port=n1,tcp": {answer.Unreachable,
			"explicit drop: group 10: none of the buckets that the packet took sends it anywhere"},
		"nowhere in_port=n1,udp": {answer.Unreachable,
			"explicit drop: group 11: none of the buckets that the packet took sends it anywhere"},
		"nowhere in_port=n1,sctp": {answer.Undetermined,
			"port 77 of nowhere, whose name and type were not recorded"},
		"nowhere in_port=n1,arp":                      {answer.Unreachable, "missing flow"},
		"nowhere in_port=n1,tcp6":                     {answer.Unreachable, "group 1"},
		"nowhere in_port=n1,icmp":                     {answer.Unreachable, "missing flow"},
		"alike in_port=1,icmp":                        {answer.Reachable, "port e1"},
		"alike in_port=1,tcp":                         {answer.Unreachable, "alike-ex, table 0"},
		"switches in_port=1,dl_dst=ff:ff:ff:ff:ff:ff": {answer.Reachable, "port s3"},
		"switches in_port=1,dl_dst=02:00:00:00:00:99": {answer.Undetermined,
			"bridge switches floods the packet with NORMAL, and the MAC addresses that it had learned were not recorded"},
		"learned in_port=l3": {answer.Reachable, "port l1"},
		"learned in_port=l1,dl_dst=02:00:00:00:00:22": {answer.Undetermined,
			"it had learned addresses at port 2, whose name was not recorded"},
		"unshown in_port=1,icmp": {answer.Reachable, "port u2"},
		"unshown in_port=1,tcp,dl_dst=02:00:00:00:00:32": {answer.Undetermined,
			"bridge unshown forwards with NORMAL, and the VLANs or the numbers of some of its ports were not recorded"},

		"whole in_port=w1,icmp":   {answer.Reachable, "port w2"},
		"whole in_port=w2,icmp":   {answer.Unreachable, "table 0"},
		"whole in_port=w1,tcp":    {answer.Undetermined, "the flows of bridge absent were not collected"},
		"whole in_port=w1,udp":    {answer.Undetermined, "group 7 of bridge whole, which was not collected"},
		"absent in_port=eth1,tcp": {answer.Undetermined, "the flows of bridge absent were not collected"},
		"parts in_port=p1,icmp":   {answer.Reachable, "port p2"},
		"parts in_port=p1,tcp":    {answer.Unreachable, "table 2"},
		"parts in_port=p1,udp": {answer.Undetermined,
			"table 5 of bridge parts, of whose flows only a part was collected: it is limited to: table=0"},
		"cut in_port=c1,icmp": {answer.Undetermined,
			"table 0 of bridge cut, of whose flows only a part was collected: lines were left out"},
		"tables in_port=t1,icmp":  {answer.Reachable, "port t2"},
		"tables in_port=t1,tcp":   {answer.Unreachable, "table 1"},
		"refused in_port=r1,icmp": {answer.Reachable, "port r2"},
		"refused in_port=r1,tcp": {answer.Undetermined,
			"table 0 of bridge refused, and flows there that could match it were collected and not restored"},
	} {
		a, err := s.Flow(t.Context(), "", flow, 0)
		if err != nil {
			t.Errorf("%s: %v", flow, err)
			continue
		}
		if a.Verdict != want.verdict || !strings.Contains(said(a), want.says) || a.Verdict == answer.Undetermined &&
			a.Drop != nil {
			t.Errorf("%s: want %s %q:\n%s", flow, want.verdict, want.says, text(a))
		}
	}
	if _, err := s.Flow(t.Context(), "", "parts in_port=1,icmp", 0); !errors.Is(err, ErrQuestion) ||
		!strings.Contains(err.Error(), "its ports are: p1, p2") {
		t.Errorf("a number of a port that was not recorded: %v", err)
	}
}

// startedTicket collects a ticket of node n1, starts its replica, and returns a session that asks it.
func startedTicket(t *testing.T, ticket string) *Session {
	t.Helper()
	folder := ovs.Dir(t)
	page := filepath.Join(t.TempDir(), "ticket.md")
	files.Write(t, page, ticket)
	dir := filepath.Join(folder, "n1")
	wd, err := workdir.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = collect.Collect(t.Context(), wd, collect.Files{Paths: []string{page}}, collect.Options{})
	wd.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	fidelity.Started(t, dir)
	return openRecorded(t, folder, nil)
}

// flowsAlone has bridges of which no output lists the ports: what flows name is all that is known of these. The first
// line is of a log.
const flowsAlone = `2026-05-07T06:44:05.386Z|00011|bridge|INFO|bridge plain: added interface eth0 on port 1
[root@n1 ~]# ovs-ofctl dump-flows plain
NXST_FLOW reply (xid=0x4):
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=10,in_port=1 actions=output:2
 **cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,icmp,in_port=1 actions=drop**  <=== HERE
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=10,in_port=3 actions=NORMAL
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=10,in_port=LOCAL actions=FLOOD
[root@n1 ~]# ovs-ofctl -Oopenflow13 dump-flows sets
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,udp,in_port=1 actions=set_field:02:00:00:00:00:09->eth_dst,group:7
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=10,in_port=1 actions=goto_table:2
 cookie=0x0, duration=1s, table=2, n_packets=0, n_bytes=0, priority=0 actions=drop
[root@n1 ~]# ovs-ofctl dump-flows names
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=10,in_port=p1 actions=output:p2
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,icmp,in_port=p1 actions=drop
 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=20,arp,in_port=p1 actions=ALL
[root@n1 ~]# ovs-ofctl dump-flows some | grep -v n_packets=0
 cookie=0x0, duration=1s, table=0, n_packets=9, n_bytes=0, priority=10,in_port=1 actions=drop
[root@n1 ~]# ovs-ofctl dump-flows stopped
NXST_FLOW reply (xid=0x4):
 cookie=0x0, duration=1s, table=0, n_packets=9, n_bytes=0, priority=10,in_port=1 actions=drop
^C
`

// TestFlowsAloneDecideWhatTheyCan asks about packets on bridges of which flows alone were pasted: what the flows
// decide has a verdict, and what depends on the ports has none.
func TestFlowsAloneDecideWhatTheyCan(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl")
	s := startedTicket(t, flowsAlone)
	for flow, want := range map[string]struct {
		verdict answer.Verdict
		says    string
	}{
		"plain in_port=1,icmp": {answer.Unreachable, "explicit drop"},
		"plain in_port=1,tcp": {answer.Undetermined,
			"the packet leaves by port 2 of plain, whose name and type were not recorded"},
		"plain in_port=2,tcp": {answer.Unreachable, "missing flow"},
		"plain in_port=3,tcp": {answer.Undetermined,
			"several ports of bridge plain, whose ports were not recorded: ovs-ofctl show plain has them"},
		"plain in_port=LOCAL,icmp": {answer.Undetermined, "several ports of bridge plain, whose ports were not recorded"},
		"sets in_port=1,tcp":       {answer.Unreachable, "table 2"},
		"sets in_port=1,udp":       {answer.Undetermined, "group 7 of bridge sets, which was not collected"},
		"names in_port=p1,tcp":     {answer.Reachable, "port p2"},
		"names in_port=p1,icmp":    {answer.Unreachable, "explicit drop"},
		"names in_port=p1,arp":     {answer.Undetermined, "several ports of bridge names, whose ports were not recorded"},
		"some in_port=1,tcp":       {answer.Undetermined, "it is limited to: | grep -v n_packets=0"},
		"stopped in_port=1,tcp":    {answer.Undetermined, "the command did not end: \"^C\""},
	} {
		a, err := s.Flow(t.Context(), "", flow, 0)
		if err != nil {
			t.Errorf("%s: %v", flow, err)
			continue
		}
		if a.Verdict != want.verdict || !strings.Contains(said(a), want.says) {
			t.Errorf("%s: want %s %q:\n%s", flow, want.verdict, want.says, text(a))
		}
	}
	if _, err := s.Flow(t.Context(), "", "plain in_port=9,icmp", 0); !errors.Is(err, ErrQuestion) ||
		!strings.Contains(err.Error(), "the ports of bridge plain of node n1 were not recorded, and its flows name no port 9: give the output of ovs-ofctl show plain") {
		t.Errorf("a port that no flow names: %v", err)
	}
}

// said returns the first line of an answer, and the reason and the rule of a drop.
func said(a *answer.Answer) string {
	if a.Drop == nil {
		return a.Headline()
	}
	return a.Headline() + " " + a.Drop.Reason + ": " + a.Drop.Rule
}
