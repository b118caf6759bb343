package follow

import (
	"fmt"

	"ovs-offline/trace/flow"
	"ovs-offline/trace/host"
	"ovs-offline/trace/odp"
)

// Sizes in bytes.
const (
	ethernetHeader = 14
	vlanTag        = 4
	// alwaysFits is the MTU that every device has which carries IPv6 (RFC 8200, 5).
	alwaysFits = 1280
	// usualMTU is that of an Ethernet.
	usualMTU = 1500
)

// payload returns the bytes of a frame that count for the MTU of a port: those after the
// Ethernet header and one VLAN tag (packet_length of net/openvswitch/vport.c in Linux,
// netdev_dummy_send of Open vSwitch). It is 0 if the size is not given.
func (f frame) payload() int { return payload(f.subject.Packet, f.size) }

// Payload returns the bytes of the packet after the Ethernet header and one VLAN tag, 0 if its
// size is not given.
func (b Branch) Payload() int { return payload(b.Packet, b.Size) }

func payload(p flow.Packet, size int) int {
	switch {
	case size == 0:
		return 0
	case p.IsTagged():
		return size - ethernetHeader - vlanTag
	}
	return size - ethernetHeader
}

// encapsulated returns the bytes of the outer packet, 0 if the size is not given. headers
// are those from the outer IP header to the frame.
func (f frame) encapsulated(headers int) int {
	if f.size == 0 {
		return 0
	}
	return f.size + headers
}

// fits reports whether a packet of some bytes is not larger than the MTU of a port. For one
// that is, or may be, it adds b as the end. Without a recorded MTU, packets of up to assumed
// bytes fit.
func (s *step) fits(bytes int, port *host.Port, assumed int, b Branch, f frame) bool {
	switch {
	case port.MTU == 0 && bytes > assumed:
		s.undetermined(fmt.Sprintf("the MTU of port %s was not recorded, and the packet has %d bytes", port.Name, bytes), f)
		return false
	case port.MTU == 0, bytes <= port.MTU:
		return true
	}
	b.Kind, b.TooLargeFor, b.Port = Dropped, port.Name, port
	b.Why += fmt.Sprintf("the packet has %d bytes, and the MTU of port %s was %d", bytes, port.Name, port.MTU)
	s.add(b, f)
	return false
}

// fitsUnderlay does the same for a packet that the kernel encapsulates and sends by its own
// routes. It sends no fragments of a packet whose outer header is IPv6, or says so
// (ip6_fragment and ip_fragment of Linux).
func (s *step) fitsUnderlay(tunnel *odp.Tunnel, f frame) bool {
	if f.size == 0 {
		return true
	}
	out := s.host.Underlay(s.sourceOf(tunnel), tunnel.Dst)
	bytes := f.encapsulated(tunnel.HeaderSize())
	device := out.Device
	if device == "" {
		device = "the underlay"
	}
	why := fmt.Sprintf("encapsulated, the packet has %d bytes, and the MTU of %s was %d", bytes, device, out.MTU)
	switch {
	case tunnel.HeaderSize() == 0:
		s.undetermined(fmt.Sprintf("how many bytes a %s tunnel adds to the packet is not known", tunnel.Type), f)
		return false
	case out.MTU == 0 && bytes > usualMTU:
		s.undetermined(fmt.Sprintf("the MTU of %s to %v was not recorded, and the packet has %d bytes, encapsulated", device, tunnel.Dst, bytes), f)
		return false
	case out.MTU == 0:
		s.hop.Assumed = append(s.hop.Assumed, fmt.Sprintf("the underlay of %s carries packets of %d bytes: its MTU was not recorded", s.host.Name, usualMTU))
		return true
	case bytes <= out.MTU:
		return true
	case !tunnel.DontFragment && tunnel.Dst.Is4():
		// skb_tunnel_check_pmtu of Linux since 5.9 drops those that must not be fragmented.
		s.undetermined(why+", and the tunnel has df_default=false: the kernel sends the packet in fragments, or drops it if its own header forbids fragments", f)
		return false
	}
	s.add(Branch{Kind: Dropped, TooLargeFor: device, Why: why, Port: out.Port, Tunnel: tunnel}, f)
	return false
}

// exceedsSender returns a sentence about a packet that is larger than the MTU of the port
// where it enters, "" for another one.
func (s Start) exceedsSender(port *host.Port) string {
	bytes := s.frame().payload()
	if port.MTU == 0 || bytes <= port.MTU {
		return ""
	}
	return fmt.Sprintf("what is behind port %s sends %d bytes, though the MTU of the port was %d", port.Name, bytes, port.MTU)
}
