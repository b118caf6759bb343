package follow

import (
	"fmt"
	"strconv"
	"strings"

	"ovs-offline/trace/odp"
	"ovs-offline/trace/pass"
)

// Answer is what the controller or ovs-vswitchd makes of a packet.
type Answer struct {
	// Name describes it: "an ICMP error", "a TCP reset".
	Name string
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
	copies bool   // it takes a copy, and the packet goes on
	asks   bool   // for the MAC address of the next hop
}

func operations() []operation {
	return []operation{
		{answer: "an ARP request for the next hop", asks: true},
		{answer: "an entry of the MAC bindings", copies: true},
		{answer: "a DHCP answer"},
		{answer: "a neighbour advertisement"},
		{answer: "an entry of the MAC bindings", copies: true},
		{answer: "a DHCPv6 answer"},
		{answer: "a DNS answer"},
		{answer: "a line of the ACL log", copies: true},
		{answer: "a router advertisement"},
		{answer: "a neighbour solicitation for the next hop", asks: true},
		{answer: "an ICMP error"},
		{answer: "a TCP reset"},
		{answer: "a neighbour advertisement of a router"},
		{answer: "an ICMP error: fragmentation needed"},
		{answer: "an ICMP error"},
		{answer: "an event", copies: true},
		{answer: "an entry of the multicast groups", copies: true},
		{answer: "the binding of a virtual port", copies: true},
		{answer: "the state of a load balancer's backend"},
		{answer: "a DHCPv6 prefix delegation"},
		{answer: "an ICMPv6 error"},
		{answer: "an ICMPv6 error: packet too big"},
		{answer: "a reject: a TCP reset or an ICMP error"},
		{answer: "the state of a BFD session"},
		{answer: "an SCTP abort"},
		{answer: "an entry of the FDB", copies: true},
		{answer: "the activation of a port"},
	}
}

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
		s.controller(s.controllerOf(a.Cookie), f)
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

// controllerOf returns the controller action of the flow with a cookie. A flow with
// several of them has the first one's here.
func (s *step) controllerOf(cookie uint64) pass.Controller {
	for _, c := range s.hop.Pass.Controllers() {
		if c.Stage >= 0 && s.hop.Pass.Stages[c.Stage].Cookie == cookie {
			return c
		}
	}
	for _, c := range s.hop.Pass.Controllers() {
		if c.Stage < 0 {
			return c // a restored action, whose flow is not shown
		}
	}
	return pass.Controller{Stage: -1}
}

// controller adds the branch of a message to the controller.
func (s *step) controller(c pass.Controller, f frame) {
	op := operationOf(c.Userdata)
	b := Branch{Kind: Generated, Why: "OVN makes " + op.answer, Answer: &Answer{op.answer, c.Userdata, op.asks, c.Pause}}
	switch {
	case op.copies && !c.Pause:
		b.Kind = Copied
	case c.Userdata == "":
		b.Why = "the flow sends " + op.answer
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
