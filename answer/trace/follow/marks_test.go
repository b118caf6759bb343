package follow_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// marking is a node whose kernel marks DNS, and routes from p2 to p3.
var marking = map[string]string{
	workdir.RecordedLinks: `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
2: p2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UNKNOWN
    link/ether 02:00:00:00:00:12 brd ff:ff:ff:ff:ff:ff
    inet 10.1.0.1/24 brd 10.1.0.255 scope global p2
3: p3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UNKNOWN
    link/ether 02:00:00:00:00:13 brd ff:ff:ff:ff:ff:ff
    inet 10.2.0.1/24 brd 10.2.0.255 scope global p3
`,
	workdir.RecordedKernelRoutes: "10.1.0.0/24 dev p2 proto kernel scope link src 10.1.0.1\n10.2.0.0/24 dev p3 proto kernel scope link src 10.2.0.1\n",
	workdir.HostNeighbours:       "10.2.0.9 dev p3 lladdr 02:00:00:00:00:29 REACHABLE\n",
	workdir.HostSysctl:           "net.ipv4.ip_forward = 1\n",
	workdir.HostNftables:         "table inet t {\n\tchain c {\n\t\ttype filter hook prerouting priority mangle; policy accept;\n\t\tudp dport 53 meta mark set 0x00001001\n\t}\n}\n",
}

// TestMarksBetweenOpenVSwitchAndTheKernel has a kernel that marks a packet, for whose mark a flow asks, and a flow that
// marks one. In the kernel's datapath, packets keep their marks between the two.
func TestMarksBetweenOpenVSwitchAndTheKernel(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "nft")
	path := node(t, fourPorts(nil, "priority=1,in_port=1,actions=output:2",
		"priority=10,in_port=1,udp,tp_dst=123,actions=set_field:0x3f0->pkt_mark,output:2",
		"priority=10,in_port=3,pkt_mark=0x1001,actions=output:4", "priority=5,in_port=3,pkt_mark=0,actions=drop"))
	wd, err := workdir.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range marking {
		file := wd.HostRecorded(name)
		if name == workdir.RecordedLinks || name == workdir.RecordedKernelRoutes {
			file = wd.Recorded(name)
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	node := open(t, "a", path)
	for _, c := range []struct {
		port, end, unsure string
		userspace         bool
	}{
		{"53", "delivered a p4", "", false},
		{"53", "dropped a - ", "", true},
		{"54", "dropped a - ", "", false},
		{"123", "dropped a - ", "the packet enters node with the mark 0x3f0, for which rules there ask", false},
		{"123", "dropped a - ", "", true},
	} {
		node.Conntrack.Userspace = c.userspace
		p := packet(t, "udp,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:12,nw_src=10.1.0.6,nw_dst=10.2.0.9,nw_ttl=64,tp_src=4000,tp_dst="+c.port)
		hop, _, err := follow.New([]*host.Host{node}, follow.Options{}).Packet(t.Context(),
			follow.Start{Node: "a", InPort: "p1", Packet: p})
		if err != nil {
			t.Fatal(err)
		}
		got := endsOf(hop)
		var unsure []string
		for _, b := range hop.Ends() {
			unsure = append(unsure, b.Uncertain...)
		}
		if text := strings.Join(unsure, "; "); !leads(got, c.end) || !strings.HasPrefix(text, c.unsure) ||
			(c.unsure == "") != (text == "") {
			t.Errorf("UDP port %s, userspace %t: %q, not certain: %q", c.port, c.userspace, got, text)
		}
	}
}
