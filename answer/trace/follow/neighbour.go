package follow

import (
	"context"
	"fmt"
	"net/netip"

	"ovs-offline/answer/trace/conntrack"
	wire "ovs-offline/answer/trace/frame"
	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/replica/linux"
)

// request is a frame by which the kernel asks for the MAC address of a neighbour.
type request struct {
	device string
	packet flow.Packet
	target netip.Addr
}

// requestIn returns the request that the kernel sent in place of a packet, nil for none.
func requestIn(passage linux.Passage) *request {
	for _, out := range passage.Out {
		read, err := wire.Parse(out.Bytes)
		if err != nil {
			continue
		}
		name := ""
		if kind, _ := read.Packet.Number("icmp_type"); read.Packet.Get("arp_op") == "1" {
			name = "arp_tpa"
		} else if kind == solicitation && read.Packet.EtherType() == flow.IPv6 {
			name = "nd_target"
		}
		if target, ok := read.Packet.Address(name); ok {
			return &request{out.Device, read.Packet, target}
		}
	}
	return nil
}

// The types of ICMPv6 messages for neighbours (RFC 4861).
const (
	solicitation  = 135
	advertisement = 136
)

// resolve follows a request for a MAC address, puts the answer into the device that sent the request, and
// returns what comes out then. Without an answer it adds the end of the packet, and ok is false. received reports
// that the namespace itself has received the packet, and needs the address for what it sends back.
func (s *kernelStep) resolve(ctx context.Context, asked *request, received bool, came frame) (passage linux.Passage, ok bool, err error) {
	device := host.Device{Namespace: s.device.Namespace, Name: asked.device}
	answer, why, err := s.neighbour(ctx, device, asked)
	if err != nil {
		return passage, false, err
	}
	if why != "" && received {
		s.addReceived(came)
		return passage, false, nil
	}
	if why != "" {
		s.addUndetermined(fmt.Sprintf("%s asks for the MAC address of %s by %s, and %s", s.hop.Bridge, asked.target, asked.device, why), came)
		return passage, false, nil
	}
	raw, err := wire.Frame{Packet: answer}.Bytes()
	if err != nil {
		return passage, false, err
	}
	if passage, err = s.send(ctx, device.Name, raw); err == nil {
		s.hop.Pass.Stages = append(s.hop.Pass.Stages, passIn(s.hop.Bridge, passage).Stages...)
	}
	return passage, true, err
}

// neighbour returns the answer to a request for a MAC address that a device sent, or why there is none.
func (s *kernelStep) neighbour(ctx context.Context, device host.Device, asked *request) (answer flow.Packet, why string, err error) {
	port, ok := s.host.PortOf(device)
	if !ok {
		return answer, "what that device leads to was not recorded", nil
	}
	w := &walk{tracer: s.tracer, initial: s.state, assumed: s.assumed, asks: true}
	root, state, err := w.enter(ctx, s.host, port, flow.Packet{}, frame{subject: conntrack.Subject{Packet: asked.packet}}, s.state, count{})
	if err != nil {
		return answer, "", err
	}
	s.state = state // bridges on the way have learned addresses
	for hop, branch := range root.Ends() {
		switch {
		case isAnswer(branch.Packet, asked.target) && branch.Port != nil && branch.Port.Name == device.Name && hop.Node == s.host.Name:
			return branch.Packet, "", nil
		case branch.Kind != Delivered || len(branch.Networks) > 0:
		default:
			if mac := s.tracer.macOf(hop.Node, branch.Port, asked.target); mac != "" {
				return answerOf(asked, mac), "", nil
			}
		}
	}
	return answer, "no answer to that was recorded", nil
}

// isAnswer reports whether a packet tells the MAC address of an address.
func isAnswer(packet flow.Packet, address netip.Addr) bool {
	name := "arp_spa"
	if packet.EtherType() == flow.IPv6 {
		name = "nd_target"
	}
	told, ok := packet.Address(name)
	return ok && told == address && tellsMAC(packet)
}

// tellsMAC reports whether a packet is an ARP reply or a neighbour advertisement.
func tellsMAC(packet flow.Packet) bool {
	kind, _ := packet.Number("icmp_type")
	return packet.Get("arp_op") == "2" || kind == advertisement && packet.EtherType() == flow.IPv6
}

// aboutMAC reports whether a packet asks for a MAC address, or tells one.
func aboutMAC(packet flow.Packet) bool {
	kind, _ := packet.Number("icmp_type")
	return packet.EtherType() == flow.ARP || packet.EtherType() == flow.IPv6 && (kind == solicitation || kind == advertisement)
}

// answerOf returns what a neighbour with a MAC address answers to a request.
func answerOf(asked *request, mac string) flow.Packet {
	packet := asked.packet.Clone()
	sender := packet.Get("dl_src")
	packet.Set("dl_src", mac)
	packet.Set("dl_dst", sender)
	if packet.Get("arp_op") == "1" {
		address := packet.Get("arp_spa")
		packet.Set("arp_op", "2")
		packet.Set("arp_spa", packet.Get("arp_tpa"))
		packet.Set("arp_sha", mac)
		packet.Set("arp_tpa", address)
		packet.Set("arp_tha", sender)
		return packet
	}
	packet.SetAddresses(asked.target, sourceOfPacket(asked.packet))
	packet.Set("icmp_type", fmt.Sprint(advertisement))
	packet.DeleteFunc(func(field string) bool { return field == "nd_sll" })
	packet.Set("nd_tll", mac)
	return packet
}

// sourceOfPacket returns the source address of an IP packet.
func sourceOfPacket(packet flow.Packet) netip.Addr {
	source, _, _ := packet.Addresses()
	return source
}

// macOf returns the MAC address with which what is at a port answers for an address, "" if it does not.
func (t *Tracer) macOf(node string, port *host.Port, address netip.Addr) string {
	if t.options.Neighbour == nil || port == nil || port.IfaceID == "" {
		return ""
	}
	return t.options.Neighbour(node, port.IfaceID, address)
}
