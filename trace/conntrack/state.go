package conntrack

// State is what the packets of one question have changed in the tables of all nodes. It
// never changes; each change makes a new State, so alternatives can continue from the
// same one. The nil State has no changes.
type State struct {
	before  *State
	node    string
	entry   *Entry
	removed bool
}

// with returns the state after a change of a connection on a node.
func (s *State) with(node string, e *Entry, removed bool) *State {
	return &State{s, node, e, removed}
}

// find returns the connection of a tuple as the last change left it. decided is true if
// the recorded table does not matter.
func (s *State) find(node string, zone uint16, tuple Tuple) (f found, ok, decided bool) {
	for ; s != nil; s = s.before {
		if s.node != node || s.entry.Zone != zone {
			continue
		}
		for _, c := range []found{{s.entry, false}, {s.entry, true}} {
			direction := s.entry.Orig
			if c.reply {
				direction = s.entry.Reply
				if s.entry.unsure != "" {
					continue // see mayHold
				}
			}
			if keyOf(zone, direction) == keyOf(zone, tuple) && sameID(tuple, c) {
				return c, !s.removed, true
			}
		}
	}
	return found{}, false, false
}

// mayHold returns why a packet without a connection may answer one that the question made:
// the address or port that NAT chose for that is not known. It returns "" if the packet can't.
func (s *State) mayHold(node string, zone uint16, tuple Tuple) string {
	for ; s != nil; s = s.before {
		if s.node == node && s.entry.Zone == zone && !s.removed && s.entry.unsure != "" && s.entry.mayHave(tuple) {
			return s.entry.unsure
		}
	}
	return ""
}

// mayHave reports whether a tuple may be that of the answers to a connection with an address
// or port that is not known: its other end has the same address and port.
func (e *Entry) mayHave(answer Tuple) bool {
	if answer.Proto != e.Reply.Proto {
		return false
	}
	from := answer.Src == e.Reply.Src && answer.SrcPort == e.Reply.SrcPort
	to := answer.Dst == e.Reply.Dst && answer.DstPort == e.Reply.DstPort
	return from || to
}
