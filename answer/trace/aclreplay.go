package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/snapshot/names"
)

// Replayed is a logged packet, and whether the flows explain the verdict in the log.
type Replayed struct {
	*Logged
	From   string `json:"from,omitempty"` // who sent it, as far as the databases show it
	Result string `json:"result"`         // Agrees, Differs or Unexplained
	Why    string `json:"why"`
	// Answer is about the packet from its sender on; nil if it could not be followed.
	Answer *answer.Answer `json:"answer,omitempty"`
}

// The results of Replayed.
const (
	Agrees      = "agrees"
	Differs     = "differs"
	Unexplained = "undetermined"
)

// Replay follows logged packets, several at once, and yields the results in their order. Unless the session has
// the states of connections, a packet is tried as one that opens a connection, and where it may be one
// of an open connection as that.
func (s *Session) Replay(ctx context.Context, packets []*Logged) iter.Seq[Replayed] {
	return askInOrder(ctx, slices.Values(packets), s.replay)
}

func (s *Session) replay(ctx context.Context, logged *Logged) Replayed {
	replayed := Replayed{Logged: logged, Result: Unexplained}
	from, start, err := s.senderOf(logged)
	replayed.From = from.Name
	if err != nil {
		replayed.Why = err.Error()
		return replayed
	}
	for _, state := range s.statesOf(logged.packet) {
		start.Assumed = state
		asked, err := s.askUndisturbed(func() (*answer.Answer, error) {
			asked := s.inquire(from.Name+": "+start.Packet.Input(), isDelivered)
			return asked.answer, asked.follow(ctx, start)
		})
		if err != nil {
			replayed.Why = cmp.Or(replayed.Why, err.Error())
			continue
		}
		result, why := logged.judge(asked)
		if replayed.Answer == nil || result == Agrees {
			replayed.Answer, replayed.Result, replayed.Why = asked, result, why
		}
		if result == Agrees {
			break
		}
	}
	if replayed.Result == Differs && logged.Name != "" && !s.hasACL(logged.Name) {
		replayed.Why = "no ACL has this name; " + replayed.Why
	}
	return replayed
}

// hasACL reports whether a northbound database has an ACL with a name.
func (s *Session) hasACL(name string) bool {
	for _, db := range s.Northbound() {
		for row, err := range db.Rows("ACL", "name") {
			if err == nil && row.String("name") == name {
				return true
			}
		}
	}
	return false
}

// statesOf returns the states that the connection of a logged packet may have had, the likeliest first; nil
// stands for what conntrack finds, and for a new connection if the session takes all as new.
func (s *Session) statesOf(packet flow.Packet) []*conntrack.Flags {
	open := []*conntrack.Flags{{Est: true}, {Est: true, Rpl: true}}
	number, _ := packet.Protocol()
	flags := strings.Split(packet.Get("tcp_flags"), "|")
	switch opens := slices.Contains(flags, "syn") && !slices.Contains(flags, "ack"); {
	case !s.options.New, number == flow.TCP && opens:
		return []*conntrack.Flags{nil}
	case number == flow.TCP:
		return append(open, nil)
	}
	return append([]*conntrack.Flags{nil}, open...)
}

// senderOf returns who sent a logged packet, and where and how it began. A packet whose source MAC address is
// that of a port of a switch began there as it was logged; another one came through a router, or from outside.
func (s *Session) senderOf(logged *Logged) (from names.Endpoint, start follow.Start, err error) {
	packet := logged.packet
	src, dst, isIP := packet.Addresses()
	sends := func(e names.Endpoint) bool { return e.LogicalPort != "" && e.Kind != names.RouterPort && e.Node != "" }
	senders := slices.DeleteFunc(s.names.WithMAC(packet.Get("dl_src")), func(e names.Endpoint) bool { return !sends(e) })
	if len(senders) > 1 && isIP {
		if own := slices.DeleteFunc(slices.Clone(senders), func(e names.Endpoint) bool { return !slices.Contains(e.IPs, src) }); len(own) > 0 {
			senders = own
		}
	}
	switch {
	case len(senders) == 1:
		tap, err := s.tapOf(senders[0])
		if err != nil {
			return senders[0], start, err
		}
		return senders[0], follow.Start{Node: tap.node.Name, InPort: tap.port.Name, Packet: tap.addTag(packet)}, nil
	case len(senders) > 1:
		return from, start, fmt.Errorf("%d ports have its MAC address %s", len(senders), packet.Get("dl_src"))
	case !isIP:
		return from, start, fmt.Errorf("no port of the nodes has its MAC address %s", packet.Get("dl_src"))
	}
	return s.routed(packet, src, dst)
}

// errAnswer is the error for a packet that answers another one: its way depends on that.
var errAnswer = errors.New("it came through a router, and is no request: its way depends on the packet that it answers")

// routed returns who sent a packet that came through a router, and the packet as it was before.
func (s *Session) routed(packet flow.Packet, src, dst netip.Addr) (from names.Endpoint, start follow.Start, err error) {
	if from, err = s.holderOf(src, ""); err != nil {
		return from, start, err
	}
	to, err := s.holderOf(dst, packet.Get("dl_dst"))
	if err != nil {
		return from, start, err
	}
	number, _ := packet.Protocol()
	question := names.Question{From: from, To: to, Family: familyOf(packet), SrcPort: uint16(port(packet, "tp_src")), DstPort: uint16(port(packet, "tp_dst"))}
	question.Protocol = map[uint8]string{flow.TCP: "tcp", flow.UDP: "udp", flow.SCTP: "sctp", flow.ICMP: "icmp", flow.ICMPv6: "icmp6"}[number]
	kind := cmp.Or(packet.Get("icmp_type"), packet.Get("icmpv6_type"))
	switch {
	case question.Protocol == "":
		return from, start, fmt.Errorf("it came through a router, and its protocol is %d", number)
	case kind != "" && kind != "8" && kind != "128":
		return from, start, errAnswer
	}
	first, err := s.names.First(question)
	if err != nil {
		return from, start, err
	}
	if first.Unresolved.IsValid() {
		return from, start, fmt.Errorf("nothing in the databases has the address %s", first.Unresolved)
	}
	if start, err = s.start(first, 0); err == nil && packet.Has("tcp_flags") {
		start.Packet.Set("tcp_flags", packet.Get("tcp_flags"))
	}
	return from, start, err
}

// holderOf returns the endpoint with an address, and with a MAC address if one of them has it; or the address as
// one outside.
func (s *Session) holderOf(ip netip.Addr, mac string) (names.Endpoint, error) {
	holders := slices.DeleteFunc(s.names.WithIP(ip), func(e names.Endpoint) bool { return e.LogicalPort == "" || e.Kind == names.RouterPort })
	if own := slices.DeleteFunc(slices.Clone(holders), func(e names.Endpoint) bool { return e.MAC != mac }); len(own) > 0 {
		holders = own
	}
	switch len(holders) {
	case 0:
		return s.names.Find(external+ip.String(), names.Filter{})
	case 1:
		holder := holders[0]
		holder.IPs = []netip.Addr{ip}
		return holder, nil
	}
	return names.Endpoint{}, fmt.Errorf("%d ports have the address %s", len(holders), ip)
}

// judge compares the verdict in the log with the ACLs that a packet met on its way.
func (l *Logged) judge(of *answer.Answer) (result, why string) {
	var others []string
	for stage := range aclsOf(of) {
		acl := stage.ACL
		isOther := l.Direction != "" && acl.Direction != l.Direction || l.Name != "" && acl.Name != l.Name
		switch {
		case !isOther && verdictOf(acl.Action) == l.Verdict:
			return Agrees, stage.Named()
		case !isOther:
			others = append(others, fmt.Sprintf("%s has the action %s", stage.Named(), acl.Action))
		default:
			others = append(others, "the packet meets "+stage.Named())
		}
	}
	if of.Verdict == answer.Undetermined {
		return Unexplained, strings.Join(append(slices.Clone(of.Missing), others...), "; ")
	}
	text := strings.Join(slices.Compact(others), "; ")
	return Differs, cmp.Or(text, "the packet meets no ACL") + ": " + describeResult(of, "")
}

// aclsOf yields the stages of an answer that carry out ACLs.
func aclsOf(of *answer.Answer) iter.Seq[*answer.Stage] {
	return func(yield func(*answer.Stage) bool) {
		for i := range of.Path {
			for j := range of.Path[i].Stages {
				if stage := &of.Path[i].Stages[j]; stage.ACL != nil && !yield(stage) {
					return
				}
			}
		}
		if of.Drop != nil && of.Drop.ACL != nil {
			yield(&of.Drop.Stage)
		}
	}
}

// verdictOf returns the verdict that OVN logs for the action of an ACL.
func verdictOf(action string) string {
	if strings.HasPrefix(action, "allow") {
		return "allow"
	}
	return action
}

// Text returns the result in lines for people: of at most width columns, or of any length for 0.
func (r Replayed) Text(width int) string {
	name := "an ACL without a name"
	if r.Name != "" {
		name = "ACL " + r.Name
	}
	const indent = "       "
	var text strings.Builder
	for i, line := range []string{
		fmt.Sprintf("%s: %s by %s, %s", cmp.Or(r.From, "from an unknown sender"), r.Verdict, name, cmp.Or(r.Direction, "direction not logged")),
		r.packet.Words(), r.Result + ": " + r.Why,
	} {
		parts := []string{terminal.Escape(line)}
		if width > len(indent) {
			parts = show.Wrap(parts[0], width-len(indent))
		}
		first := indent
		if i == 0 {
			first = fmt.Sprintf("%5d  ", r.Lines)
		}
		text.WriteString(first + strings.Join(parts, "\n"+indent) + "\n")
	}
	return text.String()
}
