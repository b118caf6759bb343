package trace

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/names"
)

// arrival is an end at the destination, from which the reply starts.
type arrival struct {
	hop    *follow.Hop
	branch follow.Branch
	choice string // all choices up to the end
}

// maxReplies bounds the replies that are followed for one packet.
const maxReplies = 64

// reply follows the reply to the packet, with the connections that the packet left: from each
// choice by which it arrives, and there from where it arrived first.
func (w *writer) reply(ctx context.Context, from names.Endpoint) error {
	if v := w.answer.Verdict; v != answer.Reachable && v != answer.Ambiguous {
		return nil
	}
	seen := map[string]bool{}
	var replies []*answer.Answer
	for _, end := range w.arrivals {
		if seen[end.choice] {
			continue
		}
		seen[end.choice] = true
		if len(replies) == maxReplies {
			replies = append(replies, &answer.Answer{Verdict: answer.Undetermined, Choice: "the other choices",
				Missing: []string{fmt.Sprintf("the replies from the first %d choices only are followed", maxReplies)}})
			break
		}
		back, err := w.replyFrom(ctx, end, from)
		if err != nil {
			return err
		}
		if back != nil {
			replies = append(replies, back)
		}
	}
	w.combine(replies)
	return nil
}

// replyFrom follows the reply from one arrival; it returns nil if nothing replies to the
// packet.
func (w *writer) replyFrom(ctx context.Context, end arrival, from names.Endpoint) (*answer.Answer, error) {
	start, ok := w.answerTo(end)
	if !ok {
		return nil, nil
	}
	back := w.writer("the reply: "+start.Packet.Input(), at(from))
	back.answer.Choice, back.isReply = end.choice, true
	maps.Copy(back.taught, w.taught)
	if end.branch.Size > 0 && start.Size == 0 {
		w.assume("the reply has a size that fits everywhere")
	}
	return back.answer, back.follow(ctx, start)
}

// combine adds the replies to the answer: the packet takes one of the choices, so that the
// reply arrives for certain only if that from each does.
func (w *writer) combine(replies []*answer.Answer) {
	if len(replies) == 0 {
		return
	}
	a, all := w.answer, results(0)
	decides := replies[0]
	for _, r := range replies {
		all |= resultsOf(r.Verdict)
		if weight(r.Verdict) > weight(decides.Verdict) {
			decides = r
		}
		w.trustOf(r)
	}
	a.Return = decides
	if len(replies) > 1 {
		a.Replies = replies
		whole := *decides
		whole.Verdict = all.verdict()
		a.Return = &whole
	}
	switch {
	case a.Verdict != answer.Reachable:
	case a.Return.Verdict == answer.Unreachable:
		a.Verdict = answer.OneWay
	case a.Return.Verdict == answer.Ambiguous:
		a.Verdict = answer.Ambiguous
	}
}

// weight is larger for a verdict that says more about why a reply may not arrive.
func weight(v answer.Verdict) int {
	return slices.Index([]answer.Verdict{answer.Reachable, answer.Ambiguous, answer.Unreachable, answer.Undetermined}, v)
}

// trustOf adds the nodes on the way of a reply, and what was assumed about it.
func (w *writer) trustOf(reply *answer.Answer) {
	for _, n := range reply.Trust.Nodes {
		w.trusts(n)
	}
	for _, text := range reply.Trust.Assumed {
		w.assume(text)
	}
}

// answerTo returns where the answer to a packet begins; ok is false if nothing answers it.
func (w *writer) answerTo(end arrival) (start follow.Start, ok bool) {
	start, ok = follow.Reply(end.hop, end.branch)
	if !ok {
		return start, false
	}
	if mac := w.neighbour(end, start.Packet); mac != "" {
		start.Packet.Set("dl_dst", mac)
	}
	return start, true
}

// receiver returns the endpoint that receives a packet that came out of a port.
func (s *Session) receiver(b follow.Branch) (e names.Endpoint, ok bool) {
	if b.Port == nil || b.Port.IfaceID == "" {
		return names.Endpoint{}, false
	}
	tag, _ := strconv.Atoi(b.Packet.Get("dl_vlan"))
	return s.names.Holder(b.Port.IfaceID, tag)
}

// neighbour returns the MAC address that the receiver of a packet sends its reply to: it
// resolves the address itself, and does not take the packet's source. It returns "" where
// the databases don't state it.
func (w *writer) neighbour(end arrival, reply flow.Packet) string {
	e, ok := w.receiver(end.branch)
	if source, err := netip.ParseAddr(destination(end.branch.Packet)); !ok && len(end.branch.Networks) > 0 && err == nil {
		e, ok = names.Endpoint{Kind: names.External, IPs: []netip.Addr{source}}, true
	}
	ip, err := netip.ParseAddr(destination(reply))
	if err != nil || !ok {
		return ""
	}
	first, err := w.names.First(names.Question{From: e, To: names.Endpoint{Kind: names.External, Name: ip.String(), IPs: []netip.Addr{ip}}})
	if err != nil || first.Unresolved.IsValid() {
		return ""
	}
	p, err := flow.Parse(first.Flow)
	if err != nil || destination(p) != destination(reply) {
		return ""
	}
	return p.Get("dl_dst")
}
