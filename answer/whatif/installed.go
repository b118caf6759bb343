package whatif

import (
	"fmt"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/pkg/ovsdb/file"
)

// Installed returns what the ovn-controller of a node has installed now, and its names.
func (s *Session) Installed(node string) (flowdiff.State, *flowdiff.Names, error) {
	state := s.now.states[node]
	names, err := flowdiff.NewNames(s.now.nb, s.now.sb, state.Flows)
	if err != nil {
		return state, nil, fmt.Errorf("node %s: %w", node, err)
	}
	return state, names, nil
}

// SB returns the southbound database as it is computed now. It is valid until the next computation.
func (s *Session) SB() *file.Index { return s.now.sb }
