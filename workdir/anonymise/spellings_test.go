package anonymise

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// spellings4 returns texts that hold an IPv4 address.
func spellings4(a netip.Addr) (all []string) {
	b := a.As4()
	number := binary.BigEndian.Uint32(b[:])
	dashes := strings.ReplaceAll(a.String(), ".", "-")
	for _, of := range []string{"%s", "::ffff:%s", "64:ff9b::%s", "%s.443", "%s/32", `a\n%s`, `a\t%s\n`, "\x1b[31m%s\x1b[0m", `\033[1;31m%s\033[0m`,
		"ip%%3D%s", "x=%%20%s", `"%s"`, "http://%s:80/", "[::ffff:%s]", "%s > 1.1.1.1.22:", "::ffff:0:%s"} {
		all = append(all, fmt.Sprintf(of, a))
	}
	return append(all, fmt.Sprintf("::ffff:%x:%x", number>>16, number&0xffff), fmt.Sprintf("64:ff9b::%x:%x", number>>16, number&0xffff),
		fmt.Sprintf("2002:%x:%x::1", number>>16, number&0xffff), "ip-"+dashes, "ip"+dashes, "host_"+strings.ReplaceAll(dashes, "-", "_"),
		fmt.Sprintf("%d.%d.%d.*", b[0], b[1], b[2]), fmt.Sprint(number), fmt.Sprintf("0x%x", number), fmt.Sprintf("reg5=0x%x,", number),
		fmt.Sprintf("%d.%d.%d.%d.in-addr.arpa", b[3], b[2], b[1], b[0]), fmt.Sprintf("%d.%d.%d.in-addr.arpa", b[2], b[1], b[0]),
		strings.ReplaceAll(a.String(), ".", "%2E"), fmt.Sprintf("set_field:0x%x->reg0", number), "IP"+a.String())
}

// TestEachSpellingOfAnAddressIsReplaced replaces an address in each spelling, and expects the same spelling of what it is
// replaced by.
func TestEachSpellingOfAnAddressIsReplaced(t *testing.T) {
	for _, text := range []string{"203.0.113.85", "10.20.30.40", "198.51.100.7", "172.16.254.1"} {
		r := renaming(text + " fd00::1 8.8.8.8")
		a := netip.MustParseAddr(text)
		to := netip.MustParseAddr(r.name(text))
		if to == a {
			t.Errorf("%s stays", a)
		}
		want := spellings4(to)
		for i, spelled := range spellings4(a) {
			got := r.name(spelled)
			prefix := strings.Split(want[i], to.String())[0]
			if strings.HasPrefix(spelled, "ip") || strings.HasPrefix(spelled, "IP") || strings.HasPrefix(spelled, "host_") || strings.HasPrefix(spelled, "a") ||
				strings.Contains(spelled, "1.1.1.1") || strings.HasPrefix(spelled, "x=") || strings.HasPrefix(spelled, "http") {
				if !strings.Contains(got, to.String()) && !strings.HasSuffix(got, want[i][len(want[i])-len(to.String()):]) {
					t.Errorf("%s becomes %s, not %s", spelled, got, want[i])
				}
				continue
			}
			if got != want[i] {
				t.Errorf("%q becomes %q, not %q (%s)", spelled, got, want[i], prefix)
			}
		}
	}
}

// spellingsOfMAC returns texts that hold a MAC address.
func spellingsOfMAC(m net.HardwareAddr) (all []string) {
	digits := hex.EncodeToString(m)
	eui := net.HardwareAddr{m[0], m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
	short := fmt.Sprintf("%x:%x:%x:%x:%x:%x", m[0], m[1], m[2], m[3], m[4], m[5])
	all = []string{m.String(), strings.ToUpper(m.String()), strings.ReplaceAll(m.String(), ":", "-"), digits, digits[:4] + "." + digits[4:8] + "." + digits[8:],
		digits[:4] + "-" + digits[4:8] + "-" + digits[8:], short, "8000." + digits, "8000." + short, "0000" + digits, eui.String(), eui64(m), "20:00:" + m.String(),
		"1000" + digits, "0x0000" + digits, "00:00:" + m.String(), url.QueryEscape(m.String()), "8000" + digits, hex.EncodeToString(eui),
		strings.ReplaceAll(m.String(), ":", "_"), "load:0x" + strings.TrimLeft(digits, "0") + "->NXM_NX_ARP_SHA[]",
		"set_field:0x" + strings.TrimLeft(digits, "0") + "->eth_dst"}
	return all
}

// TestEachSpellingOfAMACIsReplaced does that for MAC addresses.
func TestEachSpellingOfAMACIsReplaced(t *testing.T) {
	for _, text := range []string{"52:54:01:22:33:90", "00:16:3e:19:ce:1b", "fa:16:3e:0a:0b:0c", "0a:58:0a:f4:01:05"} {
		r := renaming(text)
		m, _ := net.ParseMAC(text)
		to, err := net.ParseMAC(r.name(text))
		if err != nil || to.String() == text {
			t.Fatalf("%s becomes %s", text, to)
		}
		want := spellingsOfMAC(to)
		for i, spelled := range spellingsOfMAC(m) {
			if got := r.name(spelled); got != want[i] && strings.ToUpper(got) != want[i] {
				t.Errorf("%s becomes %s, not %s", spelled, got, want[i])
			}
		}
	}
}

// TestEachPartOfAUUIDIsReplaced cuts a UUID off.
func TestEachPartOfAUUIDIsReplaced(t *testing.T) {
	for _, id := range []string{"1f4ddee2-f6b7-4096-8582-a4f852ee20d0", "12345678-1234-4234-8234-123456789012"} {
		r := renaming(id)
		to := r.name(id)
		plain := func(id string, n int) string { return strings.ReplaceAll(id, "-", "")[:n] }
		for n := 9; n <= 32; n++ {
			if got := r.name(plain(id, n)); got != plain(to, n) {
				t.Errorf("%s becomes %s, not %s", plain(id, n), got, plain(to, n))
			}
		}
		for _, n := range []int{11, 13, 16, 18, 23, 36} {
			for _, upper := range []func(string) string{strings.ToLower, strings.ToUpper} {
				if got := r.name(upper(id[:n])); !strings.EqualFold(got, to[:n]) {
					t.Errorf("%s becomes %s, not %s", upper(id[:n]), got, upper(to[:n]))
				}
			}
		}
	}
}
