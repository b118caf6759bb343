package names

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestAddressesBetweenPortsWithoutAny checks which addresses a packet gets between ports of which the databases have
// no IP address.
func TestAddressesBetweenPortsWithoutAny(t *testing.T) {
	port := func(name, network, mac string, ips ...string) Endpoint {
		e := Endpoint{Name: name, Switch: network, MAC: mac}
		for _, ip := range ips {
			e.IPs = append(e.IPs, netip.MustParseAddr(ip))
		}
		return e
	}
	const one, two = "02:ac:10:ff:00:11", "02:ac:10:ff:00:22"
	for name, c := range map[string]struct {
		question Question
		want     string // the addresses and whether no database has them, or the error
	}{
		"both without": {Question{From: port("vm1", "ls1", one), To: port("vm2", "ls1", two)},
			"169.254.0.1 169.254.0.2 true"},
		"IPv4 was asked for": {Question{From: port("vm1", "ls1", one), To: port("vm2", "ls1", two), Family: 4},
			"169.254.0.1 169.254.0.2 true"},
		"IPv6 was asked for": {Question{From: port("vm1", "ls1", one), To: port("vm2", "ls1", two), Family: 6},
			"vm1 and vm2 have no addresses of the same family (IPv6 was asked for): name the packet with --flow 'BRIDGE in_port=PORT,...'"},
		"one has an address": {Question{From: port("vm1", "ls1", one, "10.0.0.1"), To: port("vm2", "ls1", two)},
			"vm1 and vm2 have no addresses of the same family: name the packet with --flow 'BRIDGE in_port=PORT,...'"},
		"one has no MAC": {Question{From: port("vm1", "ls1", one), To: port("vm2", "ls1", "")},
			"vm1 and vm2 have no addresses of the same family: name the packet with --flow 'BRIDGE in_port=PORT,...'"},
		"on different switches": {Question{From: port("vm1", "ls1", one), To: port("vm2", "ls2", two)},
			"vm1 and vm2 have no addresses of the same family: name the packet with --flow 'BRIDGE in_port=PORT,...'"},
		"both have addresses": {Question{From: port("vm1", "ls1", one, "fd00::1"),
			To: port("vm2", "ls1", two, "10.0.0.2", "fd00::2")}, "fd00::1 fd00::2 false"},
	} {
		src, dst, bare, err := addresses(c.question)
		got := fmt.Sprint(src, " ", dst, " ", bare)
		if err != nil {
			got = err.Error()
			if !errors.Is(err, ErrFamily) {
				t.Errorf("%s: %v", name, err)
			}
		}
		expect.Equal(t, strings.TrimSpace(got), c.want, name)
	}
}
