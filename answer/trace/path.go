package trace

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/snapshot/names"
	"ovs-offline/snapshot/rules"
)

// draft is an answer while it is made.
type draft struct {
	answer  *answer.Answer
	assumed map[string]bool // listed in the answer
}

// assume adds a sentence about what the answer assumes, once; "" adds nothing.
func (d *draft) assume(text string) {
	if text != "" && !d.assumed[text] {
		d.assumed[text] = true
		d.answer.Trust.Assumed = append(d.answer.Trust.Assumed, text)
	}
}

// miss adds what another verdict than Undetermined needs, once.
func (d *draft) miss(text string) {
	if !slices.Contains(d.answer.Missing, text) {
		d.answer.Missing = append(d.answer.Missing, text)
	}
}

// missOn adds what another verdict than Undetermined needs on a node, once.
func (d *draft) missOn(node, text string) { d.miss(fmt.Sprintf("on node %s: %s", node, text)) }

// remark adds what is special about the packet, once.
func (d *draft) remark(text string) {
	if !slices.Contains(d.answer.Remarks, text) {
		d.answer.Remarks = append(d.answer.Remarks, text)
	}
}

// trustAs adds the nodes on the way of another packet, and what was assumed about it.
func (d *draft) trustAs(other *answer.Answer) {
	for _, n := range other.Trust.Nodes {
		d.answer.Trust.Add(n)
	}
	for _, text := range other.Trust.Assumed {
		d.assume(text)
	}
}

// path writes the hops of a packet and its ends into an answer.
type path struct {
	*Session
	draft
	judge    judge
	drops    drops
	arrivals []arrival
	left     bool // a copy left the collected nodes, and what becomes of it is not known
	err      error
}

// approach is how a packet came to a hop.
type approach struct {
	from    int // index of the hop before it, -1 for none
	via     string
	choice  string
	found   *follow.Lookup
	depth   int
	flooded bool
	copied  bool // a pass before sent the packet to every port, so this may be a copy
	registers
}

// addHop adds a hop and everything after it.
func (p *path) addHop(hop *follow.Hop, by approach) {
	if hop.Pass == nil { // a packet from outside, before it arrives on a node
		for _, branch := range hop.Branches {
			p.addBranch(hop, branch, -1, by)
		}
		return
	}
	index := len(p.answer.Path)
	written := answer.Hop{Location: p.names.place(hop.Node, hop.Bridge, hop.Port), From: by.from, Via: by.via, Choice: by.choice, Packet: hop.Packet.Input(), Stages: []answer.Stage{}}
	if by.found != nil {
		written.Connection = connectionText(*by.found)
		p.assume(p.assumedState(*by.found))
	}
	n := p.nodes[hop.Node]
	p.keepError(n.readStale(hop.Pass.Stages))
	for _, passed := range hop.Pass.Stages {
		stage, rule, err := n.describeStage(passed)
		p.keepError(err)
		by.registers = by.registers.afterMatch(passed)
		stage.ACL = n.aclOf(rule, passed, by.registers)
		by.registers = by.registers.afterActions(passed)
		if passed.Bridge != written.Bridge {
			stage.OnBridge = passed.Bridge
		}
		written.Stages = append(written.Stages, stage)
	}
	written.Datapath = hop.Pass.ActionsText
	if p.options.Raw {
		written.Raw = hop.Pass.Text
	}
	if why := p.judge.lacks(hop); why != "" {
		p.left = true
		p.missOn(hop.Node, why)
	}
	for _, text := range hop.Assumed {
		p.assume(text)
	}
	p.answer.Path = append(p.answer.Path, written)
	for _, branch := range hop.Branches {
		p.addBranch(hop, branch, index, by)
	}
}

// keepError keeps the first error.
func (p *path) keepError(err error) { p.err = cmp.Or(p.err, err) }

// addBranch adds a branch of a hop: the hops after it, or the end. index is the index of the
// hop, -1 for one that the path does not have.
func (p *path) addBranch(hop *follow.Hop, branch follow.Branch, index int, by approach) {
	for _, text := range branch.Uncertain {
		p.assume(text)
	}
	choice := strings.TrimPrefix(by.choice+", "+branch.Choice, ", ")
	choice = strings.TrimSuffix(choice, ", ")
	if branch.Kind == follow.Networked {
		p.judge.taught[taught{branch.Next.Node, branch.Next.Packet.Get("dl_src")}] = true
	}
	if branch.Kind == follow.Repeated {
		p.remarkRepetition(hop, branch)
	}
	if branch.Next != nil {
		p.assumeSharedNetwork(hop, branch)
		next := approach{from: index, via: viaText(branch), choice: choice, found: branch.Lookup, depth: by.depth + 1, flooded: by.flooded || branch.Flooded, copied: by.copied || hop.Pass != nil && hop.Pass.Floods()}
		if branch.Kind == follow.Recirculated {
			next.registers = by.registers
		}
		p.addHop(branch.Next, next)
		return
	}
	if branch.Kind == follow.Copied {
		return
	}
	end := p.addEnd(hop, branch, index, choice, by)
	if index >= 0 {
		p.answer.Path[index].Ends = append(p.answer.Path[index].Ends, end)
	}
}

// addEnd adds to the answer what the end of a packet means, and returns the end.
func (p *path) addEnd(hop *follow.Hop, branch follow.Branch, index int, choice string, by approach) answer.End {
	end := answer.End{Location: p.names.place(hop.Node, hop.Bridge, branch.Port), Text: branch.Why, Choice: choice}
	if endpoint, ok := p.names.receiver(branch); ok && endpoint.Tag != 0 {
		end.Endpoint = endpoint.Name // behind the port that carries its VLAN
	}
	switch branch.Kind {
	case follow.Delivered:
		p.addOutcome(hop, branch, &end, by)
		if enclosure, ok := p.names.enclosed(branch); ok && !p.judge.arrives(hop, branch) {
			p.addNoRoute(hop, branch, index, &end, p.enclosedRule(branch, enclosure), by)
		}
		if network := p.names.detachedNetwork(branch); network != "" {
			p.addNoRoute(hop, branch, index, &end, p.detachedRule(branch, end.Location.Endpoint, network), by)
		}
	case follow.Dropped:
		end.Kind = answer.Dropped
		if p.judge.isOutdated(hop, branch) {
			p.missOn(hop.Node, fmt.Sprintf("where the bridge learns the MAC address %s from the first packet", hop.Packet.Get("dl_dst")))
		}
		dropped, err := p.drops.describe(hop, branch)
		p.keepError(err)
		dropped.Choice, end.Text = choice, dropped.Reason
		p.addDrop(dropped, hop, branch, index, by)
	case follow.Generated:
		end.Kind = answer.Answered
		if branch.Loss != "" { // a kernel answers with an error
			end.Kind = answer.Dropped
		}
		p.addGenerated(hop, branch, index, choice, by)
	default:
		end.Kind, end.Text = answer.Unknown, branch.Why+p.tunnelTarget(hop, branch)
		switch {
		case p.names.isForOthers(branch):
			p.assume(fmt.Sprintf("node %s, whose replica can't be asked, sends on no packet for the MAC address of another node", branch.Absent))
		case branch.Absent != "":
			p.miss(end.Text)
		default:
			p.missOn(hop.Node, end.Text)
		}
	}
	return end
}

// addOutcome adds a packet that comes out of a port. Its end is unknown if a host behind the
// port may forward the packet.
func (p *path) addOutcome(hop *follow.Hop, branch follow.Branch, end *answer.End, by approach) {
	end.Kind = answer.Delivered
	outcome := answer.Outcome{Location: end.Location, Packet: branch.Packet.Input(), Choice: end.Choice, Destination: p.judge.arrives(hop, branch), Answer: p.judge.isAnswer(hop, branch), Wire: p.judge.isWire(hop, branch)}
	p.answer.Outcomes = append(p.answer.Outcomes, outcome)
	if outcome.Destination {
		p.arrivals = append(p.arrivals, arrival{hop, branch, end.Choice})
	} else if at, ok := p.names.receiver(branch); ok && at.MAC == branch.Packet.Get("dl_dst") && !by.flooded && !branch.Flooded && !outcome.Answer {
		p.drops.elsewhere = max(p.drops.elsewhere, by.depth)
	}
	if why := p.judge.doubt(hop, branch); why != "" {
		end.Kind, end.Text, p.left = answer.Unknown, why, true
		p.missOn(hop.Node, why)
	}
}

// outside is the depth of what became of a packet that left all logical networks: further than any
// copy of it got that other nodes on the physical network saw.
const outside = math.MaxInt

// addNoRoute adds that a packet ends where nothing has a route to its address, by a rule in words.
func (p *path) addNoRoute(hop *follow.Hop, branch follow.Branch, index int, end *answer.End, rule string, by approach) {
	dropped := answer.Drop{Location: end.Location, Choice: end.Choice, Reason: string(rules.NoRoute)}
	dropped.Rule = rule
	end.Kind, end.Text = answer.Dropped, dropped.Reason
	by.depth = outside
	p.addDrop(dropped, hop, branch, index, by)
}

// enclosedRule says why nothing outside brings a packet to its address.
func (p *path) enclosedRule(branch follow.Branch, enclosure names.Enclosure) string {
	ip, mac := destination(branch.Packet), branch.Packet.Get("dl_dst")
	why := "which has no router and no port that may forward packets"
	if enclosure.Translated {
		why = "which routers of OVN translate on the way out"
		p.assume(fmt.Sprintf("outside, %s has no route to %s", mac, ip))
	}
	return fmt.Sprintf("the packet leaves the logical networks for the MAC address %s, and %s is an address of %s, %s", mac, ip, enclosure.Network, why)
}

// detachedRule says why a node sends a packet nowhere: no node has a port in the network of its address.
func (p *path) detachedRule(branch follow.Branch, node, network string) string {
	ip := destination(branch.Packet)
	p.assume(fmt.Sprintf("neither %s nor anything outside has a route to %s", node, ip))
	return fmt.Sprintf("the packet arrives at %s, and %s is an address of %s, in which no node has a port", node, ip, network)
}

// addGenerated adds a dropped packet, and the packet that OVN sends because of it.
func (p *path) addGenerated(hop *follow.Hop, branch follow.Branch, index int, choice string, by approach) {
	why := branch.Why
	if branch.Response != nil {
		why = branch.Response.Name
	}
	dropped, err := p.drops.describe(hop, branch)
	p.keepError(err)
	dropped.Choice = choice
	made := answer.Generated{Location: p.names.place(hop.Node, hop.Bridge, hop.Port), Packet: branch.Packet.Input(), Why: why, Flooded: by.copied && !isMulticast(hop.Packet.Get("dl_dst"))}
	if branch.Loss != "" {
		made.By = "the kernel"
	}
	unanswered, next := p.names.unanswered(hop, branch)
	if next.IsValid() {
		made.To, made.Why = p.networkAsked(hop, by.registers, next), why+" "+next.String()
	}
	if unanswered != "" {
		dropped.Reason, dropped.Rule = string(rules.Unresolved), unanswered
	}
	p.addDrop(dropped, hop, branch, index, by)
	if branch.Response != nil && branch.Response.Asks && unanswered == "" {
		p.missOn(hop.Node, "no MAC address of the next hop is recorded: OVN sends "+branch.Response.Name)
	}
	p.answer.Generated = append(p.answer.Generated, made)
}

// addDrop keeps a drop that ends a hop of the path, with what decides how much it explains.
func (p *path) addDrop(dropped answer.Drop, hop *follow.Hop, branch follow.Branch, index int, by approach) {
	holds := func(e names.Endpoint) bool { return e.Node == dropped.Node }
	found := drop{holder: slices.ContainsFunc(p.names.WithMAC(hop.Packet.Get("dl_dst")), holds), Drop: dropped, flow: branch.Stage, pass: hop.Pass, packet: hop.Packet, registers: by.registers, depth: by.depth, flooded: by.flooded || branch.Flooded}
	if index >= 0 {
		for i, stage := range p.answer.Path[index].Stages {
			if stage.ACL != nil && stage.Rule == dropped.Rule {
				found.ACL, found.flow = stage.ACL, &hop.Pass.Stages[i]
			}
		}
	}
	p.drops.list = append(p.drops.list, found)
}

// networkAsked describes where a router asks for the MAC address of a next hop, "" if that is
// not known: the registers have its port.
func (p *path) networkAsked(hop *follow.Hop, at registers, next netip.Addr) string {
	return p.names.Beyond(p.routerPort(hop.Node, at), next)
}

// tunnelTarget names the port that a packet is for on a chassis that was not captured, or whose
// replica can't be asked, as a text to append; "" if the southbound database does not show it.
// OVN's tunnels carry the keys of the datapath and of its output port (ovn-architecture(7),
// Tunnel Encapsulations).
func (p *path) tunnelTarget(hop *follow.Hop, branch follow.Branch) string {
	if branch.Kind != follow.Remote && branch.Absent == "" || branch.Tunnel == nil || branch.Tunnel.Type != "geneve" {
		return ""
	}
	zone := p.nodes[hop.Node].zone
	if zone.rules == nil || len(p.chassisOf(hop.Node, branch.Tunnel.Dst)) == 0 {
		return ""
	}
	const class, kind, outPort = "0x102", "0x80", 0xffff
	for _, option := range branch.Tunnel.Options {
		datapath, err := strconv.ParseUint(branch.Tunnel.ID, 0, 24)
		value, wrong := strconv.ParseUint(option.Value, 0, 32)
		if option.Class != class || option.Type != kind || err != nil || wrong != nil {
			continue
		}
		bound, ok := zone.rules.Port(datapath, value&outPort)
		if !ok || bound.Multicast {
			continue
		}
		port := bound.Name
		if endpoint, ok := p.names.Holder(port, 0); ok {
			port = endpoint.Name
		}
		return fmt.Sprintf(": by the southbound database the packet is for port %s there, and the egress pipeline of %s decides", port, zone.rules.Datapath(datapath))
	}
	return ""
}

// assumeSharedNetwork adds what is assumed of a packet that goes from a node to one with other
// databases.
func (p *path) assumeSharedNetwork(hop *follow.Hop, branch follow.Branch) {
	if branch.Kind != follow.Networked || hop.Node == "" || branch.Next.Node == hop.Node {
		return
	}
	from, to := p.nodes[hop.Node].zone, p.nodes[branch.Next.Node].zone
	if from != to && from.SB != nil && to.SB != nil {
		p.assume(fmt.Sprintf("%s and %s, which have different OVN databases, have the network %s in common", hop.Node, branch.Next.Node, strings.Join(branch.Networks, ", ")))
	}
}

// remarkRepetition remarks that a packet is followed as it is sent again.
func (p *path) remarkRepetition(hop *follow.Hop, branch follow.Branch) {
	text := "on node " + hop.Node + ": " + branch.Why
	if p.nodes[hop.Node].trust.Synthesised {
		text += "; which clients have a session is not known of a synthesised switch, and one with a session reaches its backend at once"
	}
	p.remark(text)
}

// assumedState returns what was assumed about the state of a connection, "" if conntrack of the
// node or of the question shows it.
func (p *path) assumedState(lookup follow.Lookup) string {
	flags, _ := conntrack.ParseFlags(lookup.State)
	switch {
	case p.options.States != nil:
		return "connections have the states that --ct lists, and then are new"
	case lookup.Text != "" || lookup.OfQuestion:
		return ""
	case p.options.New && flags.New:
		return "every connection is new (--ct new)"
	case flags.Inv:
		return "a packet that opens no connection, and belongs to none that is recorded, is invalid"
	}
	return "a connection that is not recorded is new"
}

// viaText describes what carries a packet from one hop to the next.
func viaText(branch follow.Branch) string {
	switch branch.Kind {
	case follow.Tunneled:
		return branch.Tunnel.Type
	case follow.Networked:
		return "network " + strings.Join(branch.Networks, ", ")
	case follow.Repeated:
		return "repetition"
	case follow.Internal:
		return branch.Port.Name
	}
	return ""
}

// connectionText describes the connection that conntrack found for a packet.
func connectionText(lookup follow.Lookup) string {
	text := fmt.Sprintf("%s in zone %d", lookup.State, lookup.Zone)
	if lookup.Owner != "" {
		text += " of " + lookup.Owner
	}
	switch {
	case lookup.OfQuestion && lookup.Text != "":
		text += ": made by an earlier packet or stage of the question, " + lookup.Text
	case lookup.OfQuestion:
		text += ": an earlier packet of the question made the connection"
	case lookup.Text != "":
		text += ": recorded as " + lookup.Text
	}
	return text
}
