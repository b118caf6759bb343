package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/conntrack"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/pass"
	"ovs-offline/trace/rules"
)

// writer writes the hops of a packet into an answer.
type writer struct {
	*Session
	answer   *answer.Answer
	start    follow.Start
	arrived  func(*follow.Hop, follow.Branch) bool // reports whether an end is where the packet was to go
	drops    []drop
	arrivals []arrival
	root     *follow.Hop     // of the last packet
	state    *follow.State   // after it
	seen     map[string]bool // what was assumed
	taught   map[taught]bool // by this and earlier packets
	isReply  bool
	left     bool // a copy left the collected nodes, and what becomes of it is not known
	err      error
}

// drop is a drop with the flow that decided, nil for none, and with what decides how much it
// explains.
type drop struct {
	answer.Drop
	flow   *pass.Stage
	packet flow.Packet
	registers
	depth   int
	flooded bool
}

// way is how a packet came to a hop.
type way struct {
	from    int
	via     string
	choice  string
	found   *follow.Connection
	depth   int
	flooded bool
	registers
}

// hop adds a hop and everything after it.
func (w *writer) hop(h *follow.Hop, at way) {
	if h.Pass == nil { // a packet from outside, before it arrives on a node
		for _, b := range h.Branches {
			w.branch(h, b, -1, at)
		}
		return
	}
	index := len(w.answer.Path)
	a := answer.Hop{Place: w.place(h.Node, h.Bridge, h.Port), From: at.from, Via: at.via, Choice: at.choice, Packet: h.Packet.Input(), Stages: []answer.Stage{}}
	if at.found != nil {
		a.Connection = connection(*at.found)
		w.assume(w.taken(*at.found))
	}
	n := w.nodes[h.Node]
	for _, s := range h.Pass.Stages {
		stage, rule, err := n.stage(s)
		if err != nil {
			w.err = cmp.Or(w.err, err)
		}
		at.registers = at.registers.matched(s)
		stage.ACL = n.aclOf(rule, s, at.registers)
		at.registers = at.registers.after(s)
		if s.Bridge != a.Bridge {
			stage.OnBridge = s.Bridge
		}
		a.Stages = append(a.Stages, stage)
	}
	a.Datapath = h.Pass.ActionsText
	if w.options.Raw {
		a.Raw = h.Pass.Text
	}
	for _, text := range h.Assumed {
		w.assume(text)
	}
	w.answer.Path = append(w.answer.Path, a)
	for _, b := range h.Branches {
		w.branch(h, b, index, at)
	}
}

func (w *writer) branch(h *follow.Hop, b follow.Branch, index int, at way) {
	for _, text := range b.Uncertain {
		w.assume(text)
	}
	choice := strings.TrimPrefix(at.choice+", "+b.Choice, ", ")
	choice = strings.TrimSuffix(choice, ", ")
	if b.Kind == follow.Networked {
		w.taught[taught{b.Next.Node, b.Next.Packet.Get("dl_src")}] = true
	}
	if b.Kind == follow.Repeated {
		w.repeated(h, b)
	}
	if b.Next != nil {
		w.crosses(h, b)
		next := way{from: index, via: via(b), choice: choice, found: b.Connection, depth: at.depth + 1, flooded: at.flooded || b.Flooded}
		if b.Kind == follow.Recirculated {
			next.registers = at.registers
		}
		w.hop(b.Next, next)
		return
	}
	end := answer.End{Place: w.place(h.Node, h.Bridge, b.Port), Text: b.Why, Choice: choice}
	if e, ok := w.receiver(b); ok && e.Tag != 0 {
		end.Endpoint = e.Name // behind the port that carries its VLAN
	}
	switch b.Kind {
	case follow.Delivered:
		end.Kind = answer.Delivered
		o := answer.Outcome{Place: end.Place, Packet: b.Packet.Input(), Choice: choice, Destination: w.arrives(h, b), Answer: w.isAnswer(h, b), Wire: w.isWire(h, b)}
		w.answer.Outcomes = append(w.answer.Outcomes, o)
		if o.Destination {
			w.arrivals = append(w.arrivals, arrival{h, b, choice})
		}
		if why := w.outside(h, b); why != "" {
			end.Kind, end.Text, w.left = answer.Unknown, why, true
			w.miss(h.Node, why)
		}
	case follow.Dropped:
		end.Kind = answer.Dropped
		if w.outdated(h, b) {
			w.miss(h.Node, fmt.Sprintf("where the bridge learns the MAC address %s from the first packet", h.Packet.Get("dl_dst")))
		}
		d := w.drop(h, b)
		d.Choice = choice
		end.Text = d.Reason
		w.addDrop(d, h, b, index, at)
	case follow.Generated:
		end.Kind = answer.Answered
		why := b.Why
		if b.Answer != nil {
			why = b.Answer.Name
		}
		d := w.drop(h, b)
		d.Choice = choice
		network, next := w.vacant(h, b)
		if network != "" {
			d.Reason, d.Rule = string(rules.Unresolved), fmt.Sprintf("no port and no router of %s has the address %s of the next hop", network, next)
		}
		w.addDrop(d, h, b, index, at)
		if b.Answer != nil && b.Answer.Asks && network == "" {
			w.miss(h.Node, "no MAC address of the next hop is recorded: OVN sends "+b.Answer.Name)
		}
		w.answer.Generated = append(w.answer.Generated, answer.Generated{Place: w.place(h.Node, h.Bridge, h.Port), Packet: b.Packet.Input(), Why: why})
	case follow.Copied:
		return
	default:
		end.Kind, end.Text = answer.Unknown, b.Why+w.destined(h, b)
		switch {
		case w.isOfOthers(b):
			w.assume(fmt.Sprintf("node %s, whose replica can't be asked, sends on no packet for the MAC address of another node", b.Absent))
		case b.Absent != "":
			w.missing(end.Text)
		default:
			w.miss(h.Node, end.Text)
		}
	}
	if index >= 0 {
		w.answer.Path[index].Ends = append(w.answer.Path[index].Ends, end)
	}
}

// repeated remarks that a packet is followed as it is sent again.
func (w *writer) repeated(h *follow.Hop, b follow.Branch) {
	remark := "on node " + h.Node + ": " + b.Why
	if w.nodes[h.Node].trust.Synthesised {
		remark += "; which clients have a session is not known of a synthesised switch, and one with a session reaches its backend at once"
	}
	if !slices.Contains(w.answer.Remarks, remark) {
		w.answer.Remarks = append(w.answer.Remarks, remark)
	}
}

// addDrop adds a drop that ends a hop of the path.
func (w *writer) addDrop(d answer.Drop, h *follow.Hop, b follow.Branch, index int, at way) {
	one := drop{Drop: d, flow: b.Stage, packet: h.Packet, registers: at.registers, depth: at.depth, flooded: at.flooded || b.Flooded}
	if index >= 0 {
		for i, s := range w.answer.Path[index].Stages {
			if s.ACL != nil && s.Rule == d.Rule {
				one.ACL, one.flow = s.ACL, &h.Pass.Stages[i]
			}
		}
	}
	w.drops = append(w.drops, one)
}

// miss adds what another verdict than Undetermined needs on a node, once.
func (w *writer) miss(node, what string) { w.missing(fmt.Sprintf("on node %s: %s", node, what)) }

func (w *writer) missing(text string) {
	if !slices.Contains(w.answer.Missing, text) {
		w.answer.Missing = append(w.answer.Missing, text)
	}
}

// via describes what carries a packet from one hop to the next.
func via(b follow.Branch) string {
	switch b.Kind {
	case follow.Tunneled:
		return b.Tunnel.Type
	case follow.Networked:
		return "network " + strings.Join(b.Networks, ", ")
	case follow.Repeated:
		return "repetition"
	}
	return ""
}

func connection(c follow.Connection) string {
	text := fmt.Sprintf("%s in zone %d", c.State, c.Zone)
	if c.Owner != "" {
		text += " of " + c.Owner
	}
	switch {
	case c.OfQuestion && c.Entry != "":
		text += ": made by an earlier packet or stage of the question, " + c.Entry
	case c.OfQuestion:
		text += ": an earlier packet of the question made the connection"
	case c.Entry != "":
		text += ": recorded as " + c.Entry
	}
	return text
}

// taken returns what was assumed about the state of a connection, "" if conntrack of the node
// or of the question shows it.
func (w *writer) taken(c follow.Connection) string {
	flags, _ := conntrack.ParseFlags(c.State)
	switch {
	case w.options.States != nil:
		return "connections have the states that --ct lists, and then are new"
	case c.Entry != "" || c.OfQuestion:
		return ""
	case w.options.New && flags.New:
		return "every connection is new (--ct new)"
	case flags.Inv:
		return "a packet that opens no connection, and belongs to none that is recorded, is invalid"
	}
	return "a connection that is not recorded is new"
}

func (w *writer) assume(text string) {
	if text != "" && !w.seen[text] {
		w.seen[text] = true
		w.answer.Trust.Assumed = append(w.answer.Trust.Assumed, text)
	}
}
