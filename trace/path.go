package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/follow"
)

// writer writes the hops of a packet into an answer.
type writer struct {
	*Session
	answer   *answer.Answer
	arrived  func(*follow.Hop, follow.Branch) bool
	drops    []drop
	arrivals []arrival
	state    *follow.State   // after the last packet
	seen     map[string]bool // what was assumed
	taught   map[taught]bool // by this and earlier packets
	left     bool            // a copy left the collected nodes, and what becomes of it is not known
	err      error
}

// drop is a drop with what decides how much it explains.
type drop struct {
	answer.Drop
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
		if at.found.Entry == "" && !at.found.OfQuestion {
			w.assume("a connection that is not recorded is new")
		}
	}
	n := w.nodes[h.Node]
	for _, s := range h.Pass.Stages {
		stage, _, err := n.stage(s)
		if err != nil {
			w.err = cmp.Or(w.err, err)
		}
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
	if b.Next != nil {
		w.crosses(h, b)
		next := way{from: index, via: via(b), choice: choice, found: b.Connection, depth: at.depth + 1, flooded: at.flooded || b.Flooded}
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
		w.answer.Outcomes = append(w.answer.Outcomes, answer.Outcome{Place: end.Place, Packet: b.Packet.Input(), Choice: choice, Destination: w.arrived(h, b)})
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
		w.drops = append(w.drops, drop{d, at.depth, at.flooded || b.Flooded})
	case follow.Generated:
		end.Kind = answer.Answered
		why := b.Why
		if b.Answer != nil {
			why = b.Answer.Name
		}
		d := w.drop(h, b)
		d.Choice = choice
		w.drops = append(w.drops, drop{d, at.depth, at.flooded || b.Flooded})
		if b.Answer != nil && b.Answer.Asks {
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
	}
	return ""
}

func connection(c follow.Connection) string {
	text := fmt.Sprintf("%s in zone %d", c.State, c.Zone)
	if c.Owner != "" {
		text += " of " + c.Owner
	}
	switch {
	case c.Entry != "":
		text += ": recorded as " + c.Entry
	case c.OfQuestion:
		text += ": an earlier packet of the question made the connection"
	}
	return text
}

func (w *writer) assume(text string) {
	if !w.seen[text] {
		w.seen[text] = true
		w.answer.Trust.Assumed = append(w.answer.Trust.Assumed, text)
	}
}
