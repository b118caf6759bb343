package frame_test

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/ovs"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/frame"
)

// Frames of the lab: their bytes in hexadecimal.
const (
	tcp4      = "fa163e100006fa163e100005080045000030004b00004006e521c0a80a05c0a80a064e2d0016000003e9000013895018ffff038000006f76732d6c61622e"
	vlanTCP   = "fa163e100006fa163e1000058100607808004500003000" + "4b00004006e521c0a80a05c0a80a064e2d0016000003e9000013895002ffff038000006f76732d6c61622e"
	arp       = "fffffffffffffa163e10000508060001080006040001fa163e100005c0a80a05000000000000c0a80a01"
	echo      = "fa163e100006fa163e1000050800450000200000000040010000c0a80a05c0a80a060800000012340001deadbeef"
	unreach   = "fa163e100005fa163e1000060800450000380000000040010000c0a80a06c0a80a050303000000000000" + "4500001c000000004011e521c0a80a05c0a80a064e2d003500080000"
	echo6     = "fa163e100006fa163e10000586dd600000af00103a40fd000010000000000000000000000005fd000010000000000000000000000006" + "8000000012340001deadbeefdeadbeef"
	solicit6  = "3333ff000001fa163e10000586dd6000000000203afffd000010000000000000000000000005ff0200000000000000000001ff000001" + "8700000000000000" + "fd000010000000000000000000000001" + "0101fa163e100005"
	fragment4 = "fa163e100006fa163e10000508004500001c004b20004011e521c0a80a05c0a80a064e2d003500080000"
	later4    = "fa163e100006fa163e10000508004500001c004b00054011e521c0a80a05c0a80a064e2d003500080000"
	gre4      = "fa163e100006fa163e10000508004500001c004b0000402fe521c0a80a05c0a80a064e2d003500080000"
)

func all() map[string]string {
	return map[string]string{"TCP": tcp4, "TCP in a VLAN": vlanTCP, "ARP": arp, "echo": echo, "unreachable": unreach, "IPv6 echo": echo6, "solicitation": solicit6, "first fragment": fragment4, "later fragment": later4, "GRE": gre4}
}

// TestFramesAreReadAsOpenvSwitchReadsThem compares with ovs-ofctl parse-pcap.
func TestFramesAreReadAsOpenvSwitchReadsThem(t *testing.T) {
	ovs.Need(t, "ovs-ofctl")
	for name, digits := range all() {
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
		want.DeleteFunc(func(field string) bool {
			return field == "in_port" || strings.HasPrefix(field, "vlan_tci") || strings.HasPrefix(field, "nd_") && want.Get(field) == "00:00:00:00:00:00"
		})
		got, err := frame.Parse(raw)
		if err != nil || !got.Packet.SameHeaders(want) {
			t.Errorf("%s: read %s, Open vSwitch reads %s (%v)", name, got.Packet, want, err)
		}
	}
}

func TestIdentifiersAndQuotedPackets(t *testing.T) {
	for digits, id := range map[string]uint16{echo: 0x1234, echo6: 0x1234, tcp4: 0, unreach: 0} {
		f, err := frame.ParseHex(digits)
		if err != nil || f.ID != id || f.Size != len(digits)/2 {
			t.Errorf("identifier %d of %d bytes, want %d (%v)", f.ID, f.Size, id, err)
		}
	}
	f, err := frame.ParseHex(unreach)
	if err != nil || f.Quoted == nil {
		t.Fatal(err)
	}
	if got := f.Quoted.Packet.String(); got != "udp,nw_src=192.168.10.5,nw_dst=192.168.10.6,nw_tos=0,nw_ecn=0,nw_ttl=64,tp_src=20013,tp_dst=53" {
		t.Error(got)
	}
}

func TestShortFramesAreErrors(t *testing.T) {
	for name, digits := range all() {
		for _, size := range []int{0, 13, 20, 33} {
			if _, err := frame.ParseHex(digits[:2*size]); err == nil {
				t.Errorf("%s: %d bytes were read", name, size)
			}
		}
	}
}

// FuzzParse gives any bytes to the parser.
func FuzzParse(f *testing.F) {
	for _, digits := range all() {
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
	})
}
