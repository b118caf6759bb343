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
13: v7@eth0: <BROADCAST> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 1000
    vlan protocol 802.1Q id 7 <REORDER_HDR> addrgenmode eui64
14: blue: <NOARP,MASTER> mtu 65575 qdisc noop state DOWN
    link/ether 02:00:00:00:00:07 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 1280
    vrf table 1007 addrgenmode eui64
`
	addr, network := netip.MustParseAddr, netip.MustParsePrefix
	want := []Link{
		{Index: 1, Name: "lo", MTU: 65536, MAC: "00:00:00:00:00:00", Up: true, Carrier: true,
			Addresses: []netip.Addr{addr("127.0.0.1")},
			Assigned:  []Address{{Network: network("127.0.0.1/8"), Scope: "host"}}},
		{Index: 6, Name: "eth0.7", MTU: 1496, Kind: "veth", MAC: "7a:36:fd:dd:03:a8", Up: true, Carrier: true,
			Master: "ovs-system", Peer: "eth0",
			Addresses: []netip.Addr{addr("172.16.0.1"), addr("fd16::1")},
			Assigned: []Address{{Network: network("172.16.0.1/24"), Scope: "global"},
				{Network: network("fd16::1/64"), Scope: "global"}}},
		{Index: 9, Name: "genev_sys_6081", MTU: 65000, Up: true, Carrier: true, Master: "ovs-system"},
		{Index: 12, Name: "tun0", MTU: 1400, Up: true, Addresses: []netip.Addr{addr("10.9.0.1")},
			Assigned: []Address{{Network: network("10.9.0.1/32"), Peer: addr("10.9.0.2"), Scope: "global"}}},
		{Index: 13, Name: "v7", MTU: 1500, Kind: "vlan", VLAN: 7, Peer: "eth0"},
		{Index: 14, Name: "blue", MTU: 65575, Kind: "vrf", Table: "1007", MAC: "02:00:00:00:00:07"},
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
	type way struct {
		to     netip.Prefix
		device string
		mtu    int
	}
	want := []way{
		{to("0.0.0.0/0"), "eth0", 0}, {to("0.0.0.0/0"), "wlan0", 0}, {to("172.16.0.0/24"), "eth0", 1400},
		{to("172.17.0.0/24"), "br-ex", 1300},
		{to("10.7.0.0/16"), "eth0", 0}, {to("10.8.0.9/32"), "eth2", 0}, {to("fd16::/64"), "eth0", 0},
		{to("::/0"), "eth0", 1280},
	}
	var got []way
	for _, r := range Routes(text) {
		got = append(got, way{r.To, r.Device, r.MTU})
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// TestAllRoutes reads routes of the namespaces of Neutron's routers, and of nodes of OVN-Kubernetes.
func TestAllRoutes(t *testing.T) {
	const text = `default via 169.254.106.115 dev rfp-4f0a8a26-c table 16 proto static onlink
10.7.0.0/16 proto static metric 100
	nexthop via 10.0.0.5 dev eth0 weight 1
	nexthop via 10.0.0.6 dev eth1 weight 3 onlink
unreachable default dev lo table unspec proto kernel metric 4294967295 error -101 pref medium
local default dev lo table 100 proto 3 scope host
10.1.0.0/24 via inet6 fe80::1 dev eth0 mtu lock 1400 advmss 1360
10.2.0.0/24 dev qr-1 proto kernel scope link src 10.2.0.1 linkdown
`
	to, addr := netip.MustParsePrefix, netip.MustParseAddr
	want := []Route{
		{To: to("0.0.0.0/0"), Type: Unicast, Table: "16", Via: addr("169.254.106.115"), Device: "rfp-4f0a8a26-c",
			Protocol: "static", OnLink: true},
		{To: to("10.7.0.0/16"), Type: Unicast, Table: Main, Device: "eth0", Protocol: "static", Metric: 100,
			NextHops: []NextHop{{Via: addr("10.0.0.5"), Device: "eth0", Weight: 1},
				{Via: addr("10.0.0.6"), Device: "eth1", Weight: 3, OnLink: true}}},
		{To: to("::/0"), Type: "unreachable", Table: "unspec", Device: "lo", Protocol: "kernel", Metric: 4294967295},
		{To: to("0.0.0.0/0"), Type: "local", Table: "100", Device: "lo", Protocol: "3", Scope: "host"},
		{To: to("10.1.0.0/24"), Type: Unicast, Table: Main, Via: addr("fe80::1"), Device: "eth0", MTU: 1400,
			Unknown: []string{"advmss", "1360"}},
		{To: to("10.2.0.0/24"), Type: Unicast, Table: Main, Device: "qr-1", Protocol: "kernel", Scope: "link",
			Source: addr("10.2.0.1")},
	}
	if got := AllRoutes(text); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestRulesAndNeighbours(t *testing.T) {
	rules := Rules("0:\tfrom all lookup local \n71743:\tfrom 10.2.0.9 lookup 16 proto static\nnothing\n", true)
	if want := []Rule{{0, "from all lookup local", true},
		{71743, "from 10.2.0.9 lookup 16 proto static", true}}; !slices.Equal(rules, want) {
		t.Errorf("%+v\nwant %+v", rules, want)
	}
	neighbours := Neighbours("10.0.0.1 dev eth0 lladdr 02:00:00:00:00:01 REACHABLE\nfe80::1 dev eth0 lladdr 02:00:00:00:00:01 router STALE\n10.0.0.9 dev eth0 FAILED\n?\n")
	addr := netip.MustParseAddr
	want := []Neighbour{{addr("10.0.0.1"), "eth0", "02:00:00:00:00:01", "REACHABLE"},
		{addr("fe80::1"), "eth0", "02:00:00:00:00:01", "STALE"}, {addr("10.0.0.9"), "eth0", "", "FAILED"}}
	if !slices.Equal(neighbours, want) {
		t.Errorf("%+v\nwant %+v", neighbours, want)
	}
}

// FuzzParsers gives any text to all parsers.
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
		for _, r := range AllRoutes(text) {
			if !r.To.IsValid() || r.Type == "" {
				t.Errorf("route %+v", r)
			}
		}
		for _, r := range Rules(text, false) {
			if r.Text == "" || r.Priority < 0 {
				t.Errorf("rule %+v", r)
			}
		}
		for _, n := range Neighbours(text) {
			if !n.Address.IsValid() || n.Device == "" {
				t.Errorf("neighbour %+v", n)
			}
		}
	})
}
