package follow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
)

// Response is what the controller or ovs-vswitchd makes of a packet.
type Response struct {
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
	rest   bool   // it sends the packet on, to more ports than the flow does
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
		{answer: "the copies for further ports of a large multicast group", rest: true},
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

// responseTo returns what OVN makes of a packet; ok is false if it makes nothing of this
// one.
func responseTo(packet flow.Packet, userdata string, waits bool) (response Response, op operation, ok bool) {
	op = operationOf(userdata)
	response = Response{Name: op.answer, Userdata: userdata, Asks: op.asks, Waits: waits}
	t, _ := conntrack.TupleOf(packet, 0)
	if op.back && t.Src.IsValid() {
		response.To = t.Src.String()
	}
	switch op.answer {
	case icmpError:
		response.Name = errorOf(userdata)
	case "a reject":
		response.Name, ok = rejectOf(packet, t)
		return response, op, ok
	}
	return response, op, true
}

// rejectOf returns what OVN makes of a packet that an ACL rejects (OVN's
// controller/pinctrl.c, pinctrl_handle_reject): nothing for a TCP reset and for an ICMP
// error.
func rejectOf(packet flow.Packet, t conntrack.Tuple) (name string, ok bool) {
	switch t.Proto {
	case flow.TCP:
		return "a TCP reset", !strings.Contains(packet.Get("tcp_flags"), "rst")
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
	if kind < 0 { // what ovn-controller fills in
		kind, code = 3, 1
	}
	return icmpErrorName(kind, max(code, 0), strings.Contains(userdata, "80.00.3a.01."))
}

// icmpErrorName names an ICMP error by its type and code (RFC 792, RFC 4443).
func icmpErrorName(kind, code int, v6 bool) string {
	names := map[[2]int]string{{11, 0}: "TTL exceeded", {3, 0}: "network unreachable", {3, 1}: "host unreachable", {3, 2}: "protocol unreachable", {3, 3}: "port unreachable",
		{3, 4}: "fragmentation needed", {3, 9}: "network prohibited", {3, 10}: "host prohibited", {3, 13}: "prohibited", {5, 0}: "redirect", {5, 1}: "redirect"}
	if v6 {
		names = map[[2]int]string{{1, 0}: "no route", {1, 1}: "prohibited", {1, 3}: "address unreachable", {1, 4}: "port unreachable", {1, 5}: "source address refused", {1, 6}: "route refuses it", {2, 0}: "packet too big", {3, 0}: "hop limit exceeded"}
	}
	if name := names[[2]int{kind, code}]; name != "" {
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

// handleUserspace handles a copy that goes to ovs-vswitchd.
func (s *step) handleUserspace(action odp.Userspace, frame frame) {
	switch {
	case action.SlowPath:
		s.add(Branch{Kind: Generated, Why: "ovs-vswitchd handles the packet itself", Response: &Response{Name: "ovs-vswitchd's own handling"}}, frame)
	case !action.Controller:
		s.add(Branch{Kind: Copied, Why: "a sample for a monitor"}, frame)
	case action.Reason == invalidTTL:
		branch := Branch{Kind: Dropped, Why: "the TTL has expired"}
		branch.Stage = lastStage(s.hop.Pass, action.Cookie)
		s.add(branch, frame)
	default:
		s.sendToController(s.controllers.next(action), frame)
	}
}

// lastStage returns the last stage of a pass with a cookie, nil for none.
func lastStage(printed *pass.Pass, cookie uint64) *pass.Stage {
	for i, stage := range slices.Backward(printed.Stages) {
		if stage.Cookie == cookie {
			return &printed.Stages[i]
		}
	}
	return nil
}

// controllerActions finds the controller actions of a pass that its userspace actions carry out.
type controllerActions struct {
	pass *pass.Pass
	done map[uint64]int // the number of userspace actions so far, by cookie
}

// next returns the controller action that the next userspace action with a cookie carries out.
// A flow may have several, such as the flow of an ACL that logs and rejects: their userspace
// actions come in the same order. A controller action for which the pipeline waits has no
// userspace action in a trace.
func (c *controllerActions) next(userspace odp.Userspace) pass.Controller {
	var fitting, restored []pass.Controller
	for _, action := range c.pass.Controllers() {
		switch {
		case action.Stage < 0:
			restored = append(restored, action) // the flow of a restored action is not shown
		case c.pass.Stages[action.Stage].Cookie == userspace.Cookie && action.Pause == userspace.Continuation:
			fitting = append(fitting, action)
		}
	}
	if len(fitting) == 0 {
		fitting = restored
	}
	if len(fitting) == 0 {
		return pass.Controller{Stage: -1}
	}
	if c.done == nil {
		c.done = map[uint64]int{}
	}
	done := c.done[userspace.Cookie]
	c.done[userspace.Cookie]++
	return fitting[min(done, len(fitting)-1)]
}

// sendToController adds the branch of a message to the controller.
func (s *step) sendToController(action pass.Controller, frame frame) {
	response, op, ok := responseTo(frame.packet(), action.Userdata, action.Pause)
	branch := Branch{Kind: Generated, Why: "OVN makes " + response.Name, Response: &response}
	switch {
	case op.rest:
		branch.Kind, branch.Response, branch.Why = Undetermined, nil, "ovn-controller makes "+op.answer+", which are not followed"
	case !ok:
		branch.Kind, branch.Response, branch.Why = Dropped, nil, "it is rejected, and OVN makes no answer to an error"
	case op.copies && !action.Pause:
		branch.Kind = Copied
	case action.Userdata == "":
		branch.Why = "the flow sends " + response.Name
	case response.To != "":
		branch.Why += " to " + response.To
	}
	if action.Stage >= 0 {
		branch.Stage = &s.hop.Pass.Stages[action.Stage]
	}
	s.add(branch, frame)
}

// addPauses adds the branches of controller actions for which the pipeline waits: they make
// no datapath action in a trace.
func (s *step) addPauses(frame frame) {
	for _, action := range s.hop.Pass.Controllers() {
		if action.Pause && !s.hop.waitsFor(action) {
			s.sendToController(action, frame)
		}
	}
}
