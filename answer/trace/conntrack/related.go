package conntrack

import (
	"errors"

	"ovs-offline/pkg/openflow/odp"
)

// errNotQuoted is the reason for which the state of an ICMP error is not known.
var errNotQuoted = errors.New("the packet inside the ICMP error is not known, and conntrack takes the connection from it")

// handleError handles an ICMP error: it belongs to the connection of the packet that it
// quotes, in the opposite direction, and takes part in its address translation.
func (t Tracker) handleError(r *Result, ct odp.Track) error {
	quoted := r.Subject.Quoted
	if quoted == nil {
		return t.handleUnquoted(r, ct)
	}
	inner, ok := TupleOf(quoted.Packet, quoted.ID)
	if !ok {
		r.markInvalid(ct.Zone)
		return nil
	}
	connection, reply, ok := t.lookup(r, ct, inner.reverse())
	switch {
	case !ok && t.Assumed != nil:
		return t.handleUnquoted(r, ct)
	case !ok:
		r.markInvalid(ct.Zone)
		return nil
	}
	r.Connection = connection
	meta := Meta{Tracked: true, Flags: Flags{Rel: true, Rpl: reply}, Zone: ct.Zone, Mark: connection.Mark, Label: connection.Label, Orig: connection.Orig, connection: connection, reply: reply}
	if r.Subject.Meta.known {
		meta.Flags = r.Subject.Meta.Flags
	}
	if ct.NAT != nil && !meta.Flags.SNAT && !meta.Flags.DNAT {
		r.Subject.translateError(connection, reply, &meta.Flags)
	}
	r.Subject.Meta = meta
	return nil
}

// handleUnquoted handles an ICMP error about a connection that is not known.
func (t Tracker) handleUnquoted(r *Result, ct odp.Track) error {
	switch {
	case t.Assumed == nil:
		return errNotQuoted
	case t.Assumed.Inv:
		r.markInvalid(ct.Zone)
		return nil
	case ct.NAT != nil:
		return errNotRecorded
	}
	r.Subject.Meta = Meta{Tracked: true, Flags: *t.Assumed, Zone: ct.Zone}
	return nil
}

// translateError translates the outer addresses that belong to the connection, and the
// quoted packet, whose direction is the opposite.
func (s *Subject) translateError(connection *Connection, reply bool, flags *Flags) {
	from, to := connection.Directions(reply)
	src, dst, _ := s.Packet.Addresses()
	if from.Src != to.Src {
		src, flags.SNAT = to.Src, true
	}
	if from.Dst != to.Dst {
		dst, flags.DNAT = to.Dst, true
	}
	s.Packet.SetAddresses(src, dst)
	quoted := *s.Quoted
	quoted.Packet = quoted.Packet.Clone()
	quoted.setTuple(to.reverse())
	s.Quoted = &quoted
}
