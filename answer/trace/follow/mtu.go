package follow

import (
	"fmt"

	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
)

// Sizes in bytes.
const (
	ethernetHeader = 14
	vlanTag        = 4
	mplsHeader     = 4
	// alwaysFits is the MTU that every device has which carries IPv6 (RFC 8200, 5).
	alwaysFits = 1280
	// usualMTU is the MTU of an Ethernet.
	usualMTU = 1500
)

// payload returns the number of bytes of a frame that count for the MTU of a port: all after the
// Ethernet header and one VLAN tag (packet_length of net/openvswitch/vport.c in Linux,
// netdev_dummy_send of Open vSwitch). It is 0 if the size is not given.
func (f frame) payload() int { return payload(f.subject.Packet, f.size) }

// Payload returns the bytes of the packet after the Ethernet header and one VLAN tag, 0 if its
// size is not given.
func (b Branch) Payload() int { return payload(b.Packet, b.Size) }

func payload(packet flow.Packet, size int) int {
	if size == 0 {
		return 0
	}
	return size - linkHeader(packet)
}

// MaxFrame returns the size of the largest frame with the headers of a packet that fits an MTU.
func MaxFrame(packet flow.Packet, mtu int) int { return mtu + linkHeader(packet) }

// linkHeader returns the number of bytes of a frame that do not count for an MTU.
func linkHeader(packet flow.Packet) int {
	if packet.IsTagged() {
		return ethernetHeader + vlanTag
	}
	return ethernetHeader
}

// encapsulated returns the number of bytes of the outer packet, 0 if the size is not given.
// headers counts the bytes from the outer IP header to the frame.
func (f frame) encapsulated(headers int) int {
	if f.size == 0 {
		return 0
	}
	return f.size + headers
}

// fits reports whether a packet of some bytes is not larger than the MTU of a port. If it is,
// or may be, fits adds the end. Without a recorded MTU, packets of up to assumed bytes fit.
func (s *step) fits(bytes int, port *host.Port, assumed int, end Branch, frame frame) bool {
	switch {
	case port.MTU == 0 && bytes > assumed:
		s.addUndetermined(fmt.Sprintf("the MTU of port %s was not recorded, and the packet has %d bytes", port.Name, bytes), frame)
		return false
	case port.MTU == 0, bytes <= port.MTU:
		return true
	}
	end.Kind, end.TooLargeFor, end.Port = Dropped, port.Name, port
	end.Why += fmt.Sprintf("the packet has %d bytes, and the MTU of port %s was %d", bytes, port.Name, port.MTU)
	s.add(end, frame)
	return false
}

// fitsUnderlay does the same for a packet that the kernel encapsulates and sends by its own
// routes. The kernel sends no fragments of a packet whose outer header is IPv6 or forbids them
// (ip6_fragment and ip_fragment of Linux).
func (s *step) fitsUnderlay(tunnel *odp.Tunnel, frame frame) bool {
	if frame.size == 0 {
		return true
	}
	out := s.host.Underlay(sourceOf(s.host, tunnel), tunnel.Dst)
	bytes := frame.encapsulated(tunnel.HeaderSize())
	device := out.Device
	if device == "" {
		device = "the underlay"
	}
	why := fmt.Sprintf("encapsulated, the packet has %d bytes, and the MTU of %s was %d", bytes, device, out.MTU)
	switch {
	case tunnel.HeaderSize() == 0:
		s.addUndetermined(fmt.Sprintf("how many bytes a %s tunnel adds to the packet is not known", tunnel.Type), frame)
		return false
	case out.MTU == 0 && bytes > usualMTU:
		s.addUndetermined(fmt.Sprintf("the MTU of %s to %v was not recorded, and the packet has %d bytes, encapsulated", device, tunnel.Dst, bytes), frame)
		return false
	case out.MTU == 0:
		s.hop.Assumed = append(s.hop.Assumed, fmt.Sprintf("the underlay of %s carries packets of %d bytes: its MTU was not recorded", s.host.Name, usualMTU))
		return true
	case bytes <= out.MTU:
		return true
	case !tunnel.DontFragment && tunnel.Dst.Is4():
		// Linux since 5.9 drops a packet whose own header forbids fragments (skb_tunnel_check_pmtu).
		s.addUndetermined(why+", and the tunnel has df_default=false: the kernel sends the packet in fragments, or drops it if its own header forbids fragments", frame)
		return false
	}
	s.add(Branch{Kind: Dropped, TooLargeFor: device, Why: why, Port: out.Port, Tunnel: tunnel}, frame)
	return false
}

// describeOversize returns a sentence about a packet that is larger than the MTU of the port
// where it enters, "" for another one.
func (s Start) describeOversize(port *host.Port) string {
	bytes := s.frame().payload()
	if port.MTU == 0 || bytes <= port.MTU {
		return ""
	}
	return fmt.Sprintf("what is behind port %s sends %d bytes, though the MTU of the port was %d", port.Name, bytes, port.MTU)
}
