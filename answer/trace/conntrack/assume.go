package conntrack

import (
	"errors"

	"ovs-offline/pkg/openflow/odp"
)

// errNotRecorded is the reason for which the headers of a packet are not known after address
// translation.
var errNotRecorded = errors.New("the connection is not recorded, and whether it is translated is not known")

// handleAssumed handles a packet of a connection that is not known: it opens the connection in the
// state that is assumed, and lets the packet belong to it.
func (t Tracker) handleAssumed(r *Result, tuple Tuple, ct odp.Track) error {
	if t.Assumed.Inv {
		r.markInvalid(ct.Zone)
		return nil
	}
	connection := &Connection{Zone: ct.Zone, Orig: tuple, Reply: tuple.reverse(), SeenReply: true, Known: true, OrigState: established, ReplyState: established, assumed: true}
	if t.Assumed.Rpl {
		connection.Orig, connection.Reply = connection.Reply, connection.Orig
	}
	r.Changes = r.Changes.add(t.Name, connection, false)
	return t.handleKnown(r, connection, t.Assumed.Rpl, ct)
}

// established is the state of a TCP connection.
const established = "ESTABLISHED"
