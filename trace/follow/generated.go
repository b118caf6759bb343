package follow

import (
	"fmt"
	"strconv"
	"strings"

	"ovs-offline/trace/conntrack"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/odp"
	"ovs-offline/trace/pass"
)

// Answer is what the controller or ovs-vswitchd makes of a packet.
type Answer struct {
	// Name describes it: "an ICMP error: TTL exceeded", "a TCP reset".
	Name string
	// To is the address that it is sent to, the packet's source; "" if it is not an answer
	// to the sender.
	To string
	// Userdata is what OVN gave its controller, in hexadecimal joined by dots.
	Userdata string
	// Asks reports that OVN asks for the MAC address of the next hop: what becomes of the
	// packet depends on the answer.
	Asks bool
	// Waits reports that the pipeline goes on only with the controller's answer.
	Waits bool
}

// operation is an action of ovn-controller on a packet that it receives (OVN's
// include/ovn/actions.h, enum action_opcode).
type operation struct {
	answer string // what it makes
	back   bool   // the sender of the packet receives it
	copies bool   // ovn-controller takes a copy, and the packet goes on
	asks   bool   // it asks for the MAC address of the next hop
}

func operations() []operation {
	return []operation{
		{answer: "an ARP request for the next hop", asks: true},
		{answer: "an entry of the MAC bindings", copies: true},
		{answer: "a DHCP answer", back: true},
		{answer: "a neighbour advertisement", back: true},
		{answer: "an entry of the MAC bindings", copies: true},
		{answer: "a DHCPv6 answer", back: true},
		{answer: "a DNS answer", back: true},
		{answer: "a line of the ACL log", copies: true},
		{answer: "a router advertisement", back: true},
		{answer: "a neighbour solicitation for the next hop", asks: true},
		{answer: icmpError, back: true},
		{answer: "a TCP reset", back: true},
		{answer: "a neighbour advertisement of a router", back: true},
		{answer: icmpError, back: true},
		{answer: icmpError, back: true},
		{answer: "an event", copies: true},
		{answer: "an entry of the multicast groups", copies: true},
		{answer: "the binding of a virtual port", copies: true},
		{answer: "the state of a load balancer's backend"},
		{answer: "a DHCPv6 prefix delegation"},
		{answer: icmpError, back: true},
		{answer: icmpError, back: true},
		{answer: "a reject", back: true},
		{answer: "the state of a BFD session"},
		{answer: "an SCTP abort", back: true},
		{answer: "an entry of the FDB", copies: true},
		{answer: "the activation of a port"},
	}
}

const icmpError = "an ICMP error"

// operationOf returns what OVN does for a controller action.
func operationOf(userdata string) operation {
	first := strings.Split(userdata, ".")
	if len(first) < 4 {
		return operation{answer: "a message to the controller"}
	}
	code, err := strconv.ParseUint(strings.Join(first[:4], ""), 16, 32)
	if table := operations(); err == nil && code < uint64(len(table)) {
		return table[code]
	}
	return operation{answer: fmt.Sprintf("action %d of ovn-controller", code)}
}

// answerTo returns what OVN makes of a packet; ok is false if it makes nothing of this
// one.
func answerTo(p flow.Packet, userdata string, waits bool) (a Answer, op operation, ok bool) {
	op = operationOf(userdata)
	a = Answer{Name: op.answer, Userdata: userdata, Asks: op.asks, Waits: waits}
	t, _ := conntrack.TupleOf(p, 0)
	if op.back && t.Src.IsValid() {
		a.To = t.Src.String()
	}
	switch op.answer {
	case icmpError:
		a.Name = errorOf(userdata)
	case "a reject":
		a.Name, ok = rejectOf(p, t)
		return a, op, ok
	}
	return a, op, true
}

// rejectOf returns what OVN makes of a packet that an ACL rejects (OVN's
// controller/pinctrl.c, pinctrl_handle_reject): nothing for a TCP reset and for an ICMP
// error.
func rejectOf(p flow.Packet, t conntrack.Tuple) (name string, ok bool) {
	switch t.Proto {
	case flow.TCP:
		return "a TCP reset", !strings.Contains(p.Get("tcp_flags"), "rst")
	case flow.SCTP:
		return "an SCTP abort", true
	case flow.UDP:
		return icmpError + ": port unreachable", true
	case flow.ICMP:
		return icmpError + ": host unreachable", t.SrcPort != 3
	case flow.ICMPv6:
		return icmpError + ": address unreachable", t.SrcPort != 1
	}
	return icmpError + ": host unreachable", true
}

// errorOf names the ICMP error that OVN's controller makes. The actions after the
// operation set its type and code (OpenFlow's icmpv4_type and so on).
func errorOf(userdata string) string {
	kind, code := byteAfter(userdata, "80.00.26.01."), byteAfter(userdata, "80.00.28.01.")
	if kind < 0 {
		kind, code = byteAfter(userdata, "80.00.3a.01."), byteAfter(userdata, "80.00.3c.01.")
	}
	names := map[[2]int]string{{11, 0}: "TTL exceeded", {3, 0}: "network unreachable", {3, 1}: "host unreachable", {3, 2}: "protocol unreachable", {3, 3}: "port unreachable", {3, 4}: "fragmentation needed", {1, 0}: "no route", {1, 3}: "address unreachable", {1, 4}: "port unreachable", {2, 0}: "packet too big"}
	if strings.Contains(userdata, "80.00.3a.01.") {
		names[[2]int{3, 0}] = "hop limit exceeded"
	}
	if kind < 0 { // what ovn-controller fills in
		kind, code = 3, 1
	}
	if name := names[[2]int{kind, max(code, 0)}]; name != "" {
		return icmpError + ": " + name
	}
	return fmt.Sprintf("%s of type %d and code %d", icmpError, kind, code)
}

// byteAfter returns the byte after a sequence of bytes, -1 if there is none.
func byteAfter(userdata, sequence string) int {
	_, rest, found := strings.Cut(userdata, sequence)
	if !found || len(rest) < 2 {
		return -1
	}
	n, err := strconv.ParseUint(rest[:2], 16, 8)
	if err != nil {
		return -1
	}
	return int(n)
}

// The reasons of a message to a controller (OpenFlow, OFPR_*).
const invalidTTL = 2

// userspace handles a copy that goes to ovs-vswitchd.
func (s *step) userspace(a odp.Userspace, f frame) {
	switch {
	case a.SlowPath:
		s.add(Branch{Kind: Generated, Why: "ovs-vswitchd handles the packet itself", Answer: &Answer{Name: "ovs-vswitchd's own handling"}}, f)
	case !a.Controller:
		s.add(Branch{Kind: Copied, Why: "a sample for a monitor"}, f)
	case a.Reason == invalidTTL:
		b := Branch{Kind: Dropped, Why: "the TTL has expired"}
		b.Stage = s.stageOf(a.Cookie)
		s.add(b, f)
	default:
		s.controller(s.controllerOf(a), f)
	}
}

// stageOf returns the last stage with a cookie, nil for none.
func (s *step) stageOf(cookie uint64) *pass.Stage {
	stages := s.hop.Pass.Stages
	for i := len(stages) - 1; i >= 0; i-- {
		if stages[i].Cookie == cookie {
			return &stages[i]
		}
	}
	return nil
}

// controllerOf returns the controller action of the flow with a cookie that the next
// userspace action with this cookie carries out. A flow may have several, as that of an ACL
// that logs and rejects: their userspace actions come in the same order. One for which the
// pipeline waits has none in a trace.
func (s *step) controllerOf(a odp.Userspace) pass.Controller {
	var of, restored []pass.Controller
	for _, c := range s.hop.Pass.Controllers() {
		switch {
		case c.Stage < 0:
			restored = append(restored, c) // the flow of a restored action is not shown
		case s.hop.Pass.Stages[c.Stage].Cookie == a.Cookie && c.Pause == a.Continuation:
			of = append(of, c)
		}
	}
	if len(of) == 0 {
		of = restored
	}
	if len(of) == 0 {
		return pass.Controller{Stage: -1}
	}
	if s.controllers == nil {
		s.controllers = map[uint64]int{}
	}
	next := s.controllers[a.Cookie]
	s.controllers[a.Cookie]++
	return of[min(next, len(of)-1)]
}

// controller adds the branch of a message to the controller.
func (s *step) controller(c pass.Controller, f frame) {
	answer, op, ok := answerTo(f.packet(), c.Userdata, c.Pause)
	b := Branch{Kind: Generated, Why: "OVN makes " + answer.Name, Answer: &answer}
	switch {
	case !ok:
		b.Kind, b.Answer, b.Why = Dropped, nil, "it is rejected, and OVN makes no answer to an error"
	case op.copies && !c.Pause:
		b.Kind = Copied
	case c.Userdata == "":
		b.Why = "the flow sends " + answer.Name
	case answer.To != "":
		b.Why += " to " + answer.To
	}
	if c.Stage >= 0 {
		b.Stage = &s.hop.Pass.Stages[c.Stage]
	}
	s.add(b, f)
}

// pauses adds the branches of controller actions for which the pipeline waits: they make
// no datapath action in a trace.
func (s *step) pauses(f frame) {
	for _, c := range s.hop.Pass.Controllers() {
		if c.Pause && !s.waitsFor(c) {
			s.controller(c, f)
		}
	}
}

// waitsFor reports whether a branch waits for the controller already.
func (s *step) waitsFor(c pass.Controller) bool {
	for _, b := range s.hop.Branches {
		if b.Answer != nil && b.Answer.Waits && b.Answer.Userdata == c.Userdata {
			return true
		}
	}
	return false
}
