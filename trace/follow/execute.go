package follow

import (
	"context"
	"fmt"

	"ovs-offline/trace/odp"
)

// smallFrame is the size in bytes that is assumed of a packet whose size is not given.
const smallFrame = 100

// execute executes datapath actions on a frame. It stops at an action that makes the
// rest unknown.
func (s *step) execute(ctx context.Context, actions []odp.Action, f *frame) error {
	for _, action := range actions {
		goOn, err := s.one(ctx, action, f)
		if err != nil || !goOn {
			return err
		}
	}
	if f.pushed != nil && !f.sent {
		s.add(Branch{Kind: Dropped, Why: "the encapsulated packet leaves by no port of the underlay", Tunnel: &f.pushed.Tunnel}, *f)
	}
	return nil
}

// one executes an action. goOn is false if the actions after it don't apply.
func (s *step) one(ctx context.Context, action odp.Action, f *frame) (goOn bool, err error) {
	switch a := action.(type) {
	case odp.Output:
		return true, s.output(ctx, a.Port, f)
	case odp.Change:
		if err := a.Apply(&f.subject.Packet); err != nil {
			s.undetermined(fmt.Sprintf("action %s: %v", a.Name, err), *f)
			return false, nil
		}
		f.resize(a.Name)
	case odp.DecrementTTL:
		if !a.Apply(&f.subject.Packet) {
			s.add(Branch{Kind: Dropped, Why: "the TTL has expired"}, *f)
			return false, s.copyOf(ctx, a.Expired, *f)
		}
	case odp.SetTunnel:
		f.tunnel = &a.Tunnel
	case odp.PushTunnel:
		f.pushed, f.sent = &a, false
	case odp.PopTunnel:
		s.undetermined("the packet is decapsulated, and what it contains is not known: ask for the inner packet at the tunnel's port", *f)
		return false, nil
	case odp.Track:
		return s.track(a, f), nil
	case odp.Untrack:
		f.subject.Meta, f.track, f.found = f.untracked(), nil, nil
	case odp.Hash:
		f.hashed = true
	case odp.Recirculate:
		return true, s.recirculate(ctx, a.ID, *f)
	case odp.Clone:
		return true, s.copyOf(ctx, a.Actions, *f)
	case odp.Sample:
		return true, s.copyOf(ctx, a.Actions, *f)
	case odp.CheckLength:
		return true, s.checkLength(ctx, a, *f)
	case odp.Userspace:
		s.userspace(a, *f)
	case odp.Unknown:
		s.undetermined(fmt.Sprintf("the datapath action %q is not known", a.Text), *f)
		return false, nil
	case odp.Meter, odp.Truncate, odp.Drop:
	}
	return true, nil
}

// copyOf executes actions on a copy of the frame.
func (s *step) copyOf(ctx context.Context, actions []odp.Action, f frame) error {
	f.subject.Packet = f.subject.Packet.Clone()
	return s.execute(ctx, actions, &f)
}

func (s *step) checkLength(ctx context.Context, a odp.CheckLength, f frame) error {
	size := f.size
	if size == 0 {
		size = smallFrame
		if a.GreaterText != a.Text {
			s.hop.Assumed = append(s.hop.Assumed, fmt.Sprintf("the frame has at most %d bytes", a.Size))
		}
	}
	if size > a.Size {
		return s.copyOf(ctx, a.Greater, f)
	}
	return s.copyOf(ctx, a.AtMost, f)
}

// resize keeps the size of a frame whose VLAN tags change.
func (f *frame) resize(action string) {
	const tag = 4
	switch {
	case f.size == 0:
	case action == "push_vlan", action == "push_mpls":
		f.size += tag
	case action == "pop_vlan", action == "pop_mpls":
		f.size -= tag
	}
}
