// Package prove answers whether any packet of an endpoint gets to another one, and which ones do. It computes that from the recorded flows, and
// asks the replicas about packets of each set that it finds: what the two do not agree about is undetermined.
package prove

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/answer/prove/symbolic"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/bdd"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/snapshot/names"
)

// Verdict is the first word of a proof.
type Verdict string

// The verdicts.
const (
	Impossible   Verdict = "IMPOSSIBLE"
	Possible     Verdict = "POSSIBLE"
	Undetermined Verdict = "UNDETERMINED"
)

// Proof is what gets from an endpoint to another one.
type Proof struct {
	Question string   `json:"question"`
	Verdict  Verdict  `json:"verdict"`
	Families []Family `json:"families"`
	// Missing says why the verdict is undetermined.
	Missing []string `json:"missing,omitempty"`
	Assumed []string `json:"assumed"`
	// Asked is the number of packets about which the replicas had an answer, and Disagree the packets whose end is another one than the flows say.
	Asked    int      `json:"asked"`
	Disagree []string `json:"disagree,omitempty"`
	// NotWitnessed says why no replica has confirmed the verdict, which rests on the recorded flows alone; "" where one has.
	NotWitnessed string `json:"not_witnessed,omitempty"`
	// Node and Bridge are where the packets enter, by the port InPort.
	Node   string `json:"node"`
	Bridge string `json:"bridge"`
	InPort int    `json:"in_port"`

	own   []string                    // the addresses of the sender
	known func(address string) string // what is known of an address
}

// Family is what gets there of one kind of packets.
type Family struct {
	Name    string    `json:"name"` // IPv4, IPv6 or ARP
	Packets []Packets `json:"packets"`
	More    bool      `json:"more,omitempty"` // there are more sets, which are smaller
}

// question is a question while it is answered.
type question struct {
	*prover
	from   *host.Port
	fromOn string
	names  names.Question
	proof  *Proof
	random *rand.Rand
}

const (
	mostSets      = 10 // that are listed of a family
	setsAsked     = 40 // of a family, of which packets are asked
	packetsOfSet  = 3
	packetsBeside = 30 // that are asked of those that do not get there, in each family
	packetsNear   = 30 // that are asked of those that differ in a field from the packet that trace follows
)

// prove proves what a sender gets to the target.
func (p *prover) prove(ctx context.Context, from names.Endpoint) (*Proof, error) {
	q := &question{prover: p, names: p.question, random: rand.New(rand.NewPCG(1, 1))}
	q.names.From = from
	var err error
	if q.fromOn, q.from, err = p.session.Attached(from); err != nil {
		return nil, err
	}
	q.proof = &Proof{Question: fmt.Sprintf("%s -> %s", from.Name, p.target()), Assumed: []string{}, Families: []Family{}, Node: q.fromOn, Bridge: q.from.Bridge, InPort: q.from.Number,
		own: ownOf(from), known: holderOf(p.session.Names())}
	for _, family := range []symbolic.Family{symbolic.IPv4, symbolic.IPv6, symbolic.ARP} {
		wanted, ok := wantedOf(family, p.question)
		if !ok || p.question.Family != 0 && p.question.Family != familyNumber(family) {
			continue
		}
		p.fabric.wanted = wanted
		switch err := q.proveFamily(ctx, family); {
		case errors.Is(err, bdd.ErrTooLarge):
			q.proof.Missing = append(q.proof.Missing, fmt.Sprintf("%s: %v", family, err))
		case err != nil:
			return nil, fmt.Errorf("%s: %w", family, err)
		}
	}
	q.judge()
	return q.proof, nil
}

// linkLocal returns the link-local address that a host makes of its MAC address (RFC 4291, appendix A).
func linkLocal(text string) netip.Addr {
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 {
		return netip.Addr{}
	}
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5]})
}

// holderOf returns the function that names the holder of an address, if it has only one, or the service of several ports.
func holderOf(all *names.Names) func(address string) string {
	return func(address string) string {
		holders := all.WithMAC(address)
		if ip, err := netip.ParseAddr(address); err == nil {
			holders = all.WithIP(ip)
		}
		found := map[string]bool{}
		for _, holder := range holders {
			name := holder.Name
			if at := strings.LastIndexByte(name, ':'); holder.Kind == names.Service && at > 0 && len(holders) > 1 {
				name = name[:at]
			}
			found[name] = true
		}
		for name := range found {
			if len(found) == 1 && name != address {
				return name
			}
		}
		return ""
	}
}

func familyNumber(family symbolic.Family) int {
	return map[symbolic.Family]int{symbolic.IPv4: 4, symbolic.IPv6: 6}[family]
}

// wantedOf returns the fields of the packets that count where they arrive; ok is false if none of a family does.
func wantedOf(family symbolic.Family, asked names.Question) (wanted map[string]string, ok bool) {
	protocol, port := asked.Protocol, asked.DstPort
	if port == 0 && protocol == "" {
		return nil, true
	}
	for _, ip := range asked.To.IPs {
		field := "nw_dst"
		if ip.Is6() {
			field = "ipv6_dst"
		}
		if ip.Is6() != (family == symbolic.IPv6) || family == symbolic.ARP {
			continue
		}
		wanted = map[string]string{field: ip.String(), "nw_proto": "6"}
		switch protocol {
		case "udp":
			wanted["nw_proto"] = "17"
		case "sctp":
			wanted["nw_proto"] = "132"
		case "icmp", "icmp6":
			wanted["nw_proto"] = map[symbolic.Family]string{symbolic.IPv4: "1", symbolic.IPv6: "58"}[family]
		}
		if port != 0 {
			wanted["tp_dst"] = fmt.Sprint(port)
		}
		return wanted, true
	}
	return nil, false
}

// followed returns the packets that are followed, by what conntrack finds for them: whole ones, if they open a connection of TCP those with SYN alone, and
// of ICMP echo requests.
func followed(m *symbolic.Machine, family symbolic.Family, found symbolic.Tracking) (bdd.Set, error) {
	space, set := m.Space(), m.Valid()
	imply := func(condition, then map[string]string) error {
		a, err := where(m, condition)
		if err != nil {
			return err
		}
		b, err := where(m, then)
		set = space.And(set, space.Or(space.Not(a), b))
		return err
	}
	if family == symbolic.ARP {
		return set, nil
	}
	icmp, request, failures := "1", "8", []string{"3", "4", "5", "11", "12"}
	if family == symbolic.IPv6 {
		icmp, request, failures = "58", "128", []string{"1", "2", "3", "4"}
	}
	if err := imply(nil, map[string]string{"nw_frag": "no"}); err != nil {
		return bdd.None, err
	}
	if found.State == nil && found.Recorded == nil {
		if err := imply(map[string]string{"nw_proto": "6"}, map[string]string{"tcp_flags": "0x2"}); err != nil {
			return bdd.None, err
		}
		err := imply(map[string]string{"nw_proto": icmp}, map[string]string{"icmp_type": request, "icmp_code": "0"})
		return set, err
	}
	if found.State != nil {
		err := imply(map[string]string{"nw_proto": "6"}, map[string]string{"tcp_flags": "+ack-syn-fin-rst"})
		return set, err
	}
	left := []map[string]string{{"nw_proto": "6", "tcp_flags": "0"}} // trace takes these as those that come next
	for _, kind := range failures {
		left = append(left, map[string]string{"nw_proto": icmp, "icmp_type": kind})
	}
	for _, fields := range left {
		out, err := where(m, fields)
		if err != nil {
			return bdd.None, err
		}
		set = space.Without(set, out)
	}
	return set, nil
}

// recordedBy returns the function that returns the recorded connections of a node.
func recordedBy(session *trace.Session) func(node string) conntrack.Tracker {
	return func(node string) (recorded conntrack.Tracker) {
		for _, n := range session.Nodes() {
			if n.Name == node {
				recorded = n.Conntrack
			}
		}
		return recorded
	}
}

// trackingOf returns what conntrack finds for packets in a session, and what that assumes.
func trackingOf(session *trace.Session) (found symbolic.Tracking, assumed string) {
	isNew, states := session.Connections()
	switch {
	case isNew:
		return found, "packets that open a connection, in whole frames: of TCP those with SYN alone, of ICMP echo requests"
	case len(states) > 0:
		found.State = &states[0]
		return found, fmt.Sprintf("packets in whole frames that conntrack finds %s in each zone, of TCP those with ACK and without SYN, FIN and RST; the connections have no mark, no label and no translated addresses", found.State)
	}
	found.Recorded = recordedBy(session)
	return found, "packets in whole frames: what belongs to no recorded connection may open one; ICMP errors, which belong to the connection of the packet in them, are left out"
}

func where(m *symbolic.Machine, fields map[string]string) (bdd.Set, error) {
	set := bdd.All
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		one, err := m.Where(name, fields[name])
		if err != nil {
			return bdd.None, err
		}
		set = m.Space().And(set, one)
	}
	return set, nil
}

// proveFamily computes what gets there of a family, and asks the replicas.
func (q *question) proveFamily(ctx context.Context, family symbolic.Family) error {
	m, err := q.machine(family)
	if err != nil {
		return err
	}
	begin, err := followed(m, family, q.tracking)
	if err != nil {
		return err
	}
	if protocol := q.fabric.wanted["nw_proto"]; protocol != "" { // which no action changes
		of, err := m.Where("nw_proto", protocol)
		if err != nil {
			return err
		}
		begin = m.Space().And(begin, of)
	}
	result, err := m.Run(ctx, symbolic.Place{Node: q.fromOn, Bridge: q.from.Bridge}, q.from.Number, begin)
	if err != nil {
		return err
	}
	reached := result.Ends[arrived]
	found := Family{Name: family.String(), Packets: []Packets{}}
	for _, certain := range []bool{true, false} {
		set := reached.Must
		if !certain {
			set = m.Space().Without(reached.May, reached.Must)
		}
		list, more := divide(m, set, setsAsked)
		for i := range list {
			list[i].Certain = certain
			if err := q.ask(ctx, m, &list[i]); err != nil {
				return err
			}
		}
		found.Packets = append(found.Packets, list[:min(len(list), mostSets)]...)
		found.More = found.More || more || len(list) > mostSets
	}
	q.proof.Families = append(q.proof.Families, found)
	q.note(result)
	if err := q.askNear(ctx, m, begin, reached); err != nil {
		return err
	}
	return q.askBeside(ctx, m, m.Space().Without(begin, reached.May))
}

// note notes what was assumed, and what is not known.
func (q *question) note(result *symbolic.Result) {
	add := func(list *[]string, text string) {
		if !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	add(&q.proof.Assumed, q.assumed)
	for _, text := range result.Assumed {
		add(&q.proof.Assumed, text)
	}
	for _, why := range slices.Sorted(maps.Keys(result.Unknown)) {
		add(&q.proof.Missing, why)
	}
	for _, end := range slices.Sorted(maps.Keys(result.Ends)) {
		if strings.HasPrefix(end, "the kernel") || strings.HasPrefix(end, "the node with") {
			add(&q.proof.Missing, "what "+end+", does with the packets that get there")
		} else if strings.HasPrefix(end, "the physical network") {
			add(&q.proof.Assumed, "nothing outside of the collected nodes sends packets back that it gets by "+end)
		}
	}
}

// ask asks the replicas about packets of a set.
func (q *question) ask(ctx context.Context, m *symbolic.Machine, of *Packets) error {
	for range packetsOfSet {
		text := witness(m, of.set, q.random)
		got, known, err := q.arrives(ctx, text)
		switch {
		case err != nil:
			return err
		case known && of.Certain && !got:
			q.proof.Disagree = append(q.proof.Disagree, text)
		}
		if known && (of.Witness == "" || got && !of.Arrived) {
			of.Witness, of.Arrived = text, got
		}
	}
	return nil
}

// askBeside asks the replicas about packets that do not get there.
func (q *question) askBeside(ctx context.Context, m *symbolic.Machine, set bdd.Set) error {
	for range packetsBeside {
		if set == bdd.None {
			return nil
		}
		text := witness(m, set, q.random)
		got, _, err := q.arrives(ctx, text)
		if err != nil {
			return err
		}
		if got {
			q.proof.Disagree = append(q.proof.Disagree, text)
		}
	}
	return nil
}

// askNear asks the replicas about the packet that trace follows, and about packets that differ from it in one field: random ones hardly ever
// get anywhere.
func (q *question) askNear(ctx context.Context, m *symbolic.Machine, begin bdd.Set, reached symbolic.Reached) error {
	first, err := q.session.Names().First(q.names)
	if err != nil || symbolic.Family(etherTypeOf(first.Family)) != m.Family() {
		return nil // there is no such packet
	}
	packet, err := flow.Parse(first.Flow)
	if err != nil {
		return fmt.Errorf("packet %s: %w", first.Flow, err)
	}
	packet.Delete("in_port", "tcp_flags")
	set, err := setOf(m, packet)
	if err != nil {
		return err
	}
	for i := range packetsNear {
		near := set
		if i > 0 {
			near = m.Vary(set, m.Fields()[i%len(m.Fields())])
		}
		if near = m.Space().And(near, begin); near == bdd.None {
			continue
		}
		text := witness(m, near, q.random)
		got, known, err := q.arrives(ctx, text)
		if err != nil {
			return err
		}
		packet, err := flow.Parse(text)
		if err != nil {
			return fmt.Errorf("packet %s: %w", text, err)
		}
		asked, err := setOf(m, packet)
		if err != nil {
			return err
		}
		must, may := m.Space().And(asked, reached.Must) != bdd.None, m.Space().And(asked, reached.May) != bdd.None
		if known && (got && !may || !got && must) {
			q.proof.Disagree = append(q.proof.Disagree, text)
		}
	}
	return nil
}

func etherTypeOf(family int) uint16 {
	return map[int]uint16{4: flow.IPv4, 6: flow.IPv6}[family]
}

// setOf returns the set of one packet. Fields that its text does not have are 0.
func setOf(m *symbolic.Machine, packet flow.Packet) (bdd.Set, error) {
	fields := map[string]string{}
	for _, f := range packet.Fields() {
		if _, proto, ok := openflow.Protocol(f.Name); ok {
			fields["nw_proto"] = fmt.Sprint(proto)
		} else if f.Value != "" {
			fields[f.Name] = f.Value
		}
	}
	if tos, ok := fields["nw_tos"]; ok { // the other two bits are nw_ecn
		fields["nw_tos"] = tos + "/0xfc"
	}
	if proto, ok := packet.Protocol(); ok {
		fields["nw_proto"] = fmt.Sprint(proto)
		if flags := fields["tcp_flags"]; proto == flow.TCP && flags == "" {
			fields["tcp_flags"] = "0x2"
		} else if proto == flow.TCP && !strings.HasPrefix(flags, "0x") {
			fields["tcp_flags"] = "+" + strings.ReplaceAll(flags, "|", "+")
		}
	}
	return m.Packet(fields)
}

// arrives asks the replicas whether a packet of the sender gets to the target; known is false if they have no answer.
func (q *question) arrives(ctx context.Context, text string) (got, known bool, err error) {
	if slices.Contains(q.down(), q.fromOn) {
		return false, false, nil
	}
	a, err := q.session.Flow(ctx, q.fromOn, fmt.Sprintf("%s in_port=%d,%s", q.from.Bridge, q.from.Number, text), 0)
	if err != nil {
		return false, false, fmt.Errorf("packet %s: %w", text, err)
	}
	for _, outcome := range a.Outcomes {
		if outcome.Node == q.fabric.targetOn && outcome.Bridge == q.fabric.target.Bridge && outcome.Port == q.fabric.target.Name && q.counts(outcome) {
			got = true
		}
	}
	if known = got || a.Verdict != answer.Undetermined; known {
		q.proof.Asked++
	}
	return got, known, nil
}

// counts reports whether a packet that came out at the target has the fields that are wanted there.
func (q *question) counts(outcome answer.Outcome) bool {
	packet, err := flow.Parse(outcome.Packet)
	if err != nil {
		return false
	}
	for name, value := range q.fabric.wanted {
		got := packet.Get(name)
		if name == "nw_proto" {
			number, _ := packet.Protocol()
			got = fmt.Sprint(number)
		}
		if !openflow.Fits(name, value, got) {
			return false
		}
	}
	return true
}

// judge writes the verdict.
func (q *question) judge() {
	p := q.proof
	possible, certain, maybe := false, false, false
	for _, family := range p.Families {
		for _, set := range family.Packets {
			possible, certain, maybe = possible || set.Arrived, certain || set.Certain, maybe || !set.Arrived
		}
	}
	down := q.down()
	if len(down) > 0 && !possible {
		p.NotWitnessed = "no replica is running of " + phrase.FirstNames(down)
	}
	switch {
	case len(p.Disagree) > 0:
		p.Verdict = Undetermined
		p.Missing = append([]string{"the replicas do not agree about: " + p.Disagree[0]}, p.Missing...)
	case possible, certain && len(down) > 0:
		p.Verdict = Possible
	case certain:
		p.Verdict = Undetermined
		p.Missing = append([]string{"by the flows packets get there, and the replicas have no answer about those that were asked"}, p.Missing...)
	case maybe:
		p.Verdict = Undetermined
		p.Missing = append([]string{"packets may get there by a choice that the flows leave open, and none that was asked did"}, p.Missing...)
	case len(p.Missing) > 0:
		p.Verdict = Undetermined
	default:
		p.Verdict = Impossible
	}
}

// down returns the names of the nodes whose replicas can't be asked.
func (q *question) down() (nodes []string) {
	for _, down := range q.session.Unavailable() {
		nodes = append(nodes, down.Node)
	}
	return nodes
}
