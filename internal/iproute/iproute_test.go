package iproute

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
)

// The texts were printed by iproute2 6.1.

func TestLinks(t *testing.T) {
	const text = `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0 minmtu 0 maxmtu 0 numtxqueues 1 gso_max_size 65536
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
6: eth0.7@eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1496 qdisc noqueue master ovs-system state UP group default qlen 1000
    link/ether 7a:36:fd:dd:03:a8 brd ff:ff:ff:ff:ff:ff link-netns n2 promiscuity 1 minmtu 68 maxmtu 65535
    veth
    inet 172.16.0.1/24 brd 172.16.0.255 scope global eth0
       valid_lft forever preferred_lft forever
    inet6 fd16::1/64 scope global nodad
       valid_lft forever preferred_lft forever
9: genev_sys_6081: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 65000 qdisc noqueue master ovs-system state UNKNOWN group default qlen 1000
12: tun0: <POINTOPOINT,UP> mtu 1400 qdisc noop state DOWN
    inet 10.9.0.1 peer 10.9.0.2/32 scope global tun0
`
	addr := netip.MustParseAddr
	want := []Link{
		{Name: "lo", MTU: 65536, Addresses: []netip.Addr{addr("127.0.0.1")}},
		{Name: "eth0.7", MTU: 1496, Addresses: []netip.Addr{addr("172.16.0.1"), addr("fd16::1")}},
		{Name: "genev_sys_6081", MTU: 65000},
		{Name: "tun0", MTU: 1400, Addresses: []netip.Addr{addr("10.9.0.1")}},
	}
	if got := Links(text); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestRoutes(t *testing.T) {
	const text = `default via 10.0.0.1 dev eth0 proto dhcp metric 100 
default via 10.9.0.1 dev wlan0 proto dhcp metric 600 
172.16.0.0/24 dev eth0 proto kernel scope link src 172.16.0.1 mtu 1400 
172.17.0.0/24 dev br-ex scope link mtu lock 1300 
10.7.0.0/16 proto static metric 100 
	nexthop via 10.0.0.5 dev eth0 weight 1 
	nexthop via 10.0.0.6 dev eth1 weight 1 
10.8.0.9 dev eth2 scope link 
10.66.0.0/16 dev vrf1 table 100 scope link
unreachable 10.5.0.0/16 
local 172.16.0.1 dev eth0 table local proto kernel scope host src 172.16.0.1 
fd16::/64 dev eth0 proto kernel metric 256 pref medium
default via fe80::1 dev eth0 proto ra metric 1024 mtu 1280 pref medium
multicast ff00::/8 dev eth0 table local proto kernel metric 256 pref medium
`
	to := netip.MustParsePrefix
	want := []Route{
		{to("0.0.0.0/0"), "eth0", 0}, {to("0.0.0.0/0"), "wlan0", 0}, {to("172.16.0.0/24"), "eth0", 1400}, {to("172.17.0.0/24"), "br-ex", 1300},
		{to("10.7.0.0/16"), "eth0", 0}, {to("10.8.0.9/32"), "eth2", 0}, {to("fd16::/64"), "eth0", 0}, {to("::/0"), "eth0", 1280},
	}
	if got := Routes(text); !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// FuzzParsers gives any text to both parsers.
func FuzzParsers(f *testing.F) {
	f.Add("6: eth0.7@eth0: <UP> mtu 1496 qdisc noqueue\n    inet 172.16.0.1/24 brd 172.16.0.255\n")
	f.Add("10.7.0.0/16 proto static mtu lock 1400\n\tnexthop via 10.0.0.5 dev eth0 weight 1\n")
	f.Add("10.7.0.0/16 proto static\n\tnexthop via 10.0.0.5 dev\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range Links(text) {
			if l.Name == "" || l.MTU < 0 {
				t.Errorf("link %+v", l)
			}
		}
		for _, r := range Routes(text) {
			if !r.To.IsValid() || r.Device == "" || r.MTU < 0 {
				t.Errorf("route %+v", r)
			}
		}
	})
}
