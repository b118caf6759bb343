package trace

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/snapshot/names"
)

// arrival is an end at the destination, from which the reply starts.
type arrival struct {
	hop    *follow.Hop
	branch follow.Branch
	choice string // all choices up to the end
}

// maxReplies bounds the replies that are followed for one packet.
const maxReplies = 64

// followReplies follows the reply to the packet, with the connections that the packet left: from
// each choice by which it arrives, and there from where it arrived first.
func (q *inquiry) followReplies(ctx context.Context, from names.Endpoint) error {
	if verdict := q.answer.Verdict; verdict != answer.Reachable && verdict != answer.Ambiguous {
		return nil
	}
	seen := map[string]bool{}
	var replies []*answer.Answer
	for _, end := range q.arrivals {
		if seen[end.choice] {
			continue
		}
		seen[end.choice] = true
		if len(replies) == maxReplies {
			replies = append(replies, &answer.Answer{Verdict: answer.Undetermined, Choice: "the other choices",
				Missing: []string{fmt.Sprintf("the replies from the first %d choices only are followed", maxReplies)}})
			break
		}
		back, err := q.followReply(ctx, end, from)
		if err != nil {
			return err
		}
		if back != nil {
			replies = append(replies, back)
		}
	}
	q.combine(replies)
	return nil
}

// followReply follows the reply from one arrival; it returns nil if nothing replies to the
// packet.
func (q *inquiry) followReply(ctx context.Context, end arrival, from names.Endpoint) (*answer.Answer, error) {
	start, ok := q.names.replyStart(end)
	if !ok {
		return nil, nil
	}
	back := q.inquire("the reply: "+start.Packet.Input(), endsAt(from))
	back.answer.Choice = end.choice
	maps.Copy(back.judge.taught, q.judge.taught)
	if end.branch.Size > 0 && start.Size == 0 {
		q.assume("the reply has a size that fits everywhere")
	}
	return back.answer, back.follow(ctx, start)
}

// combine adds the replies to the answer: the packet takes one of the choices, so the reply
// arrives for certain only if the reply from each choice does.
func (q *inquiry) combine(replies []*answer.Answer) {
	if len(replies) == 0 {
		return
	}
	result, all := q.answer, results(0)
	decides := replies[0]
	for _, reply := range replies {
		all |= resultsOf(reply.Verdict)
		if weight(reply.Verdict) > weight(decides.Verdict) {
			decides = reply
		}
		q.trustAs(reply)
	}
	result.Return = decides
	if len(replies) > 1 {
		result.Replies = replies
		whole := *decides
		whole.Verdict = all.verdict()
		result.Return = &whole
	}
	switch {
	case result.Verdict != answer.Reachable:
	case result.Return.Verdict == answer.Unreachable:
		result.Verdict = answer.OneWay
	case result.Return.Verdict == answer.Ambiguous:
		result.Verdict = answer.Ambiguous
	}
}

// weight is larger for a verdict that explains better why a reply may not arrive.
func weight(verdict answer.Verdict) int {
	return slices.Index([]answer.Verdict{answer.Reachable, answer.Ambiguous, answer.Unreachable, answer.Undetermined}, verdict)
}
