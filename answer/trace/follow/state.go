package follow

import (
	"slices"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/replica/linux"
)

// State is what the packets of one question have changed on all nodes: connections, flows that learn
// actions added, the addresses that bridges learned, and the frames that were put into network namespaces. It
// never changes; each change makes a new State, so alternatives can continue from the same one. The nil State
// has no changes.
type State struct {
	connections *conntrack.Changes
	learned     *learned
	addresses   *address
	sent        *sent
}

// change returns a copy of the state, which may be changed before anyone else has it.
func (s *State) change() *State {
	if s == nil {
		return &State{}
	}
	made := *s
	return &made
}

// changedConnections returns the changes of connections.
func (s *State) changedConnections() *conntrack.Changes {
	if s == nil {
		return nil
	}
	return s.connections
}

// withConnections returns the state after a change of connections, the same one after none.
func (s *State) withConnections(connections *conntrack.Changes) *State {
	if s.changedConnections() == connections {
		return s
	}
	made := s.change()
	made.connections = connections
	return made
}

// learnedFlows returns the learned flows.
func (s *State) learnedFlows() *learned {
	if s == nil {
		return nil
	}
	return s.learned
}

// WithLearned returns the state with the flows that another one has in addition.
func (s *State) WithLearned(other *State) *State {
	for flow := other.learnedFlows(); flow != nil; flow = flow.before {
		s = s.learn(*flow)
	}
	return s
}

// learn returns the state after a learn action. A flow that it has already is not added.
func (s *State) learn(flow learned) *State {
	for known := s.learnedFlows(); known != nil; known = known.before {
		if known.equal(flow) {
			return s
		}
	}
	flow.before = s.learnedFlows()
	made := s.change()
	made.learned = &flow
	return made
}

// sent is a frame that a question put into a device of a network namespace of a node, with the connections that it
// opened or changed.
type sent struct {
	node   string
	frame  linux.Sent
	opened []string
	before *sent
}

// send returns the state after a frame was put into a device of a node, and opened connections.
func (s *State) send(node string, frame linux.Sent, opened []string) *State {
	made := s.change()
	made.sent = &sent{node, frame, opened, made.sent}
	return made
}

// sentInto returns what was put into devices of a node, in order.
func (s *State) sentInto(node string) (all []*sent) {
	if s == nil {
		return nil
	}
	for one := s.sent; one != nil; one = one.before {
		if one.node == node {
			all = append(all, one)
		}
	}
	slices.Reverse(all)
	return all
}
