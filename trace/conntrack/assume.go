package conntrack

import (
	"errors"

	"ovs-offline/trace/odp"
)

// errNotRecorded is the reason for which the headers of a packet are not known after address
// translation.
var errNotRecorded = errors.New("the connection is not recorded, and whether it is translated is not known")

// assume handles a packet of a connection that is not known: it opens the connection in the
// state that is assumed, and lets the packet belong to it.
func (n Node) assume(r *Result, tuple Tuple, ct odp.Track) error {
	if n.Assumed.Inv {
		r.invalid(ct.Zone)
		return nil
	}
	e := &Entry{Zone: ct.Zone, Orig: tuple, Reply: tuple.reverse(), SeenReply: true, Known: true, OrigState: established, ReplyState: established, assumed: true}
	if n.Assumed.Rpl {
		e.Orig, e.Reply = e.Reply, e.Orig
	}
	r.State = r.State.with(n.Name, e, false)
	return n.existing(r, e, n.Assumed.Rpl, ct)
}

// established is the state of a TCP connection.
const established = "ESTABLISHED"
