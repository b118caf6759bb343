package follow

import (
	"context"
	"fmt"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/pkg/openflow/odp"
)

// smallFrame is the size in bytes that is assumed of a packet whose size is not given.
const smallFrame = 100

// execute executes datapath actions on a frame. It stops at an action that makes the
// rest unknown.
func (s *step) execute(ctx context.Context, actions []odp.Action, frame *frame) error {
	for _, action := range actions {
		more, err := s.executeAction(ctx, action, frame)
		if err != nil || !more {
			return err
		}
	}
	if frame.pushed != nil && !frame.sent {
		s.add(Branch{Kind: Dropped, Why: "the encapsulated packet leaves by no port of the underlay", Tunnel: &frame.pushed.Tunnel}, *frame)
	}
	return nil
}

// executeAction executes an action. more is false if the actions after it don't apply.
func (s *step) executeAction(ctx context.Context, action odp.Action, frame *frame) (more bool, err error) {
	switch action := action.(type) {
	case odp.Output:
		return true, s.output(ctx, action.Port, frame)
	case odp.HeaderChange:
		if err := action.Apply(&frame.subject.Packet); err != nil {
			s.addUndetermined(fmt.Sprintf("action %s: %v", action.Name, err), *frame)
			return false, nil
		}
		frame.resize(action.Name)
	case odp.DecrementTTL:
		if !action.Apply(&frame.subject.Packet) {
			s.add(Branch{Kind: Dropped, Why: "the TTL has expired"}, *frame)
			return false, s.executeCopy(ctx, action.Expired, *frame)
		}
	case odp.SetTunnel:
		frame.tunnel = &action.Tunnel
	case odp.PushTunnel:
		frame.pushed, frame.sent = &action, false
	case odp.PopTunnel:
		s.addUndetermined("the packet is decapsulated, and what it contains is not known: ask for the inner packet at the tunnel's port", *frame)
		return false, nil
	case odp.Track:
		return s.track(action, frame), nil
	case odp.Untrack:
		frame.subject.Meta, frame.track, frame.found = conntrack.Meta{}, nil, nil
	case odp.Hash:
		frame.hashed = true
	case odp.Recirculate:
		return true, s.recirculate(ctx, action.ID, *frame)
	case odp.Clone:
		return true, s.executeCopy(ctx, action.Actions, *frame)
	case odp.Sample:
		return true, s.executeCopy(ctx, action.Actions, *frame)
	case odp.CheckLength:
		return true, s.checkLength(ctx, action, *frame)
	case odp.Userspace:
		s.handleUserspace(action, *frame)
	case odp.Unknown:
		s.addUndetermined(fmt.Sprintf("the datapath action %q is not known", action.Text), *frame)
		return false, nil
	case odp.Meter, odp.Truncate, odp.Drop:
	}
	return true, nil
}

// executeCopy executes actions on a copy of the frame.
func (s *step) executeCopy(ctx context.Context, actions []odp.Action, frame frame) error {
	frame.subject.Packet = frame.subject.Packet.Clone()
	return s.execute(ctx, actions, &frame)
}

// checkLength executes the actions of check_pkt_len for the size of the frame.
func (s *step) checkLength(ctx context.Context, check odp.CheckLength, frame frame) error {
	size := frame.size
	if size == 0 {
		size = smallFrame
		if check.GreaterText != check.Text {
			s.hop.Assumed = append(s.hop.Assumed, fmt.Sprintf("the frame has at most %d bytes", check.Size))
		}
	}
	if size > check.Size {
		return s.executeCopy(ctx, check.Greater, frame)
	}
	return s.executeCopy(ctx, check.AtMost, frame)
}

// resize changes the size of a frame with its VLAN tags and MPLS headers.
func (f *frame) resize(action string) {
	if f.size == 0 {
		return
	}
	switch action {
	case "push_vlan":
		f.size += vlanTag
	case "pop_vlan":
		f.size -= vlanTag
	case "push_mpls":
		f.size += mplsHeader
	case "pop_mpls":
		f.size -= mplsHeader
	}
}
