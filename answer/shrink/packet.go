package shrink

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/whatif"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
)

// packet is the answer about a packet.
type packet struct {
	question *Question
	answer   *answer.Answer // of the collected database
}

func (p *packet) before(context.Context) error { return nil }

func (p *packet) noteError(error) bool { return false }

// first asks the question of the collected database.
func (p *packet) first(ctx context.Context, session *whatif.Session) (err error) {
	p.question.progress("asking the question of the collected database")
	if p.answer, err = session.Trace(ctx, p.question.Question); err != nil {
		return err
	}
	if p.answer.Verdict == answer.Undetermined {
		return fmt.Errorf("%w: %s", ErrNothing, p.answer.Headline())
	}
	return nil
}

// isShown asks the question again. One that can't be asked any more has another answer.
func (p *packet) isShown(ctx context.Context, session *whatif.Session, nb string) (bool, error) {
	if err := session.Put(ctx, nb); err != nil {
		return false, err
	}
	found, err := session.Trace(ctx, p.question.Question)
	return err == nil && signatureOf(found) == signatureOf(p.answer), nil
}

func (p *packet) text() string {
	text, _ := json.Marshal(p.answer) // has no values that JSON lacks
	return string(text)
}

// nodes returns the nodes that the packet and its reply pass.
func (p *packet) nodes(all []snapshot.Member) (nodes []snapshot.Member) {
	for _, node := range all {
		passes := false
		for _, a := range append([]*answer.Answer{p.answer}, returns(p.answer)...) {
			passes = passes || slices.ContainsFunc(a.Path, func(hop answer.Hop) bool { return hop.Node == node.Name }) ||
				slices.ContainsFunc(a.Outcomes, func(o answer.Outcome) bool { return o.Node == node.Name })
		}
		if passes {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func returns(a *answer.Answer) (all []*answer.Answer) {
	if a.Return != nil {
		all = append(all, a.Return)
	}
	return append(all, a.Replies...)
}

// describe adds the ports of the packet's way, and the packet in the words of ovn-trace.
func (p *packet) describe(found *Result, smallest *file.Whole) {
	question := p.question.Trace
	found.Question = strings.TrimSpace(question.From + " " + question.To + " " + question.Protocol)
	found.Verdict, found.Headline, found.Packet = string(p.answer.Verdict), p.answer.Headline(), p.answer.Packet
	if p.answer.Drop != nil {
		found.Rule = p.answer.Drop.Named()
	}
	found.bind(smallest, p.nodeOf)
	if len(p.answer.Path) == 0 || p.answer.Path[0].LogicalPort == "" {
		return
	}
	first := p.answer.Path[0]
	if packet, err := flow.Parse(first.Packet); err == nil {
		found.Microflow, found.Datapath = trace.Microflow(first.LogicalPort, packet), switchOf(smallest, first.LogicalPort)
	}
}

// nodeOf returns the node on which the answer met a logical port, "" for none.
func (p *packet) nodeOf(port string) string {
	for _, a := range append(returns(p.answer), p.answer) {
		for _, hop := range a.Path {
			if hop.LogicalPort == port {
				return hop.Node
			}
			for _, end := range hop.Ends {
				if end.LogicalPort == port {
					return end.Node
				}
			}
		}
		for _, outcome := range a.Outcomes {
			if outcome.LogicalPort == port {
				return outcome.Node
			}
		}
		if a.Drop != nil && a.Drop.ACL != nil && a.Drop.ACL.LogicalPort == port {
			return a.Drop.Node
		}
	}
	return ""
}

// switchOf returns the name of the switch of a logical port in a database, "" for none.
func switchOf(whole *file.Whole, port string) string {
	network, err := ovn.ReadNorthbound(whole)
	if err != nil || network.Ports[port] == nil || network.Ports[port].Switch == nil {
		return ""
	}
	return network.Ports[port].Switch.Name
}
