package sets

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
)

// fragment is a part of an IPv4 packet without options and VLAN.
type fragment struct {
	first    *step // the fragment of the packet that is sent first; its number is in all
	from, to int   // of the data behind the IP header
}

const ipHeader = 20

// cut returns the frame with this part of a packet.
func (part *fragment) cut(packet []byte) []byte {
	start := etherLength + ipHeader
	header := slices.Clone(packet[etherLength:start])
	length := len(packet) - start
	binary.BigEndian.PutUint16(header[2:], uint16(ipHeader+part.to-part.from))
	place := uint16(part.from / 8)
	if part.to < length {
		place |= 1 << 13 // more follow
	}
	binary.BigEndian.PutUint16(header[6:], place)
	binary.BigEndian.PutUint16(header[10:], 0)
	binary.BigEndian.PutUint16(header[10:], checksum(header))
	return slices.Concat(packet[:etherLength], header, packet[start+part.from:start+part.to])
}

// checksum returns the checksum of an IP header.
func checksum(header []byte) uint16 {
	sum := 0
	for pair := range slices.Chunk(header, 2) {
		sum += int(binary.BigEndian.Uint16(pair))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// datagram adds the fragments of a packet. The sizes are those of the data behind the IP
// header, multiples of 8 but for the last; order is the order in which they are sent. It
// returns them in that order.
func (p *plan) datagram(shows string, f frame, sizes, order []int) (sent []*step) {
	var parts []fragment
	at := 0
	for _, size := range sizes {
		parts = append(parts, fragment{from: at, to: at + size})
		at += size
	}
	f.size = ipHeader + at
	for _, n := range order {
		part := parts[n]
		f.fragment = &part
		s := p.unplanned(fmt.Sprintf("%s: bytes %d to %d", shows, part.from, part.to), f, slices.Clone(sent)...)
		sent = append(sent, s)
		part.first = sent[0]
	}
	return sent
}

// Whole returns the packet with all that came out for it: of a fragment, the part of its
// datagram that came out in its place, whichever fragment made the datagram come out.
func (s *Set) Whole(p *Packet) *Packet {
	if p.Datagram == 0 {
		return p
	}
	whole := *p
	whole.Outputs, whole.Tunnels = nil, nil
	for _, other := range s.Packets {
		if other.Datagram != p.Datagram {
			continue
		}
		for _, o := range other.Outputs {
			if !o.Own || place(o.Bytes) == place(p.Bytes) {
				whole.Outputs = append(whole.Outputs, o)
			}
		}
		whole.Tunnels = append(whole.Tunnels, other.Tunnels...)
	}
	whole.Class = happened(whole.Outputs)
	return &whole
}

// Repetition returns the packet that is sent next and is the same as a packet of which nothing
// came out.
func (s *Set) Repetition(p *Packet) (*Packet, error) {
	if p.Class != Dropped {
		return nil, fmt.Errorf("packet %d was %s, and not lost before its sender sent it again", p.ID, p.Class)
	}
	for _, later := range s.Packets {
		if later.From == p.From && unlabelled(later.Flow) == unlabelled(p.Flow) && slices.Equal(later.After, append(slices.Clone(p.After), p.ID)) {
			return s.Whole(later), nil
		}
	}
	return nil, fmt.Errorf("the set does not repeat packet %d", p.ID)
}

// label is the field of a flow that holds the number of an IPv6 packet.
var label = regexp.MustCompile(`,ipv6_label=\w+`)

func unlabelled(flow string) string { return label.ReplaceAllString(flow, "") }

// place returns the offset of a fragment that a frame holds, and 0 for a whole packet.
func place(digits string) uint16 {
	raw, err := decode(digits)
	if err != nil || len(raw) < etherLength+ipHeader {
		return 0
	}
	return binary.BigEndian.Uint16(raw[etherLength+6:]) & 0x1fff
}
