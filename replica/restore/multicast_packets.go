package restore

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net/netip"
	"strings"

	"ovs-offline/internal/workdir"
)

// portTags tells how a packet of a VLAN is tagged when it comes in by a port.
type portTags struct {
	byName map[string]portTag
	cvlans map[string]string // as ovs-vsctl list port shows them
}

type portTag struct {
	mode string
	tag  int
}

// portTags reads the ports' VLAN settings.
func (n *Node) portTags(ctx context.Context) (portTags, error) {
	rows, err := n.DB.Select(ctx, "Port", "name", "vlan_mode", "tag")
	if err != nil {
		return portTags{}, err
	}
	t := portTags{byName: map[string]portTag{}}
	for _, r := range rows {
		tag, _ := r.Int("tag")
		t.byName[r.String("name")] = portTag{mode: r.String("vlan_mode"), tag: tag}
	}
	t.cvlans, err = n.listed(workdir.RecordedListPort, "cvlans")
	return t, err
}

// of is the tag with which a packet comes in by the port to be in the VLAN; 0 for none.
func (t portTags) of(p *Port, vlan uint16) uint16 {
	settings := t.byName[p.Name]
	if settings.mode == "dot1q-tunnel" {
		// What comes in by it is a customer's, with a tag that the port lets in.
		var first []uint16
		if err := json.Unmarshal([]byte("["+strings.Trim(t.cvlans[p.Name], "[]")+"]"), &first); err == nil && len(first) > 0 {
			return first[0]
		}
		return 0
	}
	if int(vlan) == settings.tag {
		return 0 // an access port's or a native VLAN
	}
	return vlan
}

const (
	protocolIGMP   = 2
	protocolICMPv6 = 58
)

// igmpReport is IGMPv2's membership report (RFC 2236).
func igmpReport(source [6]byte, tag uint16, address netip.Addr) []byte {
	return igmp(source, tag, address, 0x16, address.AsSlice())
}

// igmpQuery is IGMPv2's general query.
func igmpQuery(source [6]byte, tag uint16) []byte {
	allSystems := netip.AddrFrom4([4]byte{224, 0, 0, 1})
	return igmp(source, tag, allSystems, 0x11, make([]byte, 4))
}

func igmp(source [6]byte, tag uint16, to netip.Addr, kind byte, address []byte) []byte {
	message := append([]byte{kind, 0, 0, 0}, address...)
	binary.BigEndian.PutUint16(message[2:], checksum(message))
	ip := []byte{0x46, 0xc0, 0, 0, 0, 0, 0, 0, 1, protocolIGMP, 0, 0}
	// From an address that documents use (RFC 5737); a querier has to have one.
	ip = append(ip, 192, 0, 2, 1)
	ip = append(ip, to.AsSlice()...)
	ip = append(ip, 0x94, 4, 0, 0) // router alert
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(message)))
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	low := to.As4()
	frame := ethernet([6]byte{0x01, 0x00, 0x5e, low[1] & 0x7f, low[2], low[3]}, source, tag, 0x0800)
	return append(append(frame, ip...), message...)
}

// mldReport is MLDv1's listener report (RFC 2710).
func mldReport(source [6]byte, tag uint16, address netip.Addr) []byte {
	from := netip.MustParseAddr("fe80::1").AsSlice()
	to := address.As16()
	message := append([]byte{131, 0, 0, 0, 0, 0, 0, 0}, to[:]...)
	pseudo := append(append(from, to[:]...), 0, 0, 0, byte(len(message)), 0, 0, 0, protocolICMPv6)
	binary.BigEndian.PutUint16(message[2:], checksum(append(pseudo, message...)))
	hopByHop := []byte{protocolICMPv6, 0, 5, 2, 0, 0, 1, 0} // router alert
	ip := []byte{0x60, 0, 0, 0, 0, byte(len(hopByHop) + len(message)), 0, 1}
	ip = append(append(ip, from[:16]...), to[:]...)
	frame := ethernet([6]byte{0x33, 0x33, to[12], to[13], to[14], to[15]}, source, tag, 0x86dd)
	return append(append(append(frame, ip...), hopByHop...), message...)
}

// ethernet is a frame's head, with an 802.1Q tag unless that is 0.
func ethernet(to, from [6]byte, tag, kind uint16) []byte {
	frame := append(append([]byte{}, to[:]...), from[:]...)
	if tag != 0 {
		frame = append(frame, 0x81, 0x00)
		frame = binary.BigEndian.AppendUint16(frame, tag)
	}
	return binary.BigEndian.AppendUint16(frame, kind)
}

// checksum is the Internet's (RFC 1071).
func checksum(data []byte) uint16 {
	var sum uint32
	for i, b := range data {
		if i%2 == 0 {
			sum += uint32(b) << 8
		} else {
			sum += uint32(b)
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
