package conntrack

// Changes are what the packets of one question have changed in the tables of all nodes: a list
// that begins with the last change. They are immutable: each change makes new Changes, so
// alternatives can continue from the same ones. Nil stands for no changes.
type Changes struct {
	before     *Changes
	node       string
	connection *Connection
	removed    bool
}

// add returns the changes with a change of a connection on a node, which is the last.
func (c *Changes) add(node string, connection *Connection, removed bool) *Changes {
	return &Changes{c, node, connection, removed}
}

// find returns the connection of a tuple as the last change left it. decided is true if
// the recorded table does not matter. The answer to a packet of the question has the port
// that the packet got, whichever NAT chooses.
func (c *Changes) find(node string, zone uint16, tuple Tuple) (match found, ok, decided bool) {
	for ; c != nil; c = c.before {
		if c.node != node || c.connection.Zone != zone {
			continue
		}
		for _, candidate := range []found{{c.connection, false}, {c.connection, true}} {
			direction := c.connection.Orig
			if candidate.reply {
				direction = c.connection.Reply
				if c.connection.taken {
					continue // see mayHold
				}
			}
			if keyOf(zone, direction) == keyOf(zone, tuple) && sameID(tuple, candidate) {
				return candidate, !c.removed, true
			}
		}
	}
	return found{}, false, false
}

// mayHold returns why a packet without a connection may belong to one that the question made:
// the address or port that NAT chose for it is not known, and may be the packet's. It returns ""
// if the packet can't.
func (c *Changes) mayHold(node string, zone uint16, tuple Tuple) string {
	for ; c != nil; c = c.before {
		if c.node == node && c.connection.Zone == zone && !c.removed && c.connection.unsure != "" && c.connection.mayHave(tuple) {
			return c.connection.unsure
		}
	}
	return ""
}

// mayHave reports whether the answers to a connection may have a tuple, where an address or port
// of the connection is not known: its other end has the same address and port.
func (c *Connection) mayHave(answer Tuple) bool {
	if answer.Proto != c.Reply.Proto {
		return false
	}
	from := answer.Src == c.Reply.Src && answer.SrcPort == c.Reply.SrcPort
	to := answer.Dst == c.Reply.Dst && answer.DstPort == c.Reply.DstPort
	return from || to
}
