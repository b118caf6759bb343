package conntrack

import "errors"

// Conntrack tracks datagrams. Linux's goes on with the whole datagram (net/openvswitch's
// handle_fragments) until it leaves the node, where the fragments are made again; the
// userspace datapath (lib/ipf.c of Open vSwitch) goes on with the fragments.

// errNotFirst is the reason for which the connection of a fragment is not known.
var errNotFirst = errors.New("conntrack reassembles fragments, and the first one of the datagram, which has its ports, is not known")

// reassemble makes a fragment the datagram that it is a part of. It assumes that the other
// fragments arrive as well.
func (s *Subject) reassemble() error {
	kind := s.Packet.Fragmentation()
	switch {
	case kind == "":
		return nil
	case kind == "first":
		s.Packet.Delete("nw_frag")
	case s.First == nil:
		return errNotFirst
	default:
		s.Packet = s.Packet.Datagram(*s.First)
	}
	s.Fragment = kind
	return nil
}

// Refragment makes a datagram that was reassembled the fragment again.
func (s *Subject) Refragment() {
	if s.Fragment == "" {
		return
	}
	first := s.Packet.Fragment("first")
	s.First, s.Packet, s.Fragment = &first, s.Packet.Fragment(s.Fragment), ""
}
