package trace

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/frame"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// oneNode returns a session on a node whose switch blue has the ports vm1, which carries the
// container c1 in VLAN 101, vm2, nested, whose addresses are unknown, and loose without port
// security. They are opened and their flows computed by OVN itself.
func oneNode(t *testing.T) *Session {
	t.Helper()
	ovs.Need(t, "ovn-controller", "ovn-northd", "ovn-nbctl", "ovs-vswitchd", "ovsdb-tool", "ovs-ofctl")
	central := ovs.StartCentral(t)
	central.Northd()
	s := ovs.Start(t)
	s.Join(central, "node1")
	central.Nbctl("ls-add", "blue", "--", "lsp-add", "blue", "vm1", "--", "lsp-add", "blue", "vm2", "--", "lsp-add",
		"blue", "c1", "vm1", "101", "--",
		"lsp-add", "blue", "nested", "--", "lsp-set-addresses", "nested", "unknown", "--",
		"lsp-add", "blue", "loose", "--", "lsp-set-addresses", "loose", "02:00:00:00:00:05 10.0.1.5", "unknown")
	for port, address := range map[string]string{"vm1": "02:00:00:00:00:01 10.0.1.1", "vm2": "02:00:00:00:00:02 10.0.1.2",
		"c1": "02:00:00:00:00:03 10.0.1.3"} {
		central.Nbctl("lsp-set-addresses", port, address, "--", "lsp-set-port-security", port, address)
	}
	central.Nbctl("lsp-set-port-security", "vm2", "02:00:00:00:00:02 10.0.1.2 10.0.1.9", "--", "lsp-add", "blue", "vip",
		"--", "lsp-set-addresses", "vip", "02:00:00:00:00:09 10.0.1.9", "--",
		"lsp-set-type", "vip", "virtual", "--", "lsp-set-options", "vip", "virtual-ip=10.0.1.9", "virtual-parents=vm2")
	central.Nbctl("acl-add", "blue", "to-lport", "1000", `outport == "vm2" && tcp.dst == 80`, "allow-related", "--",
		"acl-add", "blue", "to-lport", "900", `outport == "vm2" && ip4`, "drop")
	for _, port := range []string{"vm1", "vm2", "nested", "loose"} {
		s.Vsctl("add-port", "br-int", "tap-"+port, "--", "set", "Interface", "tap-"+port, "external_ids:iface-id="+port)
	}
	for _, port := range []string{"vm1", "vm2", "c1", "nested", "loose"} {
		central.Nbctl("wait-until", "Logical_Switch_Port", port, "up=true")
	}
	central.Nbctl("--wait=hv", "sync")
	claim(t, s, "tap-vm2", "arp,dl_src=02:00:00:00:00:02,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1,arp_spa=10.0.1.9,arp_tpa=10.0.1.9,arp_sha=02:00:00:00:00:02")
	central.Sbctl("wait-until", "Port_Binding", "vip", "virtual_parent=vm2")
	central.Nbctl("--wait=hv", "sync")
	wd, err := workdir.Find(ovs.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{filepath.Join(s.Dir, "conf.db"): wd.Database(workdir.OVS),
		central.NB: wd.Database(workdir.NB), central.SB: wd.Database(workdir.SB)} {
		files.Write(t, to, files.Read(t, from))
	}
	for dump, command := range map[workdir.Dump]string{workdir.Flows: "dump-flows", workdir.Groups: "dump-groups",
		workdir.Meters: "dump-meters", workdir.TLV: "dump-tlv-map"} {
		files.Write(t, wd.DumpFile("br-int", dump), s.Ofctl("-O", "OpenFlow15", command, "br-int"))
	}
	return adopted(t, wd.Path())
}

// claim sends the packet by which an instance claims the address of a virtual port.
func claim(t *testing.T, s *ovs.Switch, port, packet string) {
	t.Helper()
	p, err := flow.Parse(packet)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := frame.Frame{Packet: p}.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	s.Appctl("netdev-dummy/receive", port, fmt.Sprintf("%x", raw))
}

// taken returns a capture file of packets in the notation of ofproto/trace. A packet after
// which a size stands, as "tcp,... 1500", has that many bytes.
func taken(t *testing.T, packets ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	if err := w.WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for i, text := range packets {
		text, size, _ := strings.Cut(text, " ")
		p, err := flow.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := frame.Frame{Packet: p}.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		length := len(raw)
		if size != "" {
			if _, err := fmt.Sscan(size, &length); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(int64(i), 0), CaptureLength: len(raw),
			Length: length}, raw); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// between returns a TCP packet between two hosts of the switch, by the last bytes of their
// addresses.
func between(from, to int, tag, flags string, src, dst int) string {
	return fmt.Sprintf("tcp,dl_src=02:00:00:00:00:%02x,dl_dst=02:00:00:00:00:%02x%s,nw_src=10.0.1.%d,nw_dst=10.0.1.%d,nw_ttl=64,tp_src=%d,tp_dst=%d,tcp_flags=%s", from, to, tag, from, to, src, dst, flags)
}

// opened returns the packets of a TCP handshake and its first data at a client.
func opened(client, server int, tag string) []string {
	return []string{between(client, server, tag, "syn", 5000, 80), between(server, client, tag, "syn|ack", 80, 5000),
		between(client, server, tag, "ack", 5000, 80), between(client, server, tag, "psh|ack", 5000, 80)}
}

func TestCapturesAtOneNode(t *testing.T) {
	s := oneNode(t)
	t.Run("senders", func(t *testing.T) { sendersBehindAnInterface(t, s) })
	t.Run("virtual", func(t *testing.T) { virtualPort(t, s) })
	t.Run("cut", func(t *testing.T) { fileThatEndsWithinAPacket(t, s) })
	t.Run("nothing to ask", func(t *testing.T) { filesWithoutAQuestion(t, s) })
	t.Run("sizes", func(t *testing.T) { sizesAreDifferentQuestions(t, s) })
}

// sendersBehindAnInterface asks whose packets those of a capture are, at interfaces that
// carry the packets of several.
func sendersBehindAnInterface(t *testing.T, s *Session) {
	tagged := ",dl_vlan=101,dl_vlan_pcp=0"
	request := func(from int) string {
		return fmt.Sprintf("arp,dl_src=02:00:00:00:00:%02x,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1,arp_spa=10.0.1.%d,arp_tpa=10.0.1.2,arp_sha=02:00:00:00:00:%02x", from, from, from)
	}
	const later = "tcp,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,nw_src=10.0.1.1,nw_dst=10.0.1.2,nw_ttl=64,nw_frag=later"
	for name, c := range map[string]struct {
		from, to string
		packets  []string
		want     []string // "SENDER VERDICT", in order
		others   int
	}{
		"a nested host behind unknown addresses": {"nested", "", append([]string{request(2)}, opened(0x99, 2, "")...),
			[]string{" REACHABLE", " REACHABLE", " REACHABLE"}, 2},
		"another MAC address of a port": {"loose", "", append(opened(0x55, 2, ""), opened(5, 2, "")...),
			slices.Repeat([]string{" REACHABLE"}, 6), 2},
		"another MAC address with port security": {"vm1", "", opened(0x55, 2, ""), nil, 4},
		"a container at its parent": {"vm1", "", append(opened(3, 2, tagged), opened(1, 2, "")...),
			append(slices.Repeat([]string{"c1 REACHABLE"}, 3), slices.Repeat([]string{" REACHABLE"}, 3)...), 2},
		"a container that its parent's file has": {"c1", "vm2", append(opened(3, 2, tagged), opened(1, 2, "")...),
			slices.Repeat([]string{" REACHABLE"}, 3), 5},
		"a container, captured behind its tag": {"c1", "", opened(3, 2, ""), slices.Repeat([]string{" REACHABLE"}, 3), 1},
		"a server that only its answers show": {"vm2", "", []string{between(2, 1, "", "syn|ack", 80, 5000)},
			[]string{" UNDETERMINED"}, 0},
		"a client whose connection is not known": {"vm1", "", []string{between(1, 2, "", "ack", 5000, 443)},
			[]string{" UNDETERMINED"}, 0},
		"a client that opens what is not allowed": {"vm1", "",
			[]string{between(1, 2, "", "syn", 5000, 443), between(1, 2, "", "syn", 5000, 443)}, []string{" UNREACHABLE"}, 0},
		"fragments of a datagram": {"vm1", "",
			[]string{between(1, 2, "", "syn", 5000, 80) + ",nw_frag=first", later}, slices.Repeat([]string{" REACHABLE"}, 2), 0},
		"a later fragment alone": {"vm1", "", []string{later}, []string{" UNDETERMINED"}, 0},
	} {
		got, err := s.Capture(t.Context(), Between{From: c.from, To: c.to}, bytes.NewReader(taken(t, c.packets...)))
		if len(c.want) == 0 {
			if want := fmt.Sprintf("it has no packet that vm1 sent (02:00:00:00:00:01): %d are of other senders",
				c.others); !errors.Is(err, ErrQuestion) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var list []string
		for _, sent := range got.Sent {
			verdict := sent.Error
			if sent.Answer != nil {
				verdict = string(sent.Answer.Verdict)
			}
			list = append(list, sent.From+" "+verdict)
		}
		if !slices.Equal(list, c.want) || got.Others != c.others {
			t.Errorf("%s: %q and %d of others, want %q and %d\n%s", name, list, got.Others, c.want, c.others, described(got))
		}
	}
}

// virtualPort asks for packets to and from the address of a virtual port, which OVN delivers by
// the MAC address of the parent alone.
func virtualPort(t *testing.T, s *Session) {
	for _, q := range []Between{{From: "vm1", To: "vip:80"}, {From: "vip", To: "vm1:80"}} {
		a, err := s.Ask(t.Context(), q)
		if err != nil || a.Verdict != answer.Reachable ||
			!strings.Contains(text(a), "vip is a virtual port: its parent, port vm2, has it") {
			t.Errorf("%s to %s: %v\n%s", q.From, q.To, err, text(a))
		}
	}
	own := "tcp,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:09,nw_src=10.0.1.1,nw_dst=10.0.1.9,nw_ttl=64,tp_src=1,tp_dst=80,tcp_flags=syn"
	a, err := s.Flow(t.Context(), "", "br-int in_port=tap-vm1,"+own, 0)
	if err != nil || a.Drop == nil || a.Drop.Reason != "no such port" ||
		!strings.Contains(a.Drop.Rule, "port vip is virtual: packets reach it with the MAC address of its parent") {
		t.Errorf("a packet for the MAC address of the virtual port itself: %v\n%s", err, text(a))
	}
	of := strings.NewReplacer("02:00:00:00:00:09", "02:00:00:00:00:02")
	var packets []string
	for _, p := range append(opened(1, 9, ""), between(2, 1, "", "syn", 7000, 80)) {
		packets = append(packets, of.Replace(p))
	}
	for from, want := range map[string][]string{"vip": {"REACHABLE"}, "vm2": {"REACHABLE", "REACHABLE"}} {
		c, err := s.Capture(t.Context(), Between{From: from}, bytes.NewReader(taken(t, packets...)))
		var got []string
		for _, sent := range c.Sent {
			got = append(got, string(sent.Answer.Verdict))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("packets of %s: %v %q, want %q\n%s", from, err, got, want, described(c))
		}
	}
}

// fileThatEndsWithinAPacket cuts a capture within its last packet.
func fileThatEndsWithinAPacket(t *testing.T, s *Session) {
	whole := taken(t, opened(1, 2, "")...)
	rest := len(taken(t, opened(1, 2, "")[:3]...))
	for _, size := range []int{rest, rest + 1, rest + 16, rest + 20, len(whole) - 1, len(whole)} {
		c, err := s.Capture(t.Context(), Between{From: "vm1"}, bytes.NewReader(whole[:size]))
		if err != nil {
			t.Errorf("%d of %d bytes: %v", size, len(whole), err)
			continue
		}
		sent := map[bool]int{true: 3, false: 2}[size == len(whole)]
		if cut := size != rest && size != len(whole); len(c.Sent) != sent || c.Cut != cut {
			t.Errorf("%d of %d bytes: got %d packets, cut: %v; want %d, cut: %v", size, len(whole), len(c.Sent), c.Cut, sent,
				cut)
		}
	}
}

// filesWithoutAQuestion asks about captures without a packet that is asked about, where silence
// would read as success.
func filesWithoutAQuestion(t *testing.T, s *Session) {
	for name, c := range map[string]struct {
		to, want string
		packets  []string
	}{
		"no packet": {"", "it has no packet that vm1 sent (02:00:00:00:00:01)", nil},
		"answers alone": {"", "it has no packet that vm1 sent (02:00:00:00:00:01): 1 are of other senders",
			[]string{between(2, 1, "", "syn|ack", 80, 5000)}},
		"all for another TO": {"loose", "none of the 3 packets that vm1 sent is for loose", opened(1, 2, "")},
	} {
		_, err := s.Capture(t.Context(), Between{From: "vm1", To: c.to}, bytes.NewReader(taken(t, c.packets...)))
		if !errors.Is(err, ErrQuestion) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// sizesAreDifferentQuestions sends packets that differ in nothing but their sizes.
func sizesAreDifferentQuestions(t *testing.T, s *Session) {
	port, _ := s.nodes[s.order[0]].Attached("vm2")
	port.MTU = 1400 // as of a virtual machine whose interface has less than the sender's
	question := between(1, 2, "", "psh|ack", 5000, 80)
	for _, sizes := range [][]string{{"100", "1414", "900", "1415", "1450", "1420"},
		{"1450", "1415", "1414", "100", "900", "1420"}} {
		var packets []string
		for _, size := range sizes {
			packets = append(packets, question+" "+size)
		}
		c, err := s.Capture(t.Context(), Between{From: "vm1"}, bytes.NewReader(taken(t, packets...)))
		if err != nil {
			t.Fatal(err)
		}
		got := map[answer.Verdict]string{}
		for _, sent := range c.Sent {
			if sent.Answer != nil {
				got[sent.Answer.Verdict] += fmt.Sprintf("%d: %d-%d ", sent.Packets, sent.MinSize, sent.MaxSize)
			}
		}
		if got[answer.Reachable] != "3: 100-1414 " || got[answer.Unreachable] != "3: 1415-1450 " {
			t.Errorf("sizes %v: %v\n%s", sizes, got, described(c))
		}
	}
	sender, _ := s.nodes[s.order[0]].Attached("vm1")
	sender.MTU = 1400
	c, err := s.Capture(t.Context(), Between{From: "vm1"}, bytes.NewReader(taken(t, question+" 20000")))
	if err != nil || len(c.Sent) != 1 || c.Sent[0].Answer.Verdict != answer.Reachable ||
		!slices.ContainsFunc(c.Sent[0].Answer.Trust.Assumed,
			func(text string) bool { return strings.Contains(text, "segmentation offload") }) {
		t.Errorf("20000 bytes for segmentation offload: %v\n%s", err, described(c))
	}
}
