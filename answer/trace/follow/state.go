package follow

import "ovs-offline/answer/trace/conntrack"

// State is what the packets of one question have changed on all nodes: connections, flows that learn
// actions added, and the addresses that bridges learned. It never changes; each change makes a new State, so
// alternatives can continue from the same one. The nil State has no changes.
type State struct {
	connections *conntrack.Changes
	learned     *learned
	addresses   *address
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
	return &State{connections, s.learnedFlows(), s.learnedAddresses()}
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
	return &State{s.changedConnections(), &flow, s.learnedAddresses()}
}
