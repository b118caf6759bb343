package trace

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/oracle/sets"
)

// oneVerdict asks for each pair of endpoints by their names, over both IP versions where both
// have them, and then for the first packet of the question by its flow: verdict and drop are
// the same. Outside of a sweep it compares one pair of each pair of nodes and kind of receiver:
// the first that has such a packet.
func oneVerdict(t *testing.T, s *Session) {
	asked, skipped := map[int]int{}, 0
	met := map[string]bool{}
	for _, from := range s.names.Senders() {
		if from.Node == "" {
			continue
		}
		for _, to := range s.names.All() {
			shape := fmt.Sprint(from.Node, " ", to.Node, " ", to.Kind, " ", from.LogicalPort == to.LogicalPort)
			if met[shape] && !sweep.Whole() {
				continue
			}
			protocols := []string{"icmp", "tcp"}
			if to.Kind == names.Service {
				protocols = []string{to.Protocol}
			}
			for _, family := range []int{4, 6} {
				for _, protocol := range protocols {
					b := Between{From: from.LogicalPort, To: typed(to), Question: names.Question{Protocol: protocol, Family: family}}
					a, err := s.Ask(t.Context(), b)
					switch {
					case err != nil && !isRefused(err):
						t.Errorf("%s to %s: %v", b.From, b.To, err)
						continue
					case err != nil || !isFirst(a, protocol):
						skipped++
						continue
					}
					met[shape] = true
					asked[a.Family]++
					sameByFlow(t, s, a)
				}
			}
		}
	}
	t.Logf("by names and by flow: %d questions over IPv4, %d over IPv6; %d have no first packet", asked[4], asked[6],
		skipped)
	if least := sweep.Count(30, 6); asked[4] < least || asked[6] < least {
		t.Error("few questions were compared")
	}
}

// typed returns what finds an endpoint, and no other.
func typed(e names.Endpoint) string {
	switch {
	case e.LogicalPort != "":
		return e.LogicalPort
	case e.Port != 0:
		return netip.AddrPortFrom(e.IPs[0], e.Port).String()
	}
	return e.IPs[0].String()
}

// isRefused reports whether a question has no packet, a name several endpoints, or a load
// balancer another protocol.
func isRefused(err error) bool {
	return errors.As(err, new(*names.ProtocolError)) || errors.Is(err, names.ErrFamily) ||
		errors.Is(err, names.ErrNotBound) || errors.Is(err, names.ErrNoNode) || errors.As(err, new(*names.AmbiguousError))
}

// isFirst reports whether the answer is about a packet of the protocol, and not about a request
// for the MAC address of its next hop.
func isFirst(a *answer.Answer, protocol string) bool {
	return len(a.Path) > 0 && a.Path[0].From < 0 && strings.Contains(a.Question, ": "+protocol) &&
		!strings.Contains(a.Question, "icmpv6_type=135")
}

// sameByFlow asks for the first packet of an answer by its flow.
func sameByFlow(t *testing.T, s *Session, byNames *answer.Answer) {
	t.Helper()
	first := byNames.Path[0]
	packet := byNames.Question[strings.LastIndex(byNames.Question, ": ")+2:]
	a, err := s.Flow(t.Context(), first.Node, fmt.Sprintf("%s in_port=%s,%s", first.Bridge, first.Port, packet), 0)
	if err != nil {
		t.Errorf("%s: %v", byNames.Question, err)
		return
	}
	if forward(a) != forward(byNames) || !reflect.DeepEqual(a.Drop, byNames.Drop) || a.Family != byNames.Family ||
		a.Answered != byNames.Answered {
		t.Errorf("%s\nby names:\n%sby flow:\n%s", byNames.Question, text(byNames), text(a))
	}
}

// forward returns the verdict on the packet alone: one that arrives and is not answered arrives.
func forward(a *answer.Answer) answer.Verdict {
	if a.Verdict == answer.OneWay && a.Answered == "" {
		return answer.Reachable
	}
	return a.Verdict
}

// flowAnswers asks for packets of a set by their flows, for each once.
type flowAnswers struct {
	*Session
	asked map[int]flowAnswer
}

type flowAnswer struct {
	*answer.Answer
	ok bool
}

// of returns the answer for a packet; ok is false for one that ofproto/trace does not take as text.
func (f flowAnswers) of(t *testing.T, p *sets.Packet) (a *answer.Answer, ok bool) {
	t.Helper()
	known, asked := f.asked[p.ID]
	if !asked {
		a, err := f.Flow(t.Context(), p.Node, p.Bridge+" "+p.Flow, p.Size)
		known = flowAnswer{a, err == nil}
		f.asked[p.ID] = known
	}
	return known.Answer, known.ok
}

// asRecorded asks for the packets of a set that begin a connection, by names and by their
// flows, and compares the verdicts with each other and with what came out.
func asRecorded(t *testing.T, s *Session, recorded *sets.Set, flows flowAnswers) {
	byName, answered := map[int]int{}, 0
	for _, p := range eachShape(recorded.Packets, wayAndProtocolOf) {
		if len(p.After) > 0 || p.Established || p.Node == "fabric" {
			continue
		}
		f, err := sets.Frame(p.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		a, ok := flows.of(t, p)
		if !ok {
			continue
		}
		if isAnswered(p) {
			answered++
		}
		if (a.Answered != "") != isAnswered(p) || isAnswered(p) && a.Verdict != answer.Reachable {
			t.Errorf("packet %d (%s), which was answered: %t\n%s", p.ID, p.Shows, isAnswered(p), text(a))
		}
		b, ok := askedByNames(s, p, f.Packet)
		if !ok {
			continue
		}
		named, err := s.Ask(t.Context(), b)
		switch {
		case err != nil && !isRefused(err):
			t.Errorf("packet %d (%s): %s to %s: %v", p.ID, p.Shows, b.From, b.To, err)
			continue
		case err != nil || !isFirst(named, strings.TrimSuffix(b.Protocol, "6")):
			continue
		}
		byName[named.Family]++
		own := func(o sets.Output) bool { return o.Own && o.Role != "uplink" }
		came := slices.ContainsFunc(p.Outputs, own) || isAnswered(p)
		for way, a := range map[string]*answer.Answer{"names": named, "flow": a} {
			v := forward(a)
			switch {
			case p.Class == sets.Generated && v == answer.Undetermined: // OVN asks for the next hop
			case v == answer.Undetermined && strings.Contains(a.Missing[0], "whether it forwards the packet is not known"):
			case v == answer.Ambiguous && p.Choice && came:
			case (v == answer.Reachable) != came, v != answer.Reachable && v != answer.Unreachable:
				t.Errorf("packet %d (%s) by %s, and it came out: %t\n%s\n%s", p.ID, p.Shows, way, came, a.Question, text(a))
			}
		}
	}
	t.Logf("as recorded: %d packets over IPv4, %d over IPv6; %d were answered by OVN", byName[4], byName[6], answered)
	if byName[4] < sweep.Count(10, 5) || recorded.OVN != "" &&
		(byName[6] < sweep.Count(5, 3) || answered < sweep.Count(3, 2)) {
		t.Error("few packets were compared")
	}
}

// byFlow asks for the packets of a set by their flows, of new and of recorded connections, and
// compares the verdicts with what came out. A flow has neither the identifier of a ping nor the
// packet inside an ICMP error: the answer says what it assumes or lacks.
func byFlow(t *testing.T, recorded *sets.Set, flows flowAnswers) {
	verdicts := map[answer.Verdict]int{}
	packets := eachShape(recorded.Packets, wayAndProtocolOf)
	for _, p := range packets {
		if len(p.After) > 0 || p.Node == "fabric" || p.Class == sets.Generated {
			continue
		}
		a, ok := flows.of(t, p)
		if !ok {
			continue
		}
		v := forward(a)
		verdicts[v]++
		isIdentified := slices.ContainsFunc(a.Trust.Assumed,
			func(text string) bool { return strings.HasPrefix(text, "the packet has the ICMP identifier ") })
		switch dropped := p.Class == sets.Dropped; {
		case v == answer.Undetermined && len(a.Missing) > 0, v == answer.Ambiguous && p.Choice:
		case (v == answer.Unreachable) == dropped && (v == answer.Reachable) != dropped:
		case dropped && isIdentified:
		default:
			t.Errorf("packet %d (%s) was %s\n%s\n%s", p.ID, p.Shows, p.Class, a.Question, text(a))
		}
	}
	t.Logf("by flow: %v", verdicts)
	if verdicts[answer.Reachable] < sweep.Count(50, 10) || verdicts[answer.Unreachable] < sweep.Count(30, 10) ||
		verdicts[answer.Undetermined]*sweep.Count(20, 5) > len(packets) {
		t.Error("few packets were compared")
	}
}

// fromOutside asks for the packets of a set that a host outside sends to begin a connection, by
// the addresses as that host has them, and compares the verdicts with what came out.
func fromOutside(t *testing.T, s *Session, recorded *sets.Set) {
	asked := map[int]int{}
	for _, p := range recorded.Packets {
		if len(p.After) > 0 || p.Established || p.Node != "fabric" {
			continue
		}
		f, err := sets.Frame(p.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		b, ok := askedByNames(s, p, f.Packet)
		if !ok || strings.HasPrefix(b.To, external) {
			continue
		}
		to := b
		if b.DstPort != 0 {
			to.To, to.DstPort = netip.AddrPortFrom(netip.MustParseAddr(b.To), b.DstPort).String(), 0
		}
		for _, q := range []Between{b, to} {
			a, err := s.Ask(t.Context(), q)
			switch came := slices.ContainsFunc(p.Outputs, func(o sets.Output) bool { return o.Own && o.Role != "uplink" }) ||
				isAnswered(p); {
			case errors.Is(err, names.ErrNoEntry):
			case err != nil:
				t.Errorf("packet %d (%s): %s to %s: %v", p.ID, p.Shows, q.From, q.To, err)
			case (forward(a) == answer.Reachable) != came, (forward(a) == answer.Unreachable) == came:
				t.Errorf("packet %d (%s), and it came out: %t\n%s\n%s", p.ID, p.Shows, came, a.Question, text(a))
			default:
				asked[a.Family]++
			}
		}
	}
	t.Logf("from outside: %d questions over IPv4, %d over IPv6", asked[4], asked[6])
	if recorded.OVN != "" && asked[4] < 20 {
		t.Error("few packets were compared")
	}
}

// isAnswered reports whether an ARP reply, a neighbour advertisement or an echo reply came back
// to the sender of a packet.
func isAnswered(p *sets.Packet) bool {
	return slices.ContainsFunc(p.Outputs, func(o sets.Output) bool {
		if o.Own || o.Label != p.From {
			return false
		}
		isReply := func(field string) bool { return strings.Contains(o.Flow+",", field+",") }
		return isReply("arp_op=2") || isReply("icmp_type=0") || isReply("icmpv6_type=129") || isReply("icmpv6_type=136")
	})
}

// askedByNames returns the question with names that a recorded packet is the first packet of; ok is
// false if there is none.
func askedByNames(s *Session, p *sets.Packet, sent flow.Packet) (b Between, ok bool) {
	field := sent.Get
	number, _ := sent.Protocol()
	b.Protocol = map[uint8]string{flow.TCP: "tcp", flow.UDP: "udp", flow.SCTP: "sctp", flow.ICMP: "icmp",
		flow.ICMPv6: "icmp6"}[number]
	echo := map[string]string{"icmp": "8", "icmp6": "128"}[b.Protocol]
	if b.Protocol == "" || field("icmp_type") != echo || b.Protocol == "tcp" && field("tcp_flags") != "syn" ||
		field("nw_ttl") != "64" || field("dl_vlan") != "" || p.Size > 200 || isMulticast(field("dl_dst")) {
		return b, false
	}
	_, _ = fmt.Sscan(field("tp_src"), &b.SrcPort)
	_, _ = fmt.Sscan(field("tp_dst"), &b.DstPort)
	src, dst := field("nw_src")+field("ipv6_src"), field("nw_dst")+field("ipv6_dst")
	b.From = senderOf(s, p, field("dl_src"), src)
	b.To = dst
	if ip, err := netip.ParseAddr(dst); err != nil || ip.IsMulticast() || len(s.names.WithIP(ip)) == 0 {
		b.To = "external/" + dst
	}
	return b, b.From != ""
}

// senderOf returns the name of what sent a recorded packet, "" for a port that has another address.
func senderOf(s *Session, p *sets.Packet, mac, address string) string {
	if p.Node == "fabric" {
		return external + address
	}
	for _, e := range s.names.WithMAC(mac) {
		port, known := s.nodes[p.Node].Port(p.Port)
		if ip, err := netip.ParseAddr(address); err == nil && known && slices.Contains(e.IPs, ip) && e.LogicalPort != "" &&
			port.IfaceID == e.LogicalPort {
			return e.LogicalPort
		}
	}
	return ""
}

// vacantNextHop asks for an address that nothing in the databases has, on networks where something
// else may have it, and where nothing can.
func vacantNextHop(t *testing.T, s *Session) {
	for _, q := range []struct {
		from, to string
		verdict  answer.Verdict
		why      string
	}{
		{"vm1", "external/192.168.20.99", answer.Unreachable,
			"no port and no router of network green (192.168.20.0/24) has the address 192.168.20.99 of the next hop"},
		{"vm1", "external/fd00:20::99", answer.Unreachable,
			"no port and no router of network green (fd00:20::/64) has the address fd00:20::99 of the next hop"},
		{"vm1", "external/192.168.10.99", answer.Unreachable,
			"no port and no router of network blue (192.168.10.0/24) has the address 192.168.10.99"},
		{"vm9", "external/192.168.40.99", answer.Undetermined,
			"from compute1 to network grey (192.168.40.0/24): an ARP request for the next hop 192.168.40.99"}, // ports with the address unknown
		{"vm9", "external/192.168.30.99", answer.Undetermined,
			"no port and no router in the databases has the address 192.168.30.99"},
		{"vm1", "external/172.24.4.99", answer.Undetermined,
			"from compute1 to network public (172.24.4.0/24): an ARP request for the next hop 172.24.4.99"}, // a physical network
		{"vm1", "vm11", answer.Unreachable, "is bound to no chassis"},
	} {
		a, err := s.Ask(t.Context(), Between{From: q.from, To: q.to, Question: names.Question{Protocol: "icmp"}})
		if err != nil || a.Verdict != q.verdict || !strings.Contains(text(a), q.why) {
			t.Errorf("%s to %s, %s expected: %v\n%s", q.from, q.to, q.verdict, err, text(a))
		}
	}
}

// knownOutside asks for addresses of OVN as if they were outside: they are asked as what they
// are.
func knownOutside(t *testing.T, s *Session) {
	for to, want := range map[string]string{
		"172.24.4.21":     "ACL",                                  // a floating IP, whose security group admits no ping
		"172.24.4.40:443": "arrives at vm2",                       // a VIP
		"172.24.4.10":     "answered by router port lrp-e184c1ab", // of the router
	} {
		b := Between{From: "vm4", To: external + to}
		a, err := s.Ask(t.Context(), b)
		if err != nil || !strings.Contains(text(a), want) ||
			!strings.Contains(strings.Join(a.Trust.Assumed, ""), "in the databases, and is asked as that") {
			t.Errorf("%s: %v\n%s", b.To, err, text(a))
		}
	}
	_, err := s.Ask(t.Context(), Between{From: "vm1", To: "192.168.20.99"})
	if err == nil || strings.Contains(err.Error(), external) ||
		!strings.Contains(err.Error(), "which is in network green (192.168.20.0/24)") {
		t.Errorf("an unused address of a logical network: %v", err)
	}
	if _, err = s.Ask(t.Context(), Between{From: "vm1", To: "8.8.8.8"}); err == nil ||
		!strings.Contains(err.Error(), "external/8.8.8.8") {
		t.Errorf("an address outside: %v", err)
	}
}

// localPort asks about a packet that enters by a bridge's own port, in each way in which
// ofproto/trace takes its name.
func localPort(t *testing.T, s *Session) {
	for _, in := range []string{"br-ex", "65534", "LOCAL", "local"} {
		const packet = ",icmp,dl_src=02:00:00:00:00:09,dl_dst=fa:16:3e:aa:00:10,nw_src=172.24.4.9,nw_dst=172.24.4.22,nw_ttl=64,icmp_type=8,icmp_code=0"
		a, err := s.Flow(t.Context(), "gateway", "br-ex in_port="+in+packet, 0)
		if err != nil || a.Verdict != answer.Reachable || a.Path[0].Port != "br-ex" {
			t.Errorf("in_port=%s: %v\n%s", in, err, text(a))
		}
	}
}
