package trace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/snapshot/names"
	"ovs-offline/snapshot/rules"
)

// inquiry is a question about one packet while it is answered.
type inquiry struct {
	path
	root  *follow.Hop   // of the last packet
	state *follow.State // after it
}

// inquire begins an answer. arrived reports whether an end is where the packet was to go.
func (s *Session) inquire(question string, arrived endTest) *inquiry {
	begun := &answer.Answer{Question: question, Outcomes: []answer.Outcome{}, Path: []answer.Hop{}, Trust: answer.Trust{Nodes: []answer.Fidelity{}}}
	return &inquiry{path: path{
		Session: s,
		draft:   draft{begun, map[string]bool{}},
		judge:   judge{names: s.names, nodes: s.nodes, arrived: arrived, taught: map[taught]bool{}},
		drops:   drops{session: s},
	}}
}

// follow follows a packet, and writes verdict, path and drop.
func (q *inquiry) follow(ctx context.Context, start follow.Start) error {
	root, state, err := q.tracer.Packet(ctx, start)
	if err != nil {
		return err
	}
	q.root, q.state, q.judge.start = root, state, start
	if q.options.Bucket != "" {
		q.buckets.add(bucketsOf(root))
	}
	result := q.answer
	result.Packet, result.Size = start.Packet.Words(), start.Size
	q.addHop(root, approach{from: -1})
	q.noteAnswer()
	if q.err != nil {
		return q.err
	}
	result.Verdict = q.judgePacket().verdict()
	if result.Verdict == answer.Unreachable && q.losesAnswer() {
		result.Verdict = answer.OneWay
	}
	if result.Verdict != answer.Undetermined {
		result.Missing = nil
	}
	if result.Verdict != answer.Reachable && !(result.Verdict == answer.Undetermined && q.left) {
		result.Drop, err = q.drops.deciding()
		q.keepError(err)
	}
	if q.err != nil {
		return q.err
	}
	q.addHeldPorts()
	q.noteStale()
	for _, hop := range result.Path {
		result.Trust.Add(q.nodes[hop.Node].trust)
	}
	return nil
}

// judgePacket returns what may become of the packet. One that starts on a physical network for
// the MAC address of a node that was not captured gets there as well.
func (q *inquiry) judgePacket() results {
	all := q.judge.judgeHop(q.root)
	if why := q.doubtAtStart(); why != "" {
		q.left = true
		q.miss(why)
		all = both(all, unknown)
	}
	return all
}

// doubtAtStart returns why it is not known what becomes of a packet that starts on a physical
// network, "" if the collected nodes show it.
func (q *inquiry) doubtAtStart() string {
	start := q.judge.start
	if start.Process {
		return ""
	}
	networks := []string{start.Network}
	if n := q.nodes[start.Node]; n != nil {
		if port, ok := n.Port(start.InPort); ok {
			networks = n.NetworksOf(port)
		}
	}
	mac := q.root.Packet.Get("dl_dst")
	holder := q.names.holderElsewhere(mac)
	if len(networks) == 0 || holder == "" || isMulticast(mac) {
		return ""
	}
	return fmt.Sprintf("the packet starts on the network %s for the MAC address %s%s", strings.Join(networks, ", "), mac, holder)
}

// noteAnswer notes who answered the question's packet, if one of its ends is the answer.
func (q *inquiry) noteAnswer() {
	for hop, branch := range q.root.Ends() {
		if q.judge.isAnswer(hop, branch) {
			q.answer.Answered = q.names.answerer(q.judge.start.Packet, branch.Packet.Get("dl_src"))
			if namespace := q.namespaceBefore(q.root, hop); namespace != "" {
				q.answer.Answered = fmt.Sprintf("%s (%s)", namespace, destination(q.judge.start.Packet))
			}
			return
		}
	}
}

// namespaceBefore returns the last network namespace on the way from a hop to another one, "" for none.
func (q *inquiry) namespaceBefore(from, to *follow.Hop) string {
	for _, branch := range from.Branches {
		if from != to && (branch.Next == nil || !leadsTo(branch.Next, to)) {
			continue
		}
		if from != to {
			if later := q.namespaceBefore(branch.Next, to); later != "" {
				return later
			}
		}
		if from.Kernel {
			return from.Bridge
		}
	}
	return ""
}

// leadsTo reports whether a hop is another one, or comes before it.
func leadsTo(from, to *follow.Hop) bool {
	return from == to || slices.ContainsFunc(from.Branches, func(b follow.Branch) bool { return b.Next != nil && leadsTo(b.Next, to) })
}

// losesAnswer reports whether the answer to the packet was dropped, and notes who answered: the
// packet itself had arrived.
func (q *inquiry) losesAnswer() bool {
	request := q.judge.start.Packet
	for _, branch := range q.root.Ends() {
		if branch.Kind == follow.Dropped && answers(branch.Packet, request) {
			q.answer.Answered = q.names.answerer(request, "")
			return true
		}
	}
	return false
}

// answerUnresolved turns the answer about a neighbour request that nothing answers into the answer
// about the packet, which the sender never sends. What is on the network and not in the
// databases may answer the request.
func (q *inquiry) answerUnresolved(first names.Packet) error {
	result := q.answer
	if first.Vacant == "" {
		result.Verdict, result.Answered, result.Drop = answer.Undetermined, "", nil
		result.Missing = slices.Insert(result.Missing, 0, fmt.Sprintf("no port and no router in the databases has the address %s, and not all that is on its network is in them: "+
			"whether something answers the request for its MAC address is not known", first.Unresolved))
		return nil
	}
	result.Verdict = answer.Unreachable
	dropped := answer.Drop{Reason: string(rules.Unresolved)}
	found, err := q.drops.deciding()
	if found != nil {
		dropped = *found
		dropped.Reason = string(rules.Unresolved)
	} else if len(result.Path) > 0 {
		dropped.Location = result.Path[0].Location
	}
	dropped.Rule = fmt.Sprintf("no port and no router of %s has the address %s", first.Vacant, first.Unresolved)
	result.Drop = &dropped
	return err
}

// addHeldPorts adds to the ACLs of the path which of the ports on it their port groups hold.
func (q *inquiry) addHeldPorts() {
	var ports []string // logical ports on the path
	seen := map[string]bool{"": true}
	add := func(port string) {
		if !seen[port] {
			seen[port] = true
			ports = append(ports, port)
		}
	}
	for _, hop := range q.answer.Path {
		add(hop.LogicalPort)
		for _, stage := range hop.Stages {
			if stage.ACL != nil {
				add(stage.ACL.LogicalPort)
			}
		}
		for _, end := range hop.Ends {
			add(end.LogicalPort)
		}
	}
	for _, hop := range q.answer.Path {
		for _, stage := range hop.Stages {
			if stage.ACL == nil || stage.ACL.PortGroup == "" || stage.ACL.Holds != nil {
				continue
			}
			for _, port := range ports {
				if q.nodes[hop.Node].zone.rules.Holds(stage.ACL.PortGroup, port) {
					stage.ACL.Holds = append(stage.ACL.Holds, q.names.nameOf(port))
				}
			}
		}
	}
}
