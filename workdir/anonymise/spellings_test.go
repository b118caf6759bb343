package anonymise

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// spellings4 returns texts that hold an IPv4 address.
func spellings4(a netip.Addr) (all []string) {
	b := a.As4()
	number := binary.BigEndian.Uint32(b[:])
	dashes := strings.ReplaceAll(a.String(), ".", "-")
	for _, of := range []string{
		"%s", "::ffff:%s", "64:ff9b::%s", "%s.443", "%s/32", `a\n%s`, `a\t%s\n`, "\x1b[31m%s\x1b[0m",
		`\033[1;31m%s\033[0m`, "ip%%3D%s", "x=%%20%s", `"%s"`, "http://%s:80/", "[::ffff:%s]", "%s > 1.1.1.1.22:",
		"::ffff:0:%s", "IP%s", "1.3.6.1.2.1.4.20.1.1.%s", "%s.443.17.6", "0.%s",
	} {
		all = append(all, fmt.Sprintf(of, a))
	}
	high, low := number>>16, number&0xffff
	return append(all, fmt.Sprintf("::ffff:%x:%x", high, low), fmt.Sprintf("64:ff9b::%x:%x", high, low),
		fmt.Sprintf("2002:%x:%x::1", high, low), "ip-"+dashes, "ip"+dashes, "host_"+strings.ReplaceAll(dashes, "-", "_"),
		fmt.Sprintf("%d.%d.%d.*", b[0], b[1], b[2]), fmt.Sprint(number), fmt.Sprintf("0x%x", number),
		fmt.Sprintf("reg5=0x%x,", number), fmt.Sprintf("%d.%d.%d.%d.in-addr.arpa", b[3], b[2], b[1], b[0]),
		fmt.Sprintf("%d.%d.%d.in-addr.arpa", b[2], b[1], b[0]), strings.ReplaceAll(a.String(), ".", "%2E"),
		fmt.Sprintf("set_field:0x%x->reg0", number))
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
		// Words around an address are replaced as well: one that stays takes their place.
		common := func(text string) string {
			return regexp.MustCompile(`\b(?:a|x|host|1\.1\.1\.1|http)\b`).ReplaceAllString(text, "ip")
		}
		want := spellings4(to)
		for i, spelled := range spellings4(a) {
			if got := r.name(common(spelled)); got != common(want[i]) {
				t.Errorf("%q becomes %q, not %q", common(spelled), got, common(want[i]))
			}
		}
	}
}

// spellingsOfMAC returns texts that hold a MAC address.
func spellingsOfMAC(m net.HardwareAddr) (all []string) {
	digits := hex.EncodeToString(m)
	eui := net.HardwareAddr{m[0], m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
	short := fmt.Sprintf("%x:%x:%x:%x:%x:%x", m[0], m[1], m[2], m[3], m[4], m[5])
	plain, number := m.String(), "0x"+strings.TrimLeft(digits, "0")
	with := func(separator string) string { return strings.ReplaceAll(plain, ":", separator) }
	return []string{
		plain, strings.ToUpper(plain), with("-"), with("_"), url.QueryEscape(plain), digits, short, "8000." + digits, "8000." + short,
		digits[:4] + "." + digits[4:8] + "." + digits[8:], digits[:4] + "-" + digits[4:8] + "-" + digits[8:],
		"0000" + digits, "1000" + digits, "8000" + digits, "0x0000" + digits, "00:00:" + plain, "20:00:" + plain,
		eui.String(), eui64(m), hex.EncodeToString(eui), "load:" + number + "->NXM_NX_ARP_SHA[]", "set_field:" + number + "->eth_dst",
	}
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
