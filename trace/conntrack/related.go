package conntrack

import (
	"errors"

	"ovs-offline/trace/odp"
)

// errNotQuoted is the reason for which the state of an ICMP error is not known.
var errNotQuoted = errors.New("the packet inside the ICMP error is not known, and conntrack takes the connection from it")

// related handles an ICMP error: it belongs to the connection of the packet that it
// quotes, in the opposite direction, and takes part in its address translation.
func (n Node) related(r *Result, ct odp.Track) error {
	quoted := r.Subject.Quoted
	if quoted == nil {
		return n.unquoted(r, ct)
	}
	inner, ok := TupleOf(quoted.Packet, quoted.ID)
	if !ok {
		r.invalid(ct.Zone)
		return nil
	}
	e, reply, ok := n.lookup(r, ct, inner.reverse())
	switch {
	case !ok && n.Assumed != nil:
		return n.unquoted(r, ct)
	case !ok:
		r.invalid(ct.Zone)
		return nil
	}
	r.Entry = e
	meta := Meta{Tracked: true, Flags: Flags{Rel: true, Rpl: reply}, Zone: ct.Zone, Mark: e.Mark, Label: e.Label, Orig: e.Orig, entry: e, reply: reply}
	if r.Subject.Meta.known {
		meta.Flags = r.Subject.Meta.Flags
	}
	if ct.NAT != nil && !meta.Flags.SNAT && !meta.Flags.DNAT {
		r.Subject.translateError(e, reply, &meta.Flags)
	}
	r.Subject.Meta = meta
	return nil
}

// unquoted handles an ICMP error about a connection that is not known.
func (n Node) unquoted(r *Result, ct odp.Track) error {
	switch {
	case n.Assumed == nil:
		return errNotQuoted
	case n.Assumed.Inv:
		r.invalid(ct.Zone)
		return nil
	case ct.NAT != nil:
		return errNotRecorded
	}
	r.Subject.Meta = Meta{Tracked: true, Flags: *n.Assumed, Zone: ct.Zone}
	return nil
}

// translateError translates the outer addresses that belong to the connection, and the
// quoted packet, whose direction is the opposite.
func (s *Subject) translateError(e *Entry, reply bool, f *Flags) {
	from, to := e.directions(reply)
	src, dst, _ := s.Packet.Addresses()
	if from.Src != to.Src {
		src, f.SNAT = to.Src, true
	}
	if from.Dst != to.Dst {
		dst, f.DNAT = to.Dst, true
	}
	s.Packet.SetAddresses(src, dst)
	quoted := *s.Quoted
	quoted.Packet = quoted.Packet.Clone()
	quoted.write(to.reverse())
	s.Quoted = &quoted
}
