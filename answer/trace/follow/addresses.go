package follow

import (
	"cmp"
	"slices"

	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/pass"
)

// A live bridge learns the source address of each packet that an action NORMAL forwards, and sends
// later packets to that address out of one port. ofproto/trace learns nothing, so it floods the
// answers to packets of the same question.

// address is a MAC address that a bridge learned from a packet of the question. before is the one that was
// learned before it.
type address struct {
	before       *address
	node, bridge string
	mac, vlan    string     // in which it was learned, "" for none
	port         *host.Port // on which it was learned; nil for one that leads to another bridge
}

// learnedAddresses returns the addresses that bridges learned.
func (s *State) learnedAddresses() *address {
	if s == nil {
		return nil
	}
	return s.addresses
}

// learnAddress returns the state after a bridge has learned an address.
func (s *State) learnAddress(learned address) *State {
	learned.before = s.learnedAddresses()
	if known := learned.before.find(learned.node, learned.bridge, learned.mac, learned.vlan); known != nil && known.port == learned.port {
		return s
	}
	made := s.change()
	made.addresses = &learned
	return made
}

// find returns where a bridge learned an address last, nil for nowhere.
func (a *address) find(node, bridge, mac, vlan string) *address {
	for ; a != nil; a = a.before {
		if a.node == node && a.bridge == bridge && a.mac == mac && a.vlan == vlan {
			return a
		}
	}
	return nil
}

// learnAddresses returns the state after the bridges of a node have learned from a packet that entered by
// a port, nil for none.
func (s *State) learnAddresses(node *host.Host, entry *host.Port, printed *pass.Pass, packet flow.Packet) *State {
	for i, stage := range printed.Stages {
		if !slices.Contains(stage.Lines, "NORMAL") {
			continue
		}
		learned := address{node: node.Name, bridge: stage.Bridge}
		fields := stageFields{printed, i}
		switch {
		case entry == nil || entry.Bridge != stage.Bridge: // by a patch port
			learned.mac, learned.vlan = fields.value("dl_src"), fields.value("dl_vlan")
		case len(printed.Resumed) == 0 && isFirst(printed.Stages[:i], stage.Bridge):
			learned.mac, learned.vlan, learned.port = packet.Get("dl_src"), vlanAt(entry, packet), entry
		}
		if learned.mac != "" {
			s = s.learnAddress(learned)
		}
	}
	return s
}

// isFirst reports whether a packet has not left the bridge that it entered: all stages before are of that
// bridge.
func isFirst(before []pass.Stage, bridge string) bool {
	return !slices.ContainsFunc(before, func(stage pass.Stage) bool { return stage.Bridge != bridge })
}

// vlanAt returns the VLAN of a packet at a port: its own, or that of the port (ovs-vswitchd.conf.db(5),
// Port, tag), "" for none.
func vlanAt(port *host.Port, packet flow.Packet) string {
	return cmp.Or(packet.Get("dl_vlan"), port.Tag)
}

// isLearnedElsewhere reports whether a flood sends a packet out of a port, although the bridge has
// learned from a packet of the question that its destination is at another.
func (s *step) isLearnedElsewhere(port *host.Port, packet flow.Packet) bool {
	floods := func(stage pass.Stage) bool { return stage.Bridge == port.Bridge && stage.Floods() }
	if !slices.ContainsFunc(s.hop.Pass.Stages, floods) {
		return false
	}
	found := s.state.learnedAddresses().find(s.host.Name, port.Bridge, packet.Get("dl_dst"), vlanAt(port, packet))
	return found != nil && !port.IsOneWith(found.port)
}
