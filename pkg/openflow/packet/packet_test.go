package packet

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"testing"

	"ovs-offline/test/check/expect"
)

func TestLACPDU(t *testing.T) {
	frame := LACPDU(LACPInfo{SystemPriority: 77, System: MAC{2, 0xaa, 0, 0, 0, 2}, Key: 3, PortPriority: 65535, Port: 9,
		State: 0x3d})
	const want = "0180c2000002" + "02aa00000002" + "8809" + "0101" + "0114" + "004d" + "02aa00000002" + "0003" + "ffff" +
		"0009" + "3d" + "000000" +
		"0214" + "000000000000000000000000000000000000" + "0310"
	if have := hex.EncodeToString(frame); len(frame) != 124 || have[:len(want)] != want {
		t.Errorf("%d bytes: %s", len(frame), have)
	}
}

func TestBPDUs(t *testing.T) {
	p := TreePriority{Root: 0x8000525400000101, Cost: 4, Bridge: 0x8000525400000102, Port: 0x8001}
	const body = "8000525400000101" + "00000004" + "8000525400000102" + "8001" + "0000" + "1400" + "0200" + "0f00"
	for _, c := range []struct {
		have []byte
		want string
	}{
		{STP(p, DefaultTreeTimes()), "0180c2000000" + "020000000001" + "0026" + "424203" + "0000" + "0000" + "00" + body},
		{RSTP(p, DefaultTreeTimes()), "0180c2000000" + "020000000001" + "0027" + "424203" + "0000" + "0202" + "7c" + body},
	} {
		if have := hex.EncodeToString(c.have); len(c.have) != 60 || have[:len(c.want)] != c.want {
			t.Errorf("%d bytes: %s\nwant %s", len(c.have), have, c.want)
		}
	}
}

// TestMulticast checks addresses, lengths and checksums; a sum over data with its
// own checksum is zero.
func TestMulticast(t *testing.T) {
	from := MAC{3, 0, 0x6f, 0x76, 0, 1}
	report := MulticastReport(from, 0, netip.MustParseAddr("239.129.2.3"))
	expect.Equal(t, hex.EncodeToString(report[:16]), "01005e010203"+"03006f760001"+"0800"+"46c0", "report")
	query := IGMPQuery(from, 7)
	expect.Equal(t, hex.EncodeToString(query[:20]), "01005e000001"+"03006f760001"+"81000007"+"0800"+"46c0", "query")
	for name, ip := range map[string][]byte{"report": report[14:], "query": query[18:]} {
		if len(ip) != int(binary.BigEndian.Uint16(ip[2:])) || checksum(ip[:24]) != 0 || checksum(ip[24:]) != 0 {
			t.Errorf("%s: length or checksum is wrong: %x", name, ip)
		}
	}
	mld := MulticastReport(from, 0, netip.MustParseAddr("ff05::1:3"))
	expect.Equal(t, hex.EncodeToString(mld[:14]), "333300010003"+"03006f760001"+"86dd", "MLD")
	ip, message := mld[14:54], mld[62:]
	if int(binary.BigEndian.Uint16(ip[4:])) != len(mld)-54 || message[0] != 131 || len(message) != 24 {
		t.Errorf("MLD: %x", mld)
	}
	pseudo := append(append([]byte{}, ip[8:]...), 0, 0, 0, byte(len(message)), 0, 0, 0, 58)
	if checksum(append(pseudo, message...)) != 0 {
		t.Errorf("MLD: the checksum is wrong: %x", mld)
	}
}
