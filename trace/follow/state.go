package follow

import "ovs-offline/trace/conntrack"

// State is what the packets of one question have changed on all nodes: connections, and
// flows that learn actions added. It never changes; each change makes a new State, so
// alternatives can continue from the same one. The nil State has no changes.
type State struct {
	connections *conntrack.State
	learned     *learned
}

// tracked returns the changes of connections.
func (s *State) tracked() *conntrack.State {
	if s == nil {
		return nil
	}
	return s.connections
}

// with returns the state after a change of connections, the same one after none.
func (s *State) with(connections *conntrack.State) *State {
	if s.tracked() == connections {
		return s
	}
	return &State{connections, s.flows()}
}

// flows returns the learned flows.
func (s *State) flows() *learned {
	if s == nil {
		return nil
	}
	return s.learned
}

// WithLearned returns the state with the flows that another one has in addition.
func (s *State) WithLearned(other *State) *State {
	for l := other.flows(); l != nil; l = l.before {
		s = s.learn(*l)
	}
	return s
}

// learn returns the state after a learn action. A flow that it has already is not added.
func (s *State) learn(l learned) *State {
	for known := s.flows(); known != nil; known = known.before {
		if known.equal(l) {
			return s
		}
	}
	l.before = s.flows()
	return &State{s.tracked(), &l}
}
