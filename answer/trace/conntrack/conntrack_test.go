package conntrack_test

import (
	"strings"
	"testing"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/oracle/captures"
)

// The lines of three nodes: Linux's conntrack, and the userspace datapath's.
const (
	kernelTCP   = "tcp,orig=(src=10.244.1.5,dst=10.96.10.11,sport=47982,dport=80),reply=(src=10.244.1.3,dst=10.244.1.5,sport=8080,dport=47982),id=3697892601,zone=20,status=SEEN_REPLY|ASSURED|CONFIRMED|DST_NAT|SRC_NAT_DONE|DST_NAT_DONE,mark=2,labels=0x1,protoinfo=(state_orig=ESTABLISHED,state_reply=ESTABLISHED,wscale_orig=7,wscale_reply=7)"
	kernelPing  = "icmp,orig=(src=10.244.1.5,dst=172.18.0.1,id=443,type=8,code=0),reply=(src=172.18.0.1,dst=172.18.0.2,id=443,type=0,code=0),id=1645512837,status=SEEN_REPLY|CONFIRMED|SRC_NAT|SRC_NAT_DONE"
	kernelOther = "icmp,orig=(src=10.244.1.5,dst=172.18.0.1,id=444,type=8,code=0),reply=(src=172.18.0.1,dst=172.18.0.2,id=900,type=0,code=0),id=1,status=SEEN_REPLY|CONFIRMED"
	kernelNew   = "udp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=5,dport=53),reply=(src=10.0.0.2,dst=10.0.0.1,sport=53,dport=5),id=2,zone=7,status=CONFIRMED"
	closed      = "tcp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=7,dport=80),reply=(src=10.0.0.2,dst=10.0.0.1,sport=80,dport=7),id=2,zone=7,status=SEEN_REPLY|ASSURED|CONFIRMED,protoinfo=(state_orig=TIME_WAIT,state_reply=TIME_WAIT)"
	userTCP     = "tcp,orig=(src=192.168.10.8,dst=172.24.4.9,sport=31000,dport=443),reply=(src=172.24.4.9,dst=172.24.4.10,sport=443,dport=31001),id=0,zone=1,status=0,protoinfo=(state_orig=ESTABLISHED,state_reply=ESTABLISHED,flags_orig=0,flags_reply=0)"
	userIPv6    = "tcp,orig=(src=fd00:10::5,dst=fd00:10::100,sport=20058,dport=80),reply=(src=fd00:10::6,dst=fd00:10::5,sport=80,dport=20058),id=0,zone=2,status=0,mark=2"
)

func node(t *testing.T, userspace bool, lines ...string) conntrack.Tracker {
	t.Helper()
	table, unread, err := conntrack.Read(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil || unread != 0 || table.Len() != len(lines) {
		t.Fatalf("%d connections, %d lines not read, %v", table.Len(), unread, err)
	}
	return conntrack.Tracker{Name: "n", Table: table, Userspace: userspace}
}

func packet(t *testing.T, text string) flow.Packet {
	t.Helper()
	p, err := flow.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func action(t *testing.T, text string) odp.Track {
	t.Helper()
	track, ok := odp.Parse(text)[0].(odp.Track)
	if !ok {
		t.Fatalf("%s is no ct action", text)
	}
	return track
}

func TestRecordedConnectionsOfLiveNodesAreRead(t *testing.T) {
	captures.Captured(t, "*dump-conntrack*", 1<<20, func(content []byte) {
		table, unread, err := conntrack.Read(strings.NewReader(string(content)))
		if lines := strings.Count(string(content), "\n"); err != nil || unread != 0 || table.Len() != lines {
			t.Errorf("%d of %d connections, %d lines not read, %v", table.Len(), lines, unread, err)
		}
	})
}

func TestLinesThatCanNotBeReadCostOnlyThemselves(t *testing.T) {
	table, unread, err := conntrack.Read(strings.NewReader("ovs-vswitchd: opening datapath\n" + kernelTCP +
		"\ntcp,orig=(src=x)\nnothing\n\n" + userIPv6))
	if err != nil || table.Len() != 2 || unread != 3 {
		t.Errorf("%d connections, %d lines not read, %v", table.Len(), unread, err)
	}
}

func TestStateAndTranslationOfRecordedConnections(t *testing.T) {
	for name, c := range map[string]struct {
		line      string
		userspace bool
		packet    string
		action    string
		state     string
		want      string // fields that changed
		mark      uint32
	}{
		"a VIP, forward": {kernelTCP, false,
			"tcp,nw_src=10.244.1.5,nw_dst=10.96.10.11,tp_src=47982,tp_dst=80,tcp_flags=ack", "ct(zone=20,nat)", "est|trk|dnat",
			"nw_dst=10.244.1.3 tp_dst=8080", 2},
		"a VIP, backward": {kernelTCP, false,
			"tcp,nw_src=10.244.1.3,nw_dst=10.244.1.5,tp_src=8080,tp_dst=47982,tcp_flags=ack", "ct(zone=20,nat)",
			"est|rpl|trk|snat", "nw_src=10.96.10.11 tp_src=80", 2},
		"without nat nothing is translated": {kernelTCP, false,
			"tcp,nw_src=10.244.1.3,nw_dst=10.244.1.5,tp_src=8080,tp_dst=47982,tcp_flags=ack", "ct(zone=20)", "est|rpl|trk",
			"nw_src=10.244.1.3 tp_src=8080", 2},
		"another zone": {kernelTCP, false,
			"tcp,nw_src=10.244.1.5,nw_dst=10.96.10.11,tp_src=47982,tp_dst=80,tcp_flags=ack", "ct(zone=21,nat)", "new|trk",
			"nw_dst=10.96.10.11", 0},
		"a port that was taken": {userTCP, true,
			"tcp,nw_src=172.24.4.9,nw_dst=172.24.4.10,tp_src=443,tp_dst=31001,tcp_flags=ack", "ct(zone=1,nat)",
			"est|rpl|trk|dnat", "nw_dst=192.168.10.8 tp_dst=31000", 0},
		"IPv6": {userIPv6, true,
			"tcp6,ipv6_src=fd00:10::5,ipv6_dst=fd00:10::100,tp_src=20058,tp_dst=80,tcp_flags=ack", "ct(zone=2,nat)",
			"est|trk|dnat", "ipv6_dst=fd00:10::6", 2},
		"the answer of a ping": {kernelPing, false,
			"icmp,nw_src=172.18.0.1,nw_dst=172.18.0.2,icmp_type=0,icmp_code=0", "ct(nat)", "est|rpl|trk|dnat",
			"nw_dst=10.244.1.5", 0},
		"no answer was seen": {kernelNew, false, "udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=5,tp_dst=53",
			"ct(zone=7)", "new|trk", "", 0},
		"the first answer": {kernelNew, false, "udp,nw_src=10.0.0.2,nw_dst=10.0.0.1,tp_src=53,tp_dst=5",
			"ct(zone=7)", "est|rpl|trk", "", 0},
		"a SYN on a connection that has ended": {closed, false,
			"tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=7,tp_dst=80,tcp_flags=syn", "ct(zone=7)", "new|trk", "", 0},
		"a SYN|ACK without a connection": {kernelTCP, false,
			"tcp,nw_src=10.9.9.9,nw_dst=10.9.9.8,tp_src=80,tp_dst=7,tcp_flags=syn|ack", "ct(zone=7)", "inv|trk", "", 0},
		"a RST without a connection": {kernelTCP, false,
			"tcp,nw_src=10.9.9.9,nw_dst=10.9.9.8,tp_src=80,tp_dst=7,tcp_flags=rst", "ct(zone=7)", "inv|trk", "", 0},
		"the same in the userspace datapath": {userTCP, true,
			"tcp,nw_src=10.9.9.9,nw_dst=10.9.9.8,tp_src=80,tp_dst=7,tcp_flags=rst", "ct(zone=7)", "new|trk", "", 0},
		"an ACK without a connection": {kernelTCP, false,
			"tcp,nw_src=10.9.9.9,nw_dst=10.9.9.8,tp_src=80,tp_dst=7,tcp_flags=ack", "ct(zone=7)", "new|trk", "", 0},
		"flags that are not known": {kernelTCP, false,
			"tcp,nw_src=10.9.9.9,nw_dst=10.9.9.8,tp_src=80,tp_dst=7,tcp_flags=0", "ct(zone=7)", "new|trk", "", 0},
		"an echo reply without a connection": {kernelTCP, false,
			"icmp,nw_src=10.9.9.9,nw_dst=10.9.9.8,icmp_type=0,icmp_code=0", "ct(zone=7)", "inv|trk", "", 0},
		"neighbour discovery": {kernelTCP, false,
			"icmp6,ipv6_src=fe80::1,ipv6_dst=ff02::1,icmp_type=136,icmp_code=0", "ct(zone=7)", "inv|trk", "", 0},
		"ARP": {kernelTCP, false, "arp,arp_op=1", "ct(zone=7)", "inv|trk", "", 0},
		"a SYN|FIN in the userspace datapath": {userTCP, true,
			"tcp,nw_src=192.168.10.8,nw_dst=172.24.4.9,tp_src=31000,tp_dst=443,tcp_flags=syn|fin", "ct(zone=1)", "inv|trk", "",
			0},
		"a commit of an established connection": {kernelTCP, false,
			"tcp,nw_src=10.244.1.5,nw_dst=10.96.10.11,tp_src=47982,tp_dst=80,tcp_flags=ack", "ct(commit,zone=20,mark=0x1/0x1)",
			"est|trk", "", 3},
		"a forced commit against the direction": {kernelTCP, false,
			"tcp,nw_src=10.244.1.3,nw_dst=10.244.1.5,tp_src=8080,tp_dst=47982,tcp_flags=syn", "ct(force_commit,zone=20)",
			"new|trk", "", 0},
	} {
		n := node(t, c.userspace, c.line)
		r, err := n.Execute(nil, conntrack.Subject{Packet: packet(t, c.packet)}, action(t, c.action))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := r.Subject.Meta.Flags.String(); got != c.state || r.Subject.Meta.Mark != c.mark {
			t.Errorf("%s: %s and mark %d, want %s and %d", name, got, r.Subject.Meta.Mark, c.state, c.mark)
		}
		for _, field := range strings.Fields(c.want) {
			if key, value, _ := strings.Cut(field, "="); r.Subject.Packet.Get(key) != value {
				t.Errorf("%s: %s, want %s", name, r.Subject.Packet, field)
			}
		}
	}
}

func TestCommitsAreThereForLaterPackets(t *testing.T) {
	n := node(t, false)
	syn := conntrack.Subject{Packet: packet(t, "tcp,nw_src=10.0.0.1,nw_dst=10.96.0.1,tp_src=1000,tp_dst=80,tcp_flags=syn")}
	r, err := n.Execute(nil, syn, action(t,
		"ct(commit,zone=5,mark=0x2/0x2,label=0x10000000000000000/0x10000000000000000,nat(dst=10.0.0.9:8080))"))
	if err != nil || r.Subject.Packet.Get("nw_dst") != "10.0.0.9" || r.Subject.Packet.Get("tp_dst") != "8080" {
		t.Fatal(r.Subject.Packet, err)
	}
	answer := conntrack.Subject{Packet: packet(t,
		"tcp,nw_src=10.0.0.9,nw_dst=10.0.0.1,tp_src=8080,tp_dst=1000,tcp_flags=syn|ack")}
	a, err := n.Execute(r.Changes, answer, action(t, "ct(zone=5,nat)"))
	if err != nil || a.Subject.Meta.Flags.String() != "est|rpl|trk|snat" || a.Subject.Meta.Mark != 2 ||
		a.Subject.Meta.Label != "0x10000000000000000" || !a.OfQuestion {
		t.Fatalf("%+v %v", a.Subject.Meta, err)
	}
	expect.Equal(t, a.Subject.Packet.Get("nw_src"), "10.96.0.1", a.Subject.Packet)
	expect.Equal(t, a.Subject.Packet.Get("tp_src"), "80", a.Subject.Packet)
	// Without that state, on another node or in another zone, nothing is known of it.
	other := conntrack.Tracker{Name: "m"}
	for _, try := range []struct {
		node  conntrack.Tracker
		state *conntrack.Changes
		ct    string
	}{{n, nil, "ct(zone=5,nat)"}, {other, r.Changes, "ct(zone=5,nat)"}, {n, r.Changes, "ct(zone=6,nat)"}} {
		if b, _ := try.node.Execute(try.state, answer, action(t, try.ct)); b.Subject.Meta.Flags.String() != "inv|trk" {
			t.Errorf("%+v", b.Subject.Meta)
		}
	}
	// The answer has established the connection.
	syn.Packet.Set("tcp_flags", "ack")
	if b, _ := n.Execute(a.Changes, syn, action(t, "ct(zone=5,nat)")); b.Subject.Meta.Flags.String() != "est|trk|dnat" ||
		b.Subject.Packet.Get("nw_dst") != "10.0.0.9" {
		t.Errorf("%+v", b.Subject)
	}
}

func TestTranslationIsDoneOnceInAZone(t *testing.T) {
	n := node(t, false, kernelTCP)
	s := conntrack.Subject{Packet: packet(t,
		"tcp,nw_src=10.244.1.5,nw_dst=10.96.10.11,tp_src=47982,tp_dst=80,tcp_flags=ack")}
	r, _ := n.Execute(nil, s, action(t, "ct(zone=20,nat)"))
	again, _ := n.Execute(r.Changes, r.Subject, action(t, "ct(commit,zone=20,nat(dst=10.0.0.77))"))
	expect.Equal(t, again.Subject.Packet.Get("nw_dst"), "10.244.1.3", "nw_dst")
}

func TestChosenTranslationsAreUncertain(t *testing.T) {
	n := node(t, false, strings.Replace(userTCP, "dport=31001", "dport=31000", 1))
	for ct, uncertain := range map[string]string{
		"ct(commit,zone=1,nat(src=172.24.4.10))":              "uses the translated addresses and ports",
		"ct(commit,zone=2,nat(src=172.24.4.10))":              "",
		"ct(commit,zone=2,nat(src=172.24.4.10-172.24.4.20))":  "one of the addresses 172.24.4.10 to 172.24.4.20",
		"ct(commit,zone=2,nat(src=172.24.4.10:40000-50000))":  "one of the ports 40000 to 50000",
		"ct(commit,zone=2,nat(src=172.24.4.10:30000-50000))":  "",
		"ct(commit,zone=2,nat(dst=192.168.10.5:8080,random))": "",
	} {
		s := conntrack.Subject{Packet: packet(t,
			"tcp,nw_src=192.168.10.6,nw_dst=172.24.4.9,tp_src=31000,tp_dst=443,tcp_flags=syn")}
		r, err := n.Execute(nil, s, action(t, ct))
		if err != nil || (r.Uncertain == "") != (uncertain == "") || !strings.Contains(r.Uncertain, uncertain) {
			t.Errorf("%s: %q %v", ct, r.Uncertain, err)
		}
	}
}

// TestAnswersToAChosenPortAreNotDecided looks answers to a connection up whose source port
// another connection had: which port Linux chose is not known.
func TestAnswersToAChosenPortAreNotDecided(t *testing.T) {
	n := node(t, false, strings.Replace(userTCP, "dport=31001", "dport=31000", 1))
	s := conntrack.Subject{Packet: packet(t,
		"tcp,nw_src=192.168.10.6,nw_dst=172.24.4.9,tp_src=31000,tp_dst=443,tcp_flags=syn")}
	first, err := n.Execute(nil, s, action(t, "ct(commit,zone=1,nat(src=172.24.4.10))"))
	if err != nil {
		t.Fatal(err)
	}
	const chosen = "another connection of zone 1 uses the translated addresses and ports: NAT chooses another port"
	for _, test := range []struct{ answer, state, to, why string }{
		{"tcp,nw_src=172.24.4.9,nw_dst=172.24.4.10,tp_src=443,tp_dst=65323,tcp_flags=syn|ack", "", "", chosen},
		{"tcp,nw_src=172.24.4.9,nw_dst=172.24.4.10,tp_src=443,tp_dst=31000,tcp_flags=ack", "est|rpl|trk|dnat", "192.168.10.8",
			""},
		{"tcp,nw_src=172.24.4.8,nw_dst=172.24.4.10,tp_src=443,tp_dst=65323,tcp_flags=syn|ack", "inv|trk", "172.24.4.10", ""},
	} {
		r, err := n.Execute(first.Changes, conntrack.Subject{Packet: packet(t, test.answer)}, action(t, "ct(zone=1,nat)"))
		switch {
		case test.why != "":
			if err == nil || !strings.Contains(err.Error(), test.why) {
				t.Errorf("%s: %v, want %q", test.answer, err, test.why)
			}
		case err != nil || r.Subject.Meta.Flags.String() != test.state || r.Subject.Packet.Get("nw_dst") != test.to:
			t.Errorf("%s: %v to %s, %v, want %s to %s", test.answer, r.Subject.Meta.Flags, r.Subject.Packet.Get("nw_dst"), err,
				test.state, test.to)
		}
	}
	s.Packet = packet(t, "tcp,nw_src=192.168.10.6,nw_dst=172.24.4.9,tp_src=31000,tp_dst=443,tcp_flags=ack")
	if r, err := n.Execute(first.Changes, s, action(t, "ct(commit,zone=1,nat(src=172.24.4.10))")); err != nil ||
		r.Uncertain != chosen {
		t.Errorf("a further packet of the client: %q, %v, want %q", r.Uncertain, err, chosen)
	}
}

func TestPingsWithoutAnIdentifierMayMatchSeveral(t *testing.T) {
	n := node(t, false, kernelPing, kernelOther)
	s := conntrack.Subject{Packet: packet(t, "icmp,nw_src=10.244.1.5,nw_dst=172.18.0.1,icmp_type=8,icmp_code=0")}
	if r, _ := n.Execute(nil, s, action(t, "ct(nat)")); r.Uncertain == "" {
		t.Error("the choice among two connections is certain")
	}
	s.ID = 444
	r, _ := n.Execute(nil, s, action(t, "ct(nat)"))
	if r.Uncertain != "" || r.Subject.ID != 900 {
		t.Errorf("%q, identifier %d", r.Uncertain, r.Subject.ID)
	}
	s.ID = 1
	if r, _ := n.Execute(nil, s, action(t, "ct(nat)")); r.Subject.Meta.Flags.String() != "new|trk" {
		t.Errorf("%+v", r.Subject.Meta)
	}
}

func TestErrorsBelongToTheConnectionInsideThem(t *testing.T) {
	n := node(t, false, kernelTCP)
	outer := packet(t, "icmp,nw_src=10.244.1.3,nw_dst=10.244.1.5,icmp_type=3,icmp_code=3")
	quoted := conntrack.Subject{Packet: packet(t, "tcp,nw_src=10.244.1.5,nw_dst=10.244.1.3,tp_src=47982,tp_dst=8080")}
	r, err := n.Execute(nil, conntrack.Subject{Packet: outer, Quoted: &quoted}, action(t, "ct(zone=20,nat)"))
	if err != nil || r.Subject.Meta.Flags.String() != "rel|rpl|trk|snat" {
		t.Fatalf("%+v %v", r.Subject.Meta, err)
	}
	expect.Equal(t, r.Subject.Packet.Get("nw_src"), "10.96.10.11", "from")
	expect.Equal(t, r.Subject.Quoted.Packet.String(), "tcp,nw_src=10.244.1.5,nw_dst=10.96.10.11,tp_src=47982,tp_dst=80",
		"quoted")
	other := conntrack.Subject{Packet: packet(t, "tcp,nw_src=10.9.9.9,nw_dst=10.244.1.3,tp_src=1,tp_dst=8080")}
	if r, _ := n.Execute(nil, conntrack.Subject{Packet: outer, Quoted: &other},
		action(t, "ct(zone=20,nat)")); r.Subject.Meta.Flags.String() != "inv|trk" {
		t.Errorf("%+v", r.Subject.Meta)
	}
	if _, err := n.Execute(nil, conntrack.Subject{Packet: outer}, action(t, "ct(zone=20,nat)")); err == nil {
		t.Error("the connection is known although the packet inside is not")
	}
}

func TestWhatConntrackCanNotPredict(t *testing.T) {
	n := node(t, false)
	for text, ct := range map[string]string{
		"tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=1,tp_dst=21":       "ct(commit,helper=ftp)",
		"udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_frag=later,nw_proto=1": "ct(zone=1)",
	} {
		if _, err := n.Execute(nil, conntrack.Subject{Packet: packet(t, text)}, action(t, ct)); err == nil {
			t.Errorf("%s: %s has a certain outcome", text, ct)
		}
	}
}

// TestFragmentsAreTrackedAsTheirDatagram looks fragments up that belong to a connection.
// Linux's conntrack goes on with the whole datagram, and that of userspace with the fragment.
func TestFragmentsAreTrackedAsTheirDatagram(t *testing.T) {
	const (
		connection = "udp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=5,dport=53),reply=(src=10.0.0.2,dst=10.0.0.9,sport=53,dport=99),id=2,zone=7,status=SEEN_REPLY|CONFIRMED"
		first      = "udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_frag=first,tp_src=5,tp_dst=53"
		later      = "udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_frag=later"
	)
	datagram := packet(t, first)
	for _, c := range []struct {
		userspace        bool
		text, want, left string
	}{
		{false, first, "udp,nw_src=10.0.0.9,nw_dst=10.0.0.2,tp_src=99,tp_dst=53",
			"udp,nw_src=10.0.0.9,nw_dst=10.0.0.2,tp_src=99,tp_dst=53,nw_frag=first"},
		{false, later, "udp,nw_src=10.0.0.9,nw_dst=10.0.0.2,tp_src=99,tp_dst=53",
			"udp,nw_src=10.0.0.9,nw_dst=10.0.0.2,nw_frag=later"},
		{true, first, "udp,nw_src=10.0.0.9,nw_dst=10.0.0.2,tp_src=99,tp_dst=53,nw_frag=first", ""},
		{true, later, "udp,nw_src=10.0.0.9,nw_dst=10.0.0.2,nw_frag=later", ""},
	} {
		in := conntrack.Subject{Packet: packet(t, c.text), First: &datagram}
		r, err := node(t, c.userspace, connection).Execute(nil, in, action(t, "ct(zone=7,nat)"))
		if got := r.Subject.Packet; err != nil || got.String() != c.want || r.Subject.Meta.Flags.String() != "est|trk|snat" {
			t.Errorf("%s (userspace: %v) became %s (%v, %v), want %s", c.text, c.userspace, got, r.Subject.Meta.Flags, err,
				c.want)
		}
		r.Subject.Refragment()
		if got := r.Subject.Packet.String(); c.left != "" && got != c.left {
			t.Errorf("%s leaves as %s, want %s", c.text, got, c.left)
		}
	}
}

func TestLaterFragmentOfIPv6HasNoProtocol(t *testing.T) {
	datagram := packet(t, "udp6,ipv6_src=fd00::1,ipv6_dst=fd00::2,nw_frag=first,tp_src=5,tp_dst=53")
	in := conntrack.Subject{Packet: packet(t, "ipv6,nw_proto=44,ipv6_src=fd00::1,ipv6_dst=fd00::2,nw_frag=later"),
		First: &datagram}
	r, err := node(t, false).Execute(nil, in, action(t, "ct(zone=7)"))
	if got := r.Subject.Packet.String(); err != nil || got != "udp6,ipv6_src=fd00::1,ipv6_dst=fd00::2,tp_src=5,tp_dst=53" {
		t.Errorf("the datagram is %s (%v)", got, err)
	}
	r.Subject.Refragment()
	expect.Equal(t, r.Subject.Packet.String(), "ipv6,ipv6_src=fd00::1,ipv6_dst=fd00::2,nw_frag=later,nw_proto=44",
		"the fragment")
}

func TestPacketWithoutHeaderIsInvalid(t *testing.T) {
	in := conntrack.Subject{Packet: packet(t, "tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2"), Headless: true}
	if r, err := node(t, false).Execute(nil, in, action(t, "ct(zone=7)")); err != nil || !r.Subject.Meta.Flags.Inv {
		t.Errorf("%+v %v", r.Subject.Meta.Flags, err)
	}
}

// TestStatesThatAreAssumed asks for packets of which no connection is known.
func TestStatesThatAreAssumed(t *testing.T) {
	n := node(t, false)
	const answer = "tcp,nw_src=10.0.0.2,nw_dst=10.0.0.1,tp_src=80,tp_dst=5,tcp_flags=syn|ack"
	failure := "icmp,nw_src=10.0.0.2,nw_dst=10.0.0.1,icmp_type=3,icmp_code=3"
	for _, c := range []struct {
		text, ct, want string
		assumed        *conntrack.Flags
	}{
		{answer, "ct(zone=7)", "inv|trk", nil},
		{answer, "ct(zone=7)", "est|rpl|trk", &conntrack.Flags{Est: true, Rpl: true}},
		{answer, "ct(zone=7)", "est|trk", &conntrack.Flags{Est: true}},
		{answer, "ct(zone=7,nat)", "", &conntrack.Flags{Est: true}}, // translated to what?
		{failure, "ct(zone=7)", "", nil},
		{failure, "ct(zone=7)", "rel|trk", &conntrack.Flags{Rel: true}},
		{failure, "ct(zone=7,nat)", "", &conntrack.Flags{Rel: true}},
		{failure, "ct(zone=7,nat)", "inv|trk", &conntrack.Flags{Inv: true}},
	} {
		n.Assumed = c.assumed
		r, err := n.Execute(nil, conntrack.Subject{Packet: packet(t, c.text)}, action(t, c.ct))
		if (err != nil) != (c.want == "") || err == nil && r.Subject.Meta.Flags.String() != c.want {
			t.Errorf("%s, %s, assumed %v: %v (%v), want %q", c.text, c.ct, c.assumed, r.Subject.Meta.Flags, err, c.want)
		}
	}
}

func TestAnswersThatTheTableDoesNotShowAreAssumed(t *testing.T) {
	const udp = "udp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=5,dport=53),reply=(src=10.0.0.2,dst=10.0.0.1,sport=53,dport=5),id=0,zone=7,status=0"
	question := conntrack.Subject{Packet: packet(t, "udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=5,tp_dst=53")}
	if r, _ := node(t, true, udp).Execute(nil, question,
		action(t, "ct(zone=7)")); r.Subject.Meta.Flags.String() != "est|trk" || len(r.Assumed) == 0 {
		t.Errorf("%+v, assumed %q", r.Subject.Meta, r.Assumed)
	}
	if r, _ := node(t, false, kernelNew).Execute(nil, question,
		action(t, "ct(zone=7)")); r.Subject.Meta.Flags.String() != "new|trk" || len(r.Assumed) > 0 {
		t.Errorf("%+v, assumed %q", r.Subject.Meta, r.Assumed)
	}
}

func TestEntriesArePrintedAsTheTablePrintsThem(t *testing.T) {
	for _, line := range []string{
		"icmp,orig=(src=10.244.1.5,dst=172.18.0.1,id=443,type=8,code=0),reply=(src=172.18.0.1,dst=172.18.0.2,id=443,type=0,code=0),zone=3",
		"tcp,orig=(src=fd00:10::5,dst=fd00:10::100,sport=20058,dport=80),reply=(src=fd00:10::6,dst=fd00:10::5,sport=80,dport=20058),zone=2,mark=2,labels=0x1,protoinfo=(state_orig=ESTABLISHED,state_reply=SYN_SENT)",
	} {
		if e, ok := conntrack.ParseConnection(line); !ok || e.String() != line {
			t.Errorf("%s\nbecame %v", line, e)
		}
	}
}

func TestFlags(t *testing.T) {
	f, ok := conntrack.ParseFlags("est,rpl")
	if !ok || f.String() != "est|rpl|trk" {
		t.Error(f)
	}
	if _, ok := conntrack.ParseFlags("est|red"); ok {
		t.Error("red is a state")
	}
}

// FuzzRead gives any text to the parser, and looks the first connection up.
func FuzzRead(f *testing.F) {
	captures.Captured(f, "*dump-conntrack*", 2048, func(content []byte) { f.Add(string(content)) })
	f.Add(strings.Join([]string{kernelTCP, kernelPing, userTCP, userIPv6}, "\n"))
	f.Fuzz(func(t *testing.T, text string) {
		table, unread, err := conntrack.Read(strings.NewReader(text))
		if err == nil && table.Len()+unread > strings.Count(text, "\n")+1 {
			t.Errorf("%d connections of %d lines", table.Len(), strings.Count(text, "\n"))
		}
		line, _, _ := strings.Cut(text, "\n")
		e, ok := conntrack.ParseConnection(line)
		if !ok {
			return
		}
		if !e.Orig.Src.IsValid() || !e.Reply.Src.IsValid() {
			t.Errorf("a connection without addresses: %+v", e)
		}
		p, _ := flow.Parse("tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=1,tp_dst=2")
		_, _ = conntrack.Tracker{Table: table}.Execute(nil, conntrack.Subject{Packet: p},
			odp.Track{Commit: true, Zone: e.Zone, NAT: &odp.NAT{}})
	})
}

// TestUnansweredConnectionIsTranslatedAsItsDatapathDoes has a second packet of a connection
// to a load balancer that nothing has answered yet. Linux leaves its addresses until it is
// committed again, and the userspace datapath translates it at once: the two ways on which
// repetitions of a first packet really went, to a service with session affinity.
func TestUnansweredConnectionIsTranslatedAsItsDatapathDoes(t *testing.T) {
	const first = "udp,nw_src=10.0.0.10,nw_dst=10.96.0.10,tp_src=41000,tp_dst=53"
	for userspace, want := range map[bool][2]string{false: {"10.96.0.10", "10.0.1.11"}, true: {"10.0.1.11", "10.0.1.11"}} {
		n := node(t, userspace)
		r, err := n.Execute(nil, conntrack.Subject{Packet: packet(t, first)},
			action(t, "ct(commit,zone=3,nat(dst=10.0.1.11:8053))"))
		if err != nil {
			t.Fatal(err)
		}
		looked, err := n.Execute(r.Changes, conntrack.Subject{Packet: packet(t, first)}, action(t, "ct(zone=3,nat)"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := n.Execute(r.Changes, looked.Subject, action(t, "ct(commit,zone=3,nat(dst=10.0.1.11:8053))"))
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{looked.Subject.Packet.Get("nw_dst"), again.Subject.Packet.Get("nw_dst")}; got != want ||
			!looked.Subject.Meta.Flags.New && !userspace {
			t.Errorf("userspace %v: sent to %q with %v, want %q", userspace, got, looked.Subject.Meta.Flags, want)
		}
	}
}

// TestAnswerToAPortOfARangeIsKnown looks up the answer to a packet whose source port the userspace datapath
// chose of a range: the answer has that port, whichever it is. Another one's packet to the range is not known.
func TestAnswerToAPortOfARangeIsKnown(t *testing.T) {
	n := node(t, true, userTCP)
	s := conntrack.Subject{Packet: packet(t,
		"tcp,nw_src=192.168.10.77,nw_dst=172.24.4.99,tp_src=31000,tp_dst=443,tcp_flags=syn")}
	first, err := n.Execute(nil, s, action(t, "ct(commit,zone=7,nat(src=172.24.4.10:32768-60999))"))
	if err != nil || first.Uncertain == "" {
		t.Fatal(first.Uncertain, err)
	}
	port := first.Subject.Packet.Get("tp_src")
	back := conntrack.Subject{Packet: packet(t,
		"tcp,nw_src=172.24.4.99,nw_dst=172.24.4.10,tp_src=443,tp_dst="+port+",tcp_flags=syn|ack")}
	r, err := n.Execute(first.Changes, back, action(t, "ct(zone=7,nat)"))
	if err != nil || r.Subject.Packet.Get("nw_dst") != "192.168.10.77" || r.Subject.Packet.Get("tp_dst") != "31000" {
		t.Errorf("%v: %s %v", r.Subject.Packet, r.Subject.Meta.Flags, err)
	}
	back.Packet = packet(t, "tcp,nw_src=172.24.4.99,nw_dst=172.24.4.10,tp_src=443,tp_dst=50000,tcp_flags=syn|ack")
	if _, err := n.Execute(first.Changes, back, action(t, "ct(zone=7,nat)")); err == nil {
		t.Error("a packet to another port of the range belongs to no connection")
	}
}
