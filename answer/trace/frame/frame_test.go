package frame_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/frame"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

// Frames of the lab: their bytes in hexadecimal.
const (
	tcp4    = "fa163e100006fa163e100005080045000030004b00004006e521c0a80a05c0a80a064e2d0016000003e9000013895018ffff038000006f76732d6c61622e"
	vlanTCP = "fa163e100006fa163e1000058100607808004500003000" +
		"4b00004006e521c0a80a05c0a80a064e2d0016000003e9000013895002ffff038000006f76732d6c61622e"
	arp     = "fffffffffffffa163e10000508060001080006040001fa163e100005c0a80a05000000000000c0a80a01"
	echo    = "fa163e100006fa163e1000050800450000200000000040010000c0a80a05c0a80a060800000012340001deadbeef"
	unreach = "fa163e100005fa163e1000060800450000380000000040010000c0a80a06c0a80a050303000000000000" +
		"4500001c000000004011e521c0a80a05c0a80a064e2d003500080000"
	echo6     = "fa163e100006fa163e10000586dd600000af00103a40fd000010000000000000000000000005fd000010000000000000000000000006" + "8000000012340001deadbeefdeadbeef"
	solicit6  = "3333ff000001fa163e10000586dd6000000000203afffd000010000000000000000000000005ff0200000000000000000001ff000001" + "8700000000000000" + "fd000010000000000000000000000001" + "0101fa163e100005"
	fragment4 = "fa163e100006fa163e10000508004500001c004b20004011e521c0a80a05c0a80a064e2d003500080000"
	later4    = "fa163e100006fa163e10000508004500001c004b00054011e521c0a80a05c0a80a064e2d003500080000"
	gre4      = "fa163e100006fa163e10000508004500001c004b0000402fe521c0a80a05c0a80a064e2d003500080000"
)

func all() map[string]string {
	return map[string]string{"TCP": tcp4, "TCP in a VLAN": vlanTCP, "ARP": arp, "echo": echo, "unreachable": unreach,
		"IPv6 echo": echo6, "solicitation": solicit6, "first fragment": fragment4, "later fragment": later4, "GRE": gre4}
}

const (
	macs = "fa163e100006fa163e100005"
	udp  = "4e2d003500080000"
)

// ip4 returns a frame with a protocol, and what follows the IP header.
func ip4(protocol, payload string) string {
	return fmt.Sprintf("%s0800450000%02x004b000040%s0000c0a80a05c0a80a06%s", macs, 20+len(payload)/2, protocol, payload)
}

// ip6 returns a frame whose IPv6 header is followed by a header of a kind.
func ip6(next, payload string) string {
	return fmt.Sprintf("%s86dd60000000%04x%s40fd000010000000000000000000000005fd000010000000000000000000000006%s", macs,
		len(payload)/2, next, payload)
}

// unusual returns frames with headers that few packets have.
func unusual() map[string]string {
	const tags = "810020018100a002" // VLAN 1 of priority 1, and in it VLAN 2 of priority 5
	return map[string]string{
		"TCP in two VLANs":            macs + tags + tcp4[24:],
		"IPv6 in two VLANs":           macs + "88a8" + tags[4:] + echo6[24:],
		"ARP in two VLANs":            macs + tags + arp[24:],
		"three tags":                  macs + tags + "81000003" + tcp4[24:],
		"a tag of a provider":         macs + "88a80005" + tcp4[24:],
		"IPv6 hop-by-hop":             ip6("00", "1100010400000000"+udp),
		"IPv6 destination options":    ip6("3c", "1100010400000000"+udp),
		"IPv6 routing":                ip6("2b", "1100000000000000"+udp),
		"IPv6 authentication":         ip6("33", "1101000000000001"+"00000001"+udp),
		"IPv6 first fragment":         ip6("2c", "1100000100001234"+udp),
		"IPv6 later fragment":         ip6("2c", "1100001000001234"+udp),
		"IPv6 fragment of a whole":    ip6("2c", "1100000000001234"+udp),
		"IPv6 options and a fragment": ip6("00", "2c00010400000000"+"1100000100001234"+udp),
		"IPv6 without a next header":  ip6("3b", ""),
		"IPv6 ESP":                    ip6("32", "0000000100000001"),
		"ICMP without a header":       ip4("01", ""),
		"ICMP with half a header":     ip4("01", "08000000"),
		"protocol 255":                ip4("ff", ""),
		"TCP without a header":        ip4("06", ""),
		"TCP with ports only":         ip4("06", "4e2d0035"),
		"UDP without a header":        ip4("11", ""),
		"ICMPv6 without a header":     ip6("3a", ""),
		"solicitation without target": ip6("3a", "8700000000000000"),
		"spanning tree":               "0180c2000000fa163e10000500264242030000000000",
		"SNAP":                        "0180c2000000fa163e1000050030aaaa03000000" + tcp4[24:],
		"ARP that is short":           arp[:48],
	}
}

// TestFramesAreReadAsOpenvSwitchReadsThem compares with ovs-ofctl parse-pcap.
func TestFramesAreReadAsOpenvSwitchReadsThem(t *testing.T) {
	ovs.Need(t, "ovs-ofctl")
	frames := all()
	maps.Copy(frames, unusual())
	for name, digits := range frames {
		raw, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(name, err)
		}
		pcap := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
		for _, word := range []uint32{2 | 4<<16, 0, 0, 65535, 1, 0, 0, uint32(len(raw)), uint32(len(raw))} {
			pcap = binary.LittleEndian.AppendUint32(pcap, word)
		}
		file := filepath.Join(t.TempDir(), "frame.pcap")
		if err := os.WriteFile(file, append(pcap, raw...), 0o644); err != nil {
			t.Fatal(err)
		}
		want, err := flow.Parse(strings.TrimSpace(ovs.Run(t, "ovs-ofctl", "parse-pcap", file)))
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := frame.Parse(raw)
		want.DeleteFunc(func(field string) bool {
			return field == "in_port" || strings.HasPrefix(field, "vlan_tci") ||
				slices.Contains([]string{"00:00:00:00:00:00", "0.0.0.0", "::"}, want.Get(field)) && !got.Packet.Has(field)
		})
		if err != nil || !got.Packet.SameHeaders(want) {
			t.Errorf("%s: read %s, Open vSwitch reads %s (%v)", name, got.Packet, want, err)
		}
	}
}

func TestIdentifiersAndQuotedPackets(t *testing.T) {
	for digits, id := range map[string]uint16{echo: 0x1234, echo6: 0x1234, tcp4: 0, unreach: 0} {
		f, err := sets.Frame(digits)
		if err != nil || f.ID != id || f.Size != len(digits)/2 {
			t.Errorf("identifier %d of %d bytes, want %d (%v)", f.ID, f.Size, id, err)
		}
	}
	f, err := sets.Frame(unreach)
	if err != nil || f.Quoted == nil {
		t.Fatal(err)
	}
	expect.Equal(t, f.Quoted.Packet.String(),
		"udp,nw_src=192.168.10.5,nw_dst=192.168.10.6,nw_tos=0,nw_ecn=0,nw_ttl=64,tp_src=20013,tp_dst=53")
}

// TestOnlyFramesWithoutEthernetHeaderAreErrors cuts frames: what there is of them can be
// asked about.
func TestOnlyFramesWithoutEthernetHeaderAreErrors(t *testing.T) {
	for name, digits := range all() {
		for size := range len(digits) / 2 {
			f, err := sets.Frame(digits[:2*size])
			if (err != nil) != (size < 14) {
				t.Errorf("%s: %d bytes: %v", name, size, err)
			}
			if err == nil && f.Packet.EtherType() == flow.IPv4 && size < 14+20+8 && !f.Headless && f.Datagram == 0 &&
				name != "GRE" && name != "TCP in a VLAN" {
				t.Errorf("%s: %d bytes have the header of the protocol", name, size)
			}
		}
	}
}

func TestFragmentsNameTheirDatagram(t *testing.T) {
	frames := unusual()
	maps.Copy(frames, all())
	for name, want := range map[string]uint32{"first fragment": 0x4b, "later fragment": 0x4b,
		"IPv6 first fragment": 0x1234, "IPv6 later fragment": 0x1234, "IPv6 fragment of a whole": 0, "TCP": 0} {
		f, err := sets.Frame(frames[name])
		if err != nil || f.Datagram != want {
			t.Errorf("%s: datagram %#x, want %#x (%v)", name, f.Datagram, want, err)
		}
	}
}

// TestBytesAreReadAsThePacket writes packets as frames, and reads those.
func TestBytesAreReadAsThePacket(t *testing.T) {
	frames := unusual()
	maps.Copy(frames, all())
	for name, digits := range frames {
		want, err := sets.Frame(digits)
		if err != nil {
			t.Fatal(name, err)
		}
		raw, err := frame.Frame{Packet: want.Packet}.Bytes()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := frame.Parse(raw)
		got.Packet.DeleteFunc(func(field string) bool {
			return !want.Packet.Has(field) && slices.Contains([]string{"00:00:00:00:00:00", "0.0.0.0"}, got.Packet.Get(field))
		})
		if err != nil || !got.Packet.SameHeaders(want.Packet) {
			t.Errorf("%s: wrote %s, read %s (%v)", name, want.Packet, got.Packet, err)
		}
	}
}

// FuzzParse gives any bytes to the parser.
func FuzzParse(f *testing.F) {
	seeds := all()
	maps.Copy(seeds, unusual())
	for _, digits := range seeds {
		raw, err := hex.DecodeString(digits)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := frame.Parse(raw)
		if err != nil {
			return
		}
		if _, err := flow.Parse(got.Packet.String()); err != nil {
			t.Errorf("%s: %v", got.Packet, err)
		}
		if _, err := (frame.Frame{Packet: got.Packet}).Bytes(); err != nil {
			t.Error(err)
		}
	})
}
