package restore_test

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

// sum returns the Internet checksum (RFC 1071), computed in 16-bit words.
func sum(data []byte) []byte {
	var s uint32
	for ; len(data) > 1; data = data[2:] {
		s += uint32(binary.BigEndian.Uint16(data))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return binary.BigEndian.AppendUint16(nil, ^uint16(s))
}

// frame returns a frame from a host with an IGMP message in IPv4, or an MLD message in
// IPv6; tag 0 means no tag.
func frame(tag uint16, to string, message []byte) string {
	dst := netip.MustParseAddr(to)
	f := []byte{0x01, 0x00, 0x5e, 1, 1, 1, 0x02, 0, 0, 0, 0, 9}
	if tag != 0 {
		f = binary.BigEndian.AppendUint16(append(f, 0x81, 0), tag)
	}
	if dst.Is4() {
		copy(message[2:], sum(message))
		ip := []byte{0x45, 0, 0, byte(20 + len(message)), 0, 0, 0, 0, 1, 2, 0, 0, 10, 0, 0, 9}
		ip = append(ip, dst.AsSlice()...)
		copy(ip[10:], sum(ip))
		return hex.EncodeToString(append(append(append(f, 8, 0), ip...), message...))
	}
	ip := append([]byte{0x60, 0, 0, 0, 0, byte(len(message)), 58, 1}, netip.MustParseAddr("fe80::9").AsSlice()...)
	ip = append(ip, dst.AsSlice()...)
	copy(message[2:], sum(append(append(append([]byte{}, ip[8:]...), 0, 0, 0, byte(len(message)), 0, 0, 0, 58),
		message...)))
	copy(f, []byte{0x33, 0x33})
	return hex.EncodeToString(append(append(append(f, 0x86, 0xdd), ip...), message...))
}

// join returns a host's membership report in one of the protocols.
func join(tag uint16, protocol, group string) string {
	address := netip.MustParseAddr(group).AsSlice()
	switch protocol {
	case "IGMPv1":
		return frame(tag, group, append([]byte{0x12, 0, 0, 0}, address...))
	case "IGMPv2":
		return frame(tag, group, append([]byte{0x16, 0, 0, 0}, address...))
	case "IGMPv3":
		return frame(tag, "224.0.0.22", append([]byte{0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0}, address...))
	case "MLDv1":
		return frame(tag, group, append([]byte{131, 0, 0, 0, 0, 0, 0, 0}, address...))
	default:
		return frame(tag, "ff02::16", append([]byte{143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0}, address...))
	}
}

// queried returns a querier's general query.
func queried(tag uint16, protocol string) string {
	if protocol == "MLD" {
		return frame(tag, "ff02::1", append([]byte{130, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 16)...))
	}
	return frame(tag, "224.0.0.1", []byte{0x11, 100, 0, 0, 0, 0, 0, 0})
}

// table returns the output of mdb/show without the ages.
func (n *liveNode) table(bridge string) string {
	n.t.Helper()
	var lines []string
	for line := range strings.Lines(n.appctl("mdb/show", bridge)) {
		if words := strings.Fields(line); len(words) > 3 && words[0] != "port" {
			lines = append(lines, strings.Join(words[:len(words)-1], " "))
		}
	}
	return strings.Join(lines, "\n")
}

// hear makes a port receive a packet, and waits until the bridge has processed it,
// because the effect of a packet depends on the earlier ones.
func (n *liveNode) hear(bridge, port, packet string) {
	n.t.Helper()
	seen := func() string {
		_, count, _ := strings.Cut(n.ofctl("dump-aggregate", bridge), "packet_count=")
		return count
	}
	before := seen()
	n.appctl("netdev-dummy/receive", port, packet)
	ovs.Await(n.t, bridge+" to see what "+port+" received", func() bool { return seen() != before })
}

// snoopingNode starts a node that has a bridge with every kind of port, and behind a
// patch port a second bridge, which learns from all packets that reach it.
func snoopingNode(t *testing.T) (n *liveNode, packets []string) {
	n = newLiveNode(t)
	n.vsctl("add-br", "br-m", "--", "set", "Bridge", "br-m", "fail_mode=secure", "mcast_snooping_enable=true",
		`other_config:hwaddr="02:00:00:00:00:77"`)
	n.likeKernel("br-m")
	for _, port := range []string{"acc tag=10", "trunk trunks=10,20", "nu vlan_mode=native-untagged tag=30 trunks=10",
		"nt vlan_mode=native-tagged tag=30 trunks=10",
		"qinq vlan_mode=dot1q-tunnel tag=40 cvlans=7,8", "plain"} {
		n.vsctl(append([]string{"add-port", "br-m"}, strings.Fields(port)...)...)
	}
	n.vsctl("add-bond", "br-m", "bo", "m1", "m2", "bond_mode=active-backup", "trunks=10,50")
	n.vsctl("add-port", "br-m", "tun", "--", "set", "Interface", "tun", "type=vxlan", "options:remote_ip=10.0.0.2")
	n.vsctl("add-port", "br-m", "pm", "--", "set", "Interface", "pm", "type=patch", "options:peer=pp", "--", "add-br",
		"br-p",
		"--", "add-port", "br-p", "pp", "--", "set", "Interface", "pp", "type=patch", "options:peer=pm", "--", "add-port",
		"br-p", "host")
	n.ofctl("add-flow", "br-m", "actions=NORMAL")
	n.ofctl("mod-port", "br-m", "nt", "no-flood")
	// Here no packet can be received from a tunnel, so the live node is made to treat a
	// packet as one from the tunnel.
	tunnel := strings.TrimSpace(n.vsctl("get", "Interface", "tun", "ofport"))
	n.ofctl("add-flow", "br-m", "priority=40000,in_port=plain,actions=load:"+tunnel+"->NXM_OF_IN_PORT[],NORMAL")
	n.hear("br-m", "plain", join(0, "IGMPv2", "239.0.0.11"))
	n.ofctl("--strict", "del-flows", "br-m", "priority=40000,in_port=plain")
	for _, heard := range [][2]string{
		{"acc", join(0, "IGMPv1", "239.0.0.1")}, {"trunk", join(20, "IGMPv2", "239.0.0.2")},
		{"trunk", join(10, "IGMPv3", "239.0.0.1")},
		{"nu", join(0, "IGMPv2", "239.0.0.3")}, {"nu", join(10, "IGMPv2", "239.0.0.3")}, {"nt", join(0, "MLDv1", "ff05::3")},
		{"nt", join(30, "MLDv2", "ff05::4")},
		{"qinq", join(7, "IGMPv2", "239.0.0.5")}, {"plain", join(0, "MLDv2", "ff05::1:6")},
		{"m1", join(50, "IGMPv2", "239.0.0.6")}, {"m2", join(50, "IGMPv2", "239.0.0.6")},
		{"host", join(0, "IGMPv2", "239.0.0.8")}, {"br-m", join(0, "IGMPv2", "239.0.0.9")},
		{"br-m", join(10, "MLDv1", "ff05::9")},
		{"nu", queried(10, "IGMP")}, {"host", queried(20, "MLD")}} {
		n.hear("br-m", heard[0], heard[1])
	}
	n.vsctl("set", "Bridge", "br-p", "mcast_snooping_enable=true")
	n.appctl("fdb/flush")
	for _, p := range []string{"acc,udp", "trunk,dl_vlan=10,udp", "trunk,dl_vlan=20,udp", "nu,udp", "nt,udp", "plain,udp",
		"m1,dl_vlan=50,udp", "LOCAL,udp", "pm,udp"} {
		for _, group := range []string{"dl_dst=01:00:5e:00:00:01,nw_dst=239.0.0.1",
			"dl_dst=01:00:5e:00:00:02,nw_dst=239.0.0.2", "dl_dst=01:00:5e:00:00:03,nw_dst=239.0.0.3",
			"dl_dst=01:00:5e:00:00:06,nw_dst=239.0.0.6", "dl_dst=01:00:5e:00:00:08,nw_dst=239.0.0.8",
			"dl_dst=01:00:5e:00:00:09,nw_dst=239.0.0.9", "dl_dst=01:00:5e:00:00:0b,nw_dst=239.0.0.11"} {
			packets = append(packets, "br-m in_port="+p+","+group)
		}
	}
	return n, packets
}

func TestMulticastGroups(t *testing.T) {
	n, packets := snoopingNode(t)
	sos := n.report()
	want := n.table("br-m")
	if got := strings.Count(want, "\n") + 1; got < 16 {
		t.Fatalf("the live node has learned only %d of its groups: %s", got, want)
	}
	r := replay(t, sos, process.Options{})
	r.wantStep("multicast groups", report.Restored)
	for _, d := range tableDifferences(want, r.table("br-m")) {
		t.Error(d)
	}
	if extra := r.table("br-p"); extra != "" {
		t.Errorf("the bridge behind the patch port has learned: %s", extra)
	}
	for _, d := range differences(n, r.liveNode, sweep.Spread(packets, len(packets)/3)...) { // each port, and each group
		t.Error(d)
	}
	// Nothing is left of the flows and packets of the step.
	for _, c := range []string{"fdb/show br-m", "fdb/show br-p"} {
		if out := r.appctl(strings.Fields(c)...); strings.Count(out, "\n") != 1 {
			t.Errorf("%s: %s", c, out)
		}
	}
	if out := r.ofctl("--no-stats", "dump-flows", "br-m"); strings.Count(out, "NORMAL") != 1 ||
		strings.Contains(out, "dl_src") {
		t.Errorf("flows: %s", out)
	}
	if out := r.ofctl("show", "br-m"); strings.Count(out, "NO_FLOOD") != 1 || strings.Contains(out, "NO_FWD") {
		t.Errorf("ports: %s", out)
	}
	if out := r.appctl("dpctl/dump-flows"); strings.Contains(out, "recirc_id") {
		t.Errorf("datapath flows: %s", out)
	}

	without := replay(t, sos, process.Options{}, "multicast groups")
	if !anyDiffers(n, without.liveNode, packets...) {
		t.Error("the step changes nothing")
	}
}

// tableDifferences compares tables as sets, because their order depends on a hash.
func tableDifferences(want, have string) []string {
	var list []string
	for _, pair := range [][3]string{{want, have, "missing: "}, {have, want, "not on the live node: "}} {
		for line := range strings.Lines(pair[0]) {
			if line = strings.TrimSpace(line); !strings.Contains("\n"+pair[1]+"\n", "\n"+line+"\n") {
				list = append(list, pair[2]+line)
			}
		}
	}
	return list
}

func TestMulticastNotCollected(t *testing.T) {
	n := newLiveNode(t)
	n.vsctl("add-br", "br-m", "--", "set", "Bridge", "br-m", "mcast_snooping_enable=true")
	n.vsctl("add-port", "br-m", "p1")
	sos := n.report()
	remove(t, sos, "ovs-appctl_mdb.show_br-m")
	replay(t, sos, process.Options{}).wantStep("multicast groups", report.Unknown, "br-m: no mdb/show was collected")
}
