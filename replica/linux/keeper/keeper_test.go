//go:build linux

package keeper_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"ovs-offline/replica/linux"
	"ovs-offline/replica/linux/keeper"
	"ovs-offline/replica/report"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// restored starts a keeper of a workdir, which ends with the test, and returns its report and a client.
func restored(t *testing.T, wd *workdir.Dir) ([]*report.Namespace, *linux.Client) {
	t.Helper()
	started, err := keeper.Start(wd)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := keeper.Stop(context.Background(), wd); err != nil {
			t.Error(err)
		}
	})
	defer func() { _ = started.Close() }()
	list, err := started.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := started.Complete(); err != nil {
		t.Fatal(err)
	}
	client, err := linux.Dial(wd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return list, client
}

const (
	vmMAC     = "fa:16:3e:00:00:05"
	routerMAC = "fa:16:3e:00:00:01"
	gateMAC   = "fa:16:3e:00:00:10"
	worldMAC  = "fa:16:3e:00:00:fe"
)

// router makes a namespace as Neutron's l3 agent makes one, with a floating IP.
func router(t *testing.T) *live {
	l := newLive(t, "qrouter-11111111-2222-3333-4444-555555555555")
	l.tap("qr-11111111-aa", routerMAC)
	l.tap("qg-22222222-bb", gateMAC)
	l.command("", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.arp_ignore=1",
		"net.ipv4.conf.all.arp_announce=2", "net.ipv6.conf.all.forwarding=1")
	l.run(`
ip addr add 10.1.0.1/24 brd 10.1.0.255 dev qr-11111111-aa
ip addr add 172.24.4.10/24 brd 172.24.4.255 dev qg-22222222-bb
ip addr add 172.24.4.20/32 dev qg-22222222-bb
ip -6 addr add fd01::1/64 dev qr-11111111-aa nodad
ip route add default via 172.24.4.1 dev qg-22222222-bb proto static
ip route add 10.9.0.0/16 via 10.1.0.77 proto static metric 50
ip route add unreachable 10.66.0.0/16
ip route add default via 172.24.4.1 dev qg-22222222-bb table 16 proto static onlink
ip rule add from 10.1.0.9 lookup 16 priority 57481
ip rule add fwmark 0x2/0xff lookup 16 priority 57482
ip neigh add 172.24.4.1 lladdr ` + worldMAC + ` dev qg-22222222-bb nud reachable
ip neigh add 10.1.0.5 lladdr ` + vmMAC + ` dev qr-11111111-aa nud stale
ip neigh add 10.1.0.6 lladdr ` + vmMAC + ` dev qr-11111111-aa nud permanent
`)
	ovs.Need(t, "ipset", "nft", "conntrack")
	l.command("create banned hash:net family inet hashsize 1024 maxelem 65536\nadd banned 6.6.6.0/24\nadd banned 6.6.7.7\ncreate ports bitmap:port range 0-1024 timeout 300\nadd ports 22\n", "ipset", "restore")
	l.command(neutron, "iptables-nft-restore")
	l.command(firewall, "nft", "-f", "-")
	l.command(neutron6, "ip6tables-nft-restore")
	return l
}

// neutron is what the l3 agent writes, shortened.
const neutron = `*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:neutron-filter-top - [0:0]
:neutron-l3-agent-FORWARD - [0:0]
:neutron-l3-agent-INPUT - [0:0]
:neutron-l3-agent-local - [0:0]
:neutron-l3-agent-scope - [0:0]
-A INPUT -j neutron-l3-agent-INPUT
-A FORWARD -j neutron-filter-top
-A FORWARD -j neutron-l3-agent-FORWARD
-A neutron-filter-top -j neutron-l3-agent-local
-A neutron-l3-agent-FORWARD -j neutron-l3-agent-scope
-A neutron-l3-agent-FORWARD -d 9.9.9.9/32 -m comment --comment "a rule of \"the\" firewall" -j DROP
-A neutron-l3-agent-FORWARD -m set --match-set banned dst -j REJECT --reject-with icmp-port-unreachable
-A neutron-l3-agent-INPUT -m mark --mark 0x1/0xffff -j ACCEPT
-A neutron-l3-agent-INPUT -p tcp -m tcp --dport 9697 -j DROP
-A neutron-l3-agent-scope -o qr-11111111-aa -p tcp -m mark ! --mark 0x4000000/0xffff0000 -m comment --comment "no scope" -m multiport --dports 1,2,3:5 -j DROP
COMMIT
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -d 10.77.0.0/16 -j CT --notrack
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:neutron-l3-agent-POSTROUTING - [0:0]
:neutron-l3-agent-PREROUTING - [0:0]
:neutron-l3-agent-float-snat - [0:0]
:neutron-l3-agent-snat - [0:0]
:neutron-postrouting-bottom - [0:0]
-A PREROUTING -j neutron-l3-agent-PREROUTING
-A POSTROUTING -j neutron-l3-agent-POSTROUTING
-A POSTROUTING -j neutron-postrouting-bottom
-A neutron-l3-agent-POSTROUTING ! -o qg-22222222-bb -m conntrack ! --ctstate DNAT -j ACCEPT
-A neutron-l3-agent-PREROUTING -d 172.24.4.20/32 -j DNAT --to-destination 10.1.0.5
-A neutron-l3-agent-PREROUTING -d 169.254.169.254/32 -i qr-+ -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 9697
-A neutron-l3-agent-float-snat -s 10.1.0.5/32 -j SNAT --to-source 172.24.4.20
-A neutron-l3-agent-snat -j neutron-l3-agent-float-snat
-A neutron-l3-agent-snat -o qg-22222222-bb -j SNAT --to-source 172.24.4.10
-A neutron-l3-agent-snat -m mark ! --mark 0x2/0xffff -m conntrack --ctstate DNAT -j SNAT --to-source 172.24.4.10
-A neutron-postrouting-bottom -m comment --comment "Perform source NAT on outgoing traffic." -j neutron-l3-agent-snat
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i qg-+ -j MARK --set-xmark 0x2/0xffff
-A POSTROUTING -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
COMMIT
`

// firewall is a table of nft with what kube-proxy and firewalld use.
const firewall = `table inet firewall {
	set bad {
		type ipv4_addr
		flags interval
		elements = { 7.7.0.0/16, 7.8.0.1 }
	}
	map ports {
		type inet_service : verdict
		elements = { 23 : drop, 24 : jump more }
	}
	counter met {
	}
	chain more {
		counter accept comment "with a { brace"
	}
	chain forward {
		type filter hook forward priority filter + 10; policy accept;
		ct state established,related accept
		ip daddr @bad counter drop
		udp dport vmap @ports
		ip daddr . udp dport vmap { 1.2.3.4 . 80 : accept, 1.2.3.5 . 81 : drop }
		meta l4proto udp udp dport { 90, 91, 100-110 } counter name "met" reject with icmpx admin-prohibited
	}
}
`

const neutron6 = `*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j ACCEPT
COMMIT
`

// packet returns a frame with its checksums.
func packet(t *testing.T, src, dst string, all ...gopacket.SerializableLayer) []byte {
	t.Helper()
	mac := func(text string) net.HardwareAddr { m, _ := net.ParseMAC(text); return m }
	ethernet := &layers.Ethernet{SrcMAC: mac(src), DstMAC: mac(dst), EthernetType: layers.EthernetTypeIPv4}
	for _, layer := range all {
		ip, ok := layer.(*layers.IPv4)
		if !ok {
			continue
		}
		for _, above := range all {
			switch l4 := above.(type) {
			case *layers.TCP:
				_ = l4.SetNetworkLayerForChecksum(ip)
			case *layers.UDP:
				_ = l4.SetNetworkLayerForChecksum(ip)
			}
		}
	}
	buffer := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		append([]gopacket.SerializableLayer{ethernet}, all...)...); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func ipv4(src, dst string, protocol layers.IPProtocol, ttl uint8) *layers.IPv4 {
	return &layers.IPv4{Version: 4, IHL: 5, TTL: ttl, Protocol: protocol, SrcIP: net.ParseIP(src), DstIP: net.ParseIP(dst)}
}

func udp(t *testing.T, srcMAC, dstMAC, src, dst string, sport, dport uint16, ttl uint8) []byte {
	return packet(t, srcMAC, dstMAC, ipv4(src, dst, layers.IPProtocolUDP, ttl),
		&layers.UDP{SrcPort: layers.UDPPort(sport), DstPort: layers.UDPPort(dport)}, gopacket.Payload("hello"))
}

// shown returns frames in a form in which what is random in them is left out: the ID of packets of the kernel.
func shown(frames []linux.Frame) string {
	var list []string
	for _, frame := range frames {
		raw := append([]byte{}, frame.Bytes...)
		if raw[0] == 0x33 || raw[0] == 1 { // reports about multicast groups, which the kernel sends by itself
			continue
		}
		if len(raw) > 34 && raw[12] == 8 && raw[13] == 0 && raw[23] == 1 { // ICMP: its ID and checksum
			copy(raw[18:20], []byte{0, 0})
			copy(raw[24:26], []byte{0, 0})
		}
		list = append(list, frame.Device+" "+hex.EncodeToString(raw))
	}
	return strings.Join(list, "\n")
}

func complete(t *testing.T, list []*report.Namespace) {
	t.Helper()
	for _, n := range list {
		for _, part := range report.Parts() {
			c := n.Counts[part]
			t.Logf("%s %s: %+v", n.Name, part, *c)
			if c.Restored != c.Recorded {
				t.Errorf("%s: %s: %+v", n.Name, part, *c)
			}
		}
		for _, entry := range n.Named {
			t.Errorf("%s: %+v", n.Name, entry)
		}
		for _, remark := range n.Remarks {
			t.Errorf("%s: %s", n.Name, remark)
		}
	}
}

func TestRouterIsRestoredAndForwardsAsTheOriginal(t *testing.T) {
	original := router(t)
	original.send("qr-11111111-aa", udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.4.4", 2001, 53, 64))
	original.send("qg-22222222-bb", udp(t, worldMAC, gateMAC, "8.8.4.5", "172.24.4.20", 2002, 53, 64))
	wd := newWorkdir(t)
	original.record(wd)
	list, client := restored(t, wd)
	if len(list) != 1 {
		t.Fatalf("%d namespaces", len(list))
	}
	complete(t, list)
	for _, c := range []struct {
		name, device string
		frame        []byte
		step         string // a rule that it has to meet
	}{
		{"SNAT", "qr-11111111-aa", udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1001, 53, 64),
			"-A neutron-l3-agent-snat -o qg-22222222-bb -j SNAT --to-source 172.24.4.10"},
		{"floating IP", "qg-22222222-bb", udp(t, worldMAC, gateMAC, "8.8.8.8", "172.24.4.20", 1002, 22, 64),
			"-A neutron-l3-agent-PREROUTING -d 172.24.4.20/32 -j DNAT --to-destination 10.1.0.5"},
		{"dropped", "qr-11111111-aa", udp(t, vmMAC, routerMAC, "10.1.0.6", "9.9.9.9", 1003, 53, 64),
			`-A neutron-l3-agent-FORWARD -d 9.9.9.9/32 -m comment --comment "a rule of \"the\" firewall" -j DROP`},
		{"TTL 1", "qr-11111111-aa", udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1004, 53, 1), ""},
		{"no route", "qr-11111111-aa", udp(t, vmMAC, routerMAC, "10.1.0.6", "10.66.1.1", 1005, 53, 64), ""},
		{"to itself", "qr-11111111-aa", udp(t, vmMAC, routerMAC, "10.1.0.6", "10.1.0.1", 1006, 53, 64),
			"-A INPUT -j neutron-l3-agent-INPUT"},
		{"not for it", "qr-11111111-aa", udp(t, vmMAC, worldMAC, "10.1.0.6", "8.8.8.8", 1007, 53, 64), ""},
		{"reply to SNAT", "qg-22222222-bb", udp(t, worldMAC, gateMAC, "8.8.4.4", "172.24.4.10", 53, 2001, 64),
			"ct state established,related accept"},
		{"reply to DNAT", "qr-11111111-aa", udp(t, vmMAC, routerMAC, "10.1.0.5", "8.8.4.5", 53, 2002, 64),
			"ct state established,related accept"},
		{"set of ipset", "qr-11111111-aa", udp(t, vmMAC, routerMAC, "10.1.0.6", "6.6.6.6", 1010, 53, 64),
			"-A neutron-l3-agent-FORWARD -m set --match-set banned dst -j REJECT --reject-with icmp-port-unreachable"},
		{"set of nft", "qr-11111111-aa", udp(t, vmMAC, routerMAC, "10.1.0.6", "7.7.7.7", 1011, 53, 64),
			"ip daddr @bad counter drop"},
		{"map of nft", "qr-11111111-aa", udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1012, 23, 64),
			"udp dport vmap @ports"},
		{"nft rejects", "qr-11111111-aa", udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1013, 91, 64),
			`udp dport { 90-91, 100-110 } counter name "met" reject with icmpx admin-prohibited`},
		// Last, since the kernel asks for the neighbour again and again.
		{"no neighbour", "qg-22222222-bb", udp(t, worldMAC, gateMAC, "8.8.8.8", "10.1.0.99", 1008, 53, 64), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := slices.DeleteFunc(original.send(c.device, c.frame),
				func(f linux.Frame) bool { // it asks old neighbours again
					return isARP(f.Bytes) && c.name != "no neighbour"
				})
			for range 2 {
				got, err := client.Pass(t.Context(),
					linux.Question{Namespace: original.name, Frame: linux.Frame{Device: c.device, Bytes: c.frame}})
				if err != nil {
					t.Fatal(err)
				}
				if shown(got.Out) != shown(want) {
					t.Errorf("out came\n%s\nwant\n%s", shown(got.Out), shown(want))
				}
				found := c.step == ""
				for _, step := range got.Steps {
					found = found || step.Rule == c.step
				}
				if !found {
					t.Errorf("no step %s in %+v", c.step, got)
				}
				t.Logf("%s", fmt.Sprintf("%+v", got))
			}
		})
	}
}

// isARP reports whether a frame has an ARP packet.
func isARP(frame []byte) bool { return len(frame) > 13 && frame[12] == 0x08 && frame[13] == 0x06 }
