//go:build linux

package keeper_test

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/replica/linux"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// TestBridgeForwardsBetweenItsPorts restores a namespace with a bridge, as libvirt, docker and Neutron's linux bridges
// make them, with rules that apply to bridged packets.
func TestBridgeForwardsBetweenItsPorts(t *testing.T) {
	ovs.Need(t, "iptables-nft-restore", "ip")
	original := newLive(t, "bridged")
	original.run("ip link add name qbr-1 address 02:00:00:00:00:99 type bridge forward_delay 0")
	original.run("ip link set qbr-1 up")
	original.tap("tap-1", "fe:16:3e:00:00:05")
	original.tap("qvb-1", "fe:16:3e:00:00:06")
	original.run("ip link set tap-1 master qbr-1\nip link set qvb-1 master qbr-1\nip addr add 10.3.0.1/24 dev qbr-1")
	original.command("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -m physdev --physdev-in tap-1 --physdev-is-bridged -m udp --dport 99 -j DROP\nCOMMIT\n", "iptables-nft-restore")
	wd := newWorkdir(t)
	original.record(wd)
	list, client := restored(t, wd)
	complete(t, list)
	if out := inside(t, wd, "bridged", "ip", "-d", "link", "show", "qbr-1"); !strings.Contains(out, " bridge ") {
		t.Skipf("this kernel has no bridges: %s", out)
	}
	for port, frame := range map[string][]byte{
		"99": udp(t, vmMAC, worldMAC, "10.1.0.6", "8.8.8.8", 1, 99, 64),
		"53": udp(t, vmMAC, worldMAC, "10.1.0.6", "8.8.8.8", 1, 53, 64),
	} {
		want := shown(original.send("tap-1", frame))
		for range 2 {
			got, err := client.Pass(t.Context(), linux.Question{Namespace: "bridged",
				Frame: linux.Frame{Device: "tap-1", Bytes: frame}})
			if err != nil {
				t.Fatal(err)
			}
			if shown(got.Out) != want {
				t.Errorf("to port %s: out came\n%s\nwant\n%s\n%.600v", port, shown(got.Out), want, got)
			}
		}
	}
	if table := inside(t, wd, "bridged", "bridge", "fdb", "show"); strings.Contains(table, vmMAC) {
		t.Errorf("the bridge remembers a question:\n%s", table)
	}
	if _, err := client.Pass(t.Context(), linux.Question{Namespace: "bridged",
		Frame: linux.Frame{Device: "qbr-1", Bytes: udp(t, vmMAC, worldMAC, "10.1.0.6", "8.8.8.8", 1, 53, 64)}}); err == nil ||
		!strings.Contains(err.Error(), "bridge") {
		t.Errorf("a frame into the bridge itself: %v", err)
	}
}

// TestVRFLeadsToItsTable restores a node with a VRF, where the kernel has none too: packets of its devices use its
// table, answers of the node leave by them, and nothing else knows the addresses of the VRF.
func TestVRFLeadsToItsTable(t *testing.T) {
	ovs.Need(t, "ip")
	wd := newWorkdir(t)
	simple(t, wd, "udn")
	links := `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
2: mp1-udn-vrf: <NOARP,MASTER,UP,LOWER_UP> mtu 65575 qdisc noqueue state UP
    link/ether 02:00:00:00:00:07 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 1280
    vrf table 1007 addrgenmode eui64
3: ovn-k8s-mp1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400 qdisc noqueue master mp1-udn-vrf state UNKNOWN
    link/ether ` + routerMAC + ` brd ff:ff:ff:ff:ff:ff
    inet 10.1.0.1/24 brd 10.1.0.255 scope global ovn-k8s-mp1
4: br-ex: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UNKNOWN
    link/ether ` + gateMAC + ` brd ff:ff:ff:ff:ff:ff
    inet 172.24.4.10/24 brd 172.24.4.255 scope global br-ex
`
	write(t, wd.NamespaceRecorded("udn", workdir.RecordedLinks), links)
	write(t, wd.NamespaceRecorded("udn", workdir.RecordedKernelRoutes),
		"default via 172.24.4.1 dev br-ex table 1007\nunreachable 8.8.0.0/16\n172.24.4.0/24 dev br-ex proto kernel scope link src 172.24.4.10\n")
	write(t, wd.NamespaceRecorded("udn", workdir.HostRules),
		"0:\tfrom all lookup local\n1000:\tfrom all lookup [l3mdev-table]\n32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n")
	write(t, wd.NamespaceRecorded("udn", workdir.HostNftables),
		"table inet t {\n\tchain c {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\tiifname \"mp1-udn-vrf\" tcp dport 25 drop\n\t}\n}\n")
	write(t, wd.NamespaceRecorded("udn", workdir.HostNeighbours), "172.24.4.1 dev br-ex lladdr "+worldMAC+" REACHABLE\n")
	list, client := restored(t, wd)
	for _, n := range list[0].Named {
		t.Logf("%+v", n)
	}
	remarks := strings.Join(list[0].Remarks, "\n")
	if hasTap := strings.Contains(remarks, "a tap stands for vrf mp1-udn-vrf"); hasTap != strings.Contains(remarks,
		"rules of netfilter name mp1-udn-vrf") {
		t.Errorf("remarks %s", remarks)
	}
	got, err := client.Pass(t.Context(), linux.Question{Namespace: "udn",
		Frame: linux.Frame{Device: "ovn-k8s-mp1", Bytes: udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1, 53, 64)}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Out) != 1 || got.Out[0].Device != "br-ex" {
		t.Errorf("out came %.600v\n%s%s", got, inside(t, wd, "udn", "ip", "-d", "link"), inside(t, wd, "udn", "ip", "rule"))
	}
	closed := linux.Frame{Device: "ovn-k8s-mp1", Bytes: udp(t, vmMAC, routerMAC, "10.1.0.6", "10.1.0.1", 1, 53, 64)}
	got, err = client.Pass(t.Context(), linux.Question{Namespace: "udn", Frame: closed})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Local || len(got.Out) != 1 || got.Out[0].Device != "ovn-k8s-mp1" {
		t.Errorf("to a closed port of the VRF's address: out came %.600v\n%s", got, inside(t, wd, "udn", "ip", "rule"))
	}
	foreign := linux.Frame{Device: "br-ex", Bytes: udp(t, worldMAC, gateMAC, "172.24.4.1", "10.1.0.1", 1, 53, 64)}
	got, err = client.Pass(t.Context(), linux.Question{Namespace: "udn", Frame: foreign})
	if err != nil {
		t.Fatal(err)
	}
	if got.Local || slices.ContainsFunc(got.Out, func(f linux.Frame) bool { return f.Device == "ovn-k8s-mp1" }) {
		t.Errorf("to the VRF's address, by a device outside of it: out came %.600v\n%s", got,
			inside(t, wd, "udn", "ip", "route", "show", "table", "all"))
	}
}
