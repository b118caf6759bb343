package anonymise

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/workdir/recording"
)

// renaming returns a renamer for texts.
func renaming(texts ...string) *renamer {
	f, stays := newFound(), vocabularyOf(wordList)
	for _, text := range texts {
		f.add([]byte(text), false, stays)
	}
	return newRenamer(newKey(), f, stays, vocabularyOf(proseList))
}

// common returns the number of bits at the beginning that two addresses have in common.
func common(a, b netip.Addr) (n int) {
	x, y := a.AsSlice(), b.AsSlice()
	for i := range x {
		if same := bits.LeadingZeros8(x[i] ^ y[i]); same < 8 {
			return n + same
		}
		n += 8
	}
	return n
}

func TestAddressesKeepPrefixesAndFamilies(t *testing.T) {
	r := renaming("")
	number := func(first ...byte) netip.Addr {
		for len(first) < 4 || len(first) > 4 && len(first) < 16 {
			first = append(first, byte(rand.IntN(256)))
		}
		a, _ := netip.AddrFromSlice(first)
		return a
	}
	for range 2000 {
		for _, pair := range [][2]netip.Addr{
			{number(10, byte(rand.IntN(4))), number(10, byte(rand.IntN(4)))},
			{number(byte(rand.IntN(256))), number(byte(rand.IntN(256)))},
			{number(0xfd, 0, 0x10, 0x20, 0), number(0xfd, 0, 0x10, 0x21, 0)},
		} {
			a, b := r.address(pair[0], pair[0].BitLen()), r.address(pair[1], pair[1].BitLen())
			if common(a, b) != common(pair[0], pair[1]) {
				t.Errorf("%s and %s become %s and %s", pair[0], pair[1], a, b)
			}
			if isSpecial(pair[0]) != isSpecial(a) || isSpecial(a) && a.Is4() && a != pair[0] {
				t.Errorf("%s becomes %s", pair[0], a)
			}
			prefix := netip.PrefixFrom(pair[0], 8+rand.IntN(17)).Masked()
			if to := r.replaced(prefix.Addr(), prefix.Bits()); !netip.PrefixFrom(to, prefix.Bits()).Contains(a) ||
				netip.PrefixFrom(to, prefix.Bits()).Masked().Addr() != to {
				t.Errorf("%s becomes %s, and %s becomes %s", prefix, to, pair[0], a)
			}
		}
	}
}

// eui64 returns the link-local address of a MAC address as RFC 4291, appendix A, makes it.
func eui64(m net.HardwareAddr) string {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}).String()
}

func TestAddressesThatFollowFromOthersStillDo(t *testing.T) {
	r := renaming("")
	for _, text := range []string{"0a:58:0a:f4:01:05", "fa:16:3e:12:34:56", "00:00:00:00:00:07", "52:54:00:ff:00:01"} {
		was, _ := net.ParseMAC(text)
		is, err := net.ParseMAC(r.name(text))
		if err != nil || text == is.String() || was[0]&3 != is[0]&3 {
			t.Errorf("%s becomes %s", was, is)
		}
		if ofPod := text[:5] == "0a:58"; ofPod != (is.String()[:5] == "0a:58") {
			t.Errorf("%s becomes %s: one alone is a pod's", was, is)
		}
		if got := r.name(eui64(was)); got != eui64(is) {
			t.Errorf("the address of %s becomes %s, not that of %s", was, got, is)
		}
		solicited := func(m net.HardwareAddr) string {
			return fmt.Sprintf("ff02::1:ff%02x:%x 33:33:ff:%02x:%02x:%02x", m[3], int(m[4])<<8|int(m[5]), m[3], m[4], m[5])
		}
		if got := r.name(solicited(was)); got != solicited(is) {
			t.Errorf("%s becomes %s, not %s", solicited(was), got, solicited(is))
		}
		if got := r.name("dpid:0000" + strings.ReplaceAll(text, ":", "")); got != "dpid:0000"+
			strings.ReplaceAll(is.String(), ":", "") {
			t.Errorf("the datapath ID of %s becomes %s", text, got)
		}
	}
}

func TestNamesKeepTheirLengthAndBeginnings(t *testing.T) {
	r := renaming("")
	long, cut := r.name("customer-compute17"), r.name("customer-comp")
	if !strings.HasPrefix(long, cut) || len(long) != len("customer-compute17") || strings.Contains(long, "customer") {
		t.Errorf("%s, cut off %s", long, cut)
	}
	if a, b := r.name("web1"), r.name("web2"); a == b || a[:3] != b[:3] {
		t.Errorf("%s %s", a, b)
	}
	if got := r.name("rtoj-GR_acme4"); !strings.HasPrefix(got, "rtoj-GR_") || strings.HasSuffix(got, "acme4") {
		t.Error(got)
	}
	const id = "1f4ddee2-f6b7-4096-8582-a4f852ee20d0"
	r = renaming(id)
	got := r.name(id)
	for text, want := range map[string]string{
		"tap" + id[:11] + ":":                    "tap" + got[:11] + ":",
		"pg_" + strings.ReplaceAll(id, "-", "_"): "pg_" + strings.ReplaceAll(got, "-", "_"),
		strings.ReplaceAll(id, "-", ""):          strings.ReplaceAll(got, "-", ""),
		id[:8]:                                   id[:8], // a cookie
		"ovn-" + id[:6] + "-0":                   "ovn-" + id[:6] + "-0",
	} {
		if is := r.name(text); is != want || got[:8] != id[:8] || got[9:] == id[9:] {
			t.Errorf("%s becomes %s, and %s becomes %s", id, got, text, is)
		}
	}
}

// TestFlowsHoldAddressesInManyForms has flows as ovs-ofctl prints them.
func TestFlowsHoldAddressesInManyForms(t *testing.T) {
	const id = "1f4ddee2-f6b7-4096-8582-a4f852ee20d0"
	r := renaming(id + " 10.0.0.0 8.8.8.8 10.244.1.5 fd00:20::f816:3eff:fe12:3456 fa:16:3e:12:34:56 0a:58:0a:f4:01:05 ip4.src == 10.244.0.0/16 && ip4.src != 10.244.3.0/24, route 10.244.3.0/24")
	address := func(text string) []byte { return netip.MustParseAddr(r.name(text)).AsSlice() }
	v4, v6 := address("10.244.1.5"), address("fd00:20::f816:3eff:fe12:3456")
	m, _ := net.ParseMAC(r.name("0a:58:0a:f4:01:05"))
	excluded := address("10.244.3.0")
	flip := func(a []byte, bit int) string {
		masked := [4]byte{a[0], a[1], a[2] & (0x80 >> bit)}
		masked[2] ^= 0x80 >> bit
		return netip.AddrFrom4(masked).String()
	}
	for flow, want := range map[string]string{
		"reg0=0xaf40105":                  fmt.Sprintf("reg0=0x%x", v4),
		"cookie=0xaf40105, actions=drop":  "cookie=0xaf40105, actions=drop",
		"reg2=0xf8163eff,reg3=0xfe123456": fmt.Sprintf("reg2=0x%x,reg3=0x%x", v6[8:12], v6[12:]),
		"set_field:0xaf401050000000000000000/0xffffffff0000000000000000->xxreg0": fmt.Sprintf("set_field:0x%x0000000000000000/0xffffffff0000000000000000->xxreg0", v4),
		"load:0xa580af40105->NXM_NX_ARP_SHA[]": fmt.Sprintf("load:0x%x->NXM_NX_ARP_SHA[]",
			[]byte(m)),
		"userdata=00.00.00.0a.00.00.00.00.0a.f4.01.05.0a.58.0a.f4.01.05.ff": fmt.Sprintf("userdata=00.00.00.0a.00.00.00.00.%s.%s.ff", dotted(v4), dotted(m)),
		"userdata=00.00.00.07.00.00.00.00.01.06." + octetsOf("neutron-"+id): "userdata=00.00.00.07.00.00.00.00.01.06." +
			octetsOf("neutron-"+r.name(id)),
		"userdata=00.00.00.02.00.00.00.00.79.07.18.0a.f4.03": "userdata=00.00.00.02.00.00.00.00.79.07.18." +
			dotted(excluded[:3]),
		"userdata=00.00.00.02.00.00.00.00.42.07." +
			octetsOf("8.8.8.8"): fmt.Sprintf("userdata=00.00.00.02.00.00.00.00.42.%02x.%s", len(r.name("8.8.8.8")),
			octetsOf(r.name("8.8.8.8"))),
		"userdata=00.00.00.02.00.00.00.00.06.08.08.08.08.08": "userdata=00.00.00.02.00.00.00.00.06.08." +
			dotted(address("8.8.8.8")),
		"nw_src=10.244.128.0/255.255.128.0": "nw_src=" + flip(excluded, 0) +
			"/255.255.128.0",
		"nw_src=10.244.1.5/0.0.0.0": "nw_src=" +
			netip.AddrFrom4([4]byte(v4)).String() + "/0.0.0.0",
		"reg10=0x5/0xff,tun_metadata0=0x10005":       "reg10=0x5/0xff,tun_metadata0=0x10005",
		"dl_dst=01:00:00:00:00:00/01:00:00:00:00:00": "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00",
	} {
		if got := r.name(flow); got != leadingZeros.ReplaceAllString(want, "0x$1") {
			t.Errorf("%s becomes\n%s, not\n%s", flow, got, want)
		}
	}
}

// leadingZeros matches a number in registers that begins with zeros, which Open vSwitch does not print.
var leadingZeros = regexp.MustCompile(`0x0+([0-9a-f])`)

func dotted(b []byte) string { return strings.ReplaceAll(net.HardwareAddr(b).String(), ":", ".") }

func octetsOf(text string) string { return dotted([]byte(text)) }

// TestNamesInLogsAreReplaced has a word of messages that is also the name of a port.
func TestNamesInLogsAreReplaced(t *testing.T) {
	r := renaming("client")
	line := "2026-11-21T23:43:10Z|00012|binding|INFO|Claiming lport client for this chassis; connection closed"
	got := string(r.text([]byte(line), true))
	if strings.Contains(got, "client") || !strings.HasPrefix(got, line[:strings.Index(line, "client")]) ||
		!strings.HasSuffix(got, "; connection closed") {
		t.Error(got)
	}
}

// FuzzTexts reads any text: the parts are the text, and a text without anything to replace stays.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{"", "::", "1.2.3.4/", "0x", "userdata=", "userdata=0a.0", "tap01234567-89",
		"fe80::1:/64", "a:b:c:d:e:f", "\xff\x00", "10.0.0.1..10.0.0.9", "1-2-3-4/0xff", strings.Repeat(":", 50)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var whole bytes.Buffer
		tokens(text, func(before []byte, part token) {
			if len(part.text) == 0 || !bytes.Equal(before, whole.Bytes()) {
				t.Fatalf("%q after %q", part.text, before)
			}
			whole.Write(part.text)
		})
		if !bytes.Equal(whole.Bytes(), text) {
			t.Errorf("%q became %q", text, whole.Bytes())
		}
		found := newFound()
		found.add(text, false, vocabularyOf(wordList))
		newRenamer(newKey(), found, vocabularyOf(wordList), nil).text(text, false)
	})
}

// TestNamesOfFilesAreReplaced has the paths of a workdir (docs/workdir.md), of which the parts that come from outside are
// named customer.
func TestNamesOfFilesAreReplaced(t *testing.T) {
	r := renaming("customer 4f9a3c21-0000-4000-8000-000000000001")
	const id = "4f9a3c21-0000-4000-8000-000000000001"
	name := r.name("customer")
	for path, want := range map[string]string{
		"db/ovn_sb/members/customer.status":             "db/ovn_sb/members/" + name + ".status",
		"db/ovn_nb/members/" + id + ".status":           "db/ovn_nb/members/" + r.name(id) + ".status",
		"db/ovn_nb/libovsdb/customer.log":               "db/ovn_nb/libovsdb/" + name + ".log",
		"db/ovn_nb/printed/tables.txt":                  "db/ovn_nb/printed/tables.txt",
		"recorded/bridges/customer/flows.OpenFlow13":    "recorded/bridges/" + name + "/flows.OpenFlow13",
		"recorded/namespaces/customer/iptables-save":    "recorded/namespaces/" + name + "/iptables-save",
		"recorded/customer-notes":                       "recorded/" + name + "-" + r.name("notes"),
		"recorded/extra/customer/a.txt":                 "recorded/extra/" + name + "/a.txt",
		"host/devices/customer/ethtool.features":        "host/devices/" + name + "/ethtool.features",
		"host/logs/ovn-controller/customer.1.log":       "host/logs/ovn-controller/" + name + ".1.log",
		"restore_flows/customer.flows.dump":             "restore_flows/" + name + ".flows.dump",
		"recorded/bridges/br-int/dpif.show-dp-features": "recorded/bridges/br-int/dpif.show-dp-features",
		"host/nova.cpu-sets":                            "host/nova.cpu-sets",
	} {
		if got := r.path(path); got != want {
			t.Errorf("%s becomes %s, not %s", path, got, want)
		}
	}
	for _, command := range recording.Commands() {
		for _, folder := range []string{"recorded", "host", "recorded/bridges/br-int"} {
			if path := folder + "/" + string(command.Name); r.path(path) != path {
				t.Errorf("%s becomes %s", path, r.path(path))
			}
		}
	}
}

// TestALargeNetworkKeepsFewBits has an interface in 10.0.0.0/8: its broadcast address stays one, but other addresses keep
// no more than their last 12 bits. Of the bits before these, one key leaves some as they are by chance, so that it takes
// many keys to see that each may change.
func TestALargeNetworkKeepsFewBits(t *testing.T) {
	const keys, firstFree = 40, 8 // the bits before firstFree may lead to addresses with a meaning by themselves
	for _, network := range []string{"10.1.2.3/8", "172.20.1.1/14", "198.51.1.1/16", "203.0.113.9/19", "192.0.2.5/21"} {
		prefix := netip.MustParsePrefix(network).Masked()
		kept := max(prefix.Bits(), 20)
		changed := map[int]bool{}
		for range keys {
			r := renaming(network)
			to := netip.MustParseAddr(r.name(prefix.Addr().String()))
			broadcast, want := r.name(broadcastOf(prefix).String()), broadcastOf(netip.PrefixFrom(to, prefix.Bits()))
			if broadcast != want.String() {
				t.Errorf("%s: the broadcast address becomes %s, not %s", network, broadcast, want)
			}
			for range 50 {
				from := addressIn(prefix).As4()
				is := netip.MustParseAddr(r.name(netip.AddrFrom4(from).String())).As4()
				for i := range 32 {
					if (from[i/8]^is[i/8])&(0x80>>(i%8)) != 0 {
						changed[i] = true
					}
				}
			}
		}
		for i := firstFree; i < 32; i++ {
			// The bit after the network's own stays, or its broadcast address would be no longer one.
			if may := i < kept && i != prefix.Bits(); changed[i] != may {
				t.Errorf("%s: bit %d of addresses changes: %t, not %t", network, i, changed[i], may)
			}
		}
	}
}

// broadcastOf returns the last address of a network.
func broadcastOf(prefix netip.Prefix) netip.Addr {
	last := prefix.Addr().As4()
	for i := prefix.Bits(); i < 32; i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(last)
}

// addressIn returns an address of a network by chance.
func addressIn(prefix netip.Prefix) netip.Addr {
	a := prefix.Addr().As4()
	for i := prefix.Bits(); i < 32; i++ {
		if rand.IntN(2) == 1 {
			a[i/8] |= 0x80 >> (i % 8)
		}
	}
	return netip.AddrFrom4(a)
}
