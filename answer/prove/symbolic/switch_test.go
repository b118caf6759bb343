package symbolic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/bdd"
	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/openflow"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

const ports = 4

// bench is a real ovs-vswitchd with the bridge br0 and the ports p1 to p4.
type bench struct {
	*ovs.Switch
	t    *testing.T
	conn *unixctl.Conn
}

func startBench(t *testing.T) *bench {
	b := &bench{Switch: ovs.Start(t, "--enable-dummy=override", "--disable-system"), t: t}
	b.Vsctl(strings.Fields("add-br br0 -- set bridge br0 datapath_type=dummy fail_mode=secure protocols=OpenFlow15")...)
	for n := range ports {
		name := fmt.Sprintf("p%d", n+1)
		b.Vsctl("add-port", "br0", name, "--", "set", "interface", name, "type=dummy", fmt.Sprintf("ofport_request=%d", n+1))
	}
	conn, err := unixctl.Connect(t.Context(), b.Dir, "ovs-vswitchd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	b.conn = conn
	return b
}

// put replaces the flows and groups of the bridge.
func (b *bench) put(flows, groups []string) {
	b.t.Helper()
	file := func(name string, lines []string) string {
		path := filepath.Join(b.t.TempDir(), name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			b.t.Fatal(err)
		}
		return path
	}
	b.Ofctl("-O", "OpenFlow15", "del-flows", "br0")
	b.Ofctl("-O", "OpenFlow15", "del-groups", "br0")
	if len(groups) > 0 {
		b.Ofctl("-O", "OpenFlow15", "add-groups", "br0", file("groups", groups))
	}
	b.Ofctl("-O", "OpenFlow15", "--bundle", "add-flows", "br0", file("flows", flows))
}

var outputOf = regexp.MustCompile(`\bp[1-9]\b`)

// traced returns the ports to which the switch sends a packet, by all of its passes.
func (b *bench) traced(packet string) (out []string, text string) {
	b.t.Helper()
	printed, err := b.conn.Run(b.t.Context(), "ofproto/trace", "br0", packet, "--names")
	if err != nil {
		b.t.Fatalf("%s: %v", packet, err)
	}
	for line := range strings.Lines(string(printed)) {
		if actions, ok := strings.CutPrefix(line, "Datapath actions: "); ok {
			out = append(out, outputOf.FindAllString(actions, -1)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), string(printed)
}

// wires is a fabric of one bridge, each of whose ports is an end.
type wires struct{ bridge Bridge }

func (w wires) Bridge(context.Context, Place) (Bridge, error) { return w.bridge, nil }

func (wires) Ports(Place) (list []Port) {
	for n := range ports {
		list = append(list, Port{Number: n + 1})
	}
	return list
}

func (wires) Links(_ Place, port int, _ func(string) (uint64, bool)) ([]Link, error) {
	return []Link{{End: fmt.Sprintf("p%d", port)}}, nil
}

// machine compiles what the switch dumps.
func (b *bench) machine(family Family) *Machine {
	b.t.Helper()
	dump := b.Ofctl("-O", "OpenFlow15", "--no-names", "dump-flows", "br0")
	read := Bridge{Flows: func(yield func(openflow.Flow, error) bool) {
		for flow, problem := range openflow.Flows(strings.NewReader(dump)) {
			if problem != nil {
				b.t.Error(problem)
			}
			if !yield(flow, nil) {
				return
			}
		}
	}}
	read.Groups, _ = openflow.Groups(strings.NewReader(b.Ofctl("-O", "OpenFlow15", "--no-names", "dump-groups", "br0")))
	m, err := New(family, wires{read})
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

// random makes tables of fields of a few values, so that packets meet many flows.
type random struct{ *rand.Rand }

func (r random) of(list ...string) string { return list[r.IntN(len(list))] }

func (r random) match() string {
	var list []string
	add := func(text string, args ...any) { list = append(list, fmt.Sprintf(text, args...)) }
	protocol := r.of("ip", "tcp", "udp", "icmp")
	list = append(list, protocol)
	if r.IntN(2) == 0 {
		add("nw_src=10.0.0.%d/%s", r.IntN(16), r.of("255.255.255.255", "255.255.255.252", "255.255.255.5"))
	}
	if r.IntN(2) == 0 {
		add("nw_dst=10.0.0.%d/%d", r.IntN(16), 28+r.IntN(5))
	}
	if protocol != "ip" && protocol != "icmp" && r.IntN(2) == 0 {
		add("tp_dst=%d/0x%x", r.IntN(16), 1+r.IntN(15))
	}
	switch r.IntN(8) {
	case 0:
		add("reg0=%d/3", r.IntN(4))
	case 1:
		add("in_port=%d", 1+r.IntN(ports))
	case 2:
		list = append(list, r.of("vlan_tci=0x1000/0x1000", "dl_vlan=1", "dl_vlan=2"))
	case 3:
		add("nw_ttl=%d", r.IntN(3))
	case 4:
		add("dl_dst=%s", r.of("01:00:00:00:00:00/01:00:00:00:00:00", "02:00:00:00:00:01", "02:00:00:00:00:02/00:00:00:00:00:02"))
	}
	return strings.Join(list, ",")
}

func (r random) actions(table int, depth int) string {
	var list []string
	for range 1 + r.IntN(4) {
		switch r.IntN(17) {
		case 0, 1, 2:
			list = append(list, fmt.Sprintf("output:%d", 1+r.IntN(ports)))
		case 3, 4:
			if table < 3 {
				list = append(list, fmt.Sprintf("resubmit(,%d)", table+1+r.IntN(3-table)))
			}
		case 5:
			list = append(list, fmt.Sprintf("set_field:%d/%d->reg0", r.IntN(4), 3))
		case 6:
			list = append(list, fmt.Sprintf("set_field:10.0.0.%d->%s", r.IntN(16), r.of("ip_src", "ip_dst")))
		case 7:
			list = append(list, r.of("move:NXM_OF_IP_SRC[]->NXM_OF_IP_DST[]", "move:NXM_OF_IP_DST[0..1]->NXM_NX_REG0[0..1]", "move:NXM_OF_IP_SRC[0..3]->NXM_OF_IP_DST[0..3]"))
		case 8:
			list = append(list, "dec_ttl")
		case 9:
			list = append(list, fmt.Sprintf("group:%d", 1+r.IntN(2)))
		case 10:
			if depth > 0 {
				list = append(list, "clone("+r.actions(table, depth-1)+")")
			}
		case 11:
			list = append(list, "push:NXM_OF_IP_SRC[]", "set_field:10.0.0.3->ip_src", fmt.Sprintf("resubmit(,%d)", min(3, table+1)), "pop:NXM_OF_IP_SRC[]")
		case 12:
			list = append(list, r.of("push_vlan:0x8100,set_field:4098->vlan_vid,output:4,strip_vlan", "output:in_port", "output:NXM_NX_REG0[0..1]"))
		case 13:
			if table < 3 {
				list = append(list, fmt.Sprintf("ct(commit,table=%d,zone=%d,exec(set_field:%d->ct_mark))", table+1, r.IntN(3), r.IntN(3)))
			}
		case 14:
			if table < 3 {
				list = append(list, fmt.Sprintf("ct(commit,table=%d,nat(%s=10.0.0.%d))", table+1, r.of("src", "dst"), r.IntN(16)))
			}
		case 15:
			list = append(list, r.of("ct_clear", "FLOOD", "IN_PORT", "push:NXM_OF_IN_PORT[],set_field:ANY->in_port,output:1,pop:NXM_OF_IN_PORT[]"))
		case 16:
			list = append(list, "ct(commit,zone=5)")
		}
	}
	if len(list) == 0 {
		return "drop"
	}
	return strings.Join(list, ",")
}

// flows returns random flows of four tables, with conjunctions. None matches what ofproto/trace leaves out of packets that conntrack translates:
// the flags of NAT, and the original addresses.
func (r random) flows() (flows, groups []string) {
	for table := range 4 {
		for n := range 4 + r.IntN(8) {
			match := r.match()
			if table > 0 && r.IntN(4) == 0 {
				match += r.of(",ct_state=+trk+new", ",ct_state=-trk", ",ct_state=+trk,ct_mark=1")
			}
			flows = append(flows, fmt.Sprintf("table=%d,priority=%d,%s actions=%s", table, 10+n, match, r.actions(table, 1)))
		}
		if r.IntN(2) == 0 {
			id, priority := 10+table, 9+r.IntN(12)
			for n := range 5 {
				flows = append(flows, fmt.Sprintf("table=%d,priority=%d,ip,%s actions=conjunction(%d,%d/2)", table, priority,
					[]string{fmt.Sprintf("nw_src=10.0.0.%d", n*3%16), fmt.Sprintf("nw_dst=10.0.0.%d/%d", n*5%16, 30+n%3)}[n%2], id, 1+n%2))
			}
			flows = append(flows, fmt.Sprintf("table=%d,priority=%d,conj_id=%d,ip actions=%s", table, priority, id, r.actions(table, 1)))
		}
	}
	groups = []string{"group_id=1,type=all,bucket=output:1,bucket=set_field:10.0.0.9->ip_src,resubmit(,3)",
		"group_id=2,type=select,selection_method=hash,bucket=output:2,bucket=output:3,set_field:10.0.0.7->ip_dst,resubmit(,3)"}
	return flows, groups
}

// packet returns a random packet that opens a connection.
func (r random) packet() string {
	text := ""
	if r.IntN(4) == 0 {
		text = fmt.Sprintf("dl_vlan=%d,", r.IntN(4))
	}
	protocol := r.of("tcp,tcp_flags=syn", "udp", "icmp,icmp_type=8")
	text += protocol + fmt.Sprintf(",in_port=%d,dl_src=02:00:00:00:00:0%d,dl_dst=%s,nw_src=10.0.0.%d,nw_dst=10.0.0.%d,nw_ttl=%d", 1+r.IntN(ports), r.IntN(4),
		r.of("01:00:5e:00:00:01", "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:04"), r.IntN(16), r.IntN(16), r.IntN(4))
	if !strings.HasPrefix(protocol, "icmp") {
		text += fmt.Sprintf(",%[1]s_src=%[2]d,%[1]s_dst=%[3]d", protocol[:3], r.IntN(16), r.IntN(16))
	}
	return text
}

// TestRandomTables compares the ends of packets with the ports to which a real switch sends them, for tables made at random.
func TestRandomTables(t *testing.T) {
	b := startBench(t)
	tables, packets := sweep.Count(1000, 15), sweep.Count(400, 60)
	reached := 0
	for seed := range tables {
		r := random{rand.New(rand.NewPCG(uint64(seed), 7))}
		flows, groups := r.flows()
		b.put(flows, groups)
		m := b.machine(IPv4)
		results := map[int]*Result{}
		for port := 1; port <= ports; port++ {
			result, err := m.Run(t.Context(), Place{Bridge: "br0"}, port, bdd.All)
			if err != nil {
				t.Fatal(err)
			}
			results[port] = result
		}
		for range packets {
			text := r.packet()
			reached += b.compare(m, results, text)
			if t.Failed() {
				t.Fatalf("seed %d:\n%s\n%s", seed, strings.Join(flows, "\n"), strings.Join(groups, "\n"))
			}
		}
	}
	if reached < tables*packets/10 {
		t.Errorf("only %d packets of %d came out", reached, tables*packets)
	}
}

// compare compares what becomes of a packet, and returns 1 if it came out.
func (b *bench) compare(m *Machine, results map[int]*Result, text string) int {
	b.t.Helper()
	var port int
	set, out := bdd.All, []string(nil)
	for token := range openflow.Tokens(text) {
		name, value, valued := strings.Cut(token, "=")
		if _, proto, ok := openflow.Protocol(token); ok {
			name, value, valued = "nw_proto", fmt.Sprint(proto), true
		}
		if name == "in_port" {
			fmt.Sscan(value, &port)
			continue
		}
		if value == "syn" {
			value = "0x2"
		}
		where, err := m.Where(name, value)
		if err != nil || !valued {
			b.t.Fatalf("%s: %v", token, err)
		}
		set = m.space.And(set, where)
	}
	for _, field := range m.Fields() { // what the text does not say is 0
		if where, err := m.Where(field.Name, "0"); err == nil && m.space.And(set, where) != bdd.None {
			set = m.space.And(set, where)
		}
	}
	result := results[port]
	for why, packets := range result.Unknown {
		if m.space.And(packets, set) != bdd.None && !strings.Contains(why, "choose") && !strings.Contains(why, "another one") && !strings.Contains(why, "too often") {
			b.t.Fatalf("%s: not followed: %s", text, why)
		} else if m.space.And(packets, set) != bdd.None {
			return 0
		}
	}
	want, printed := b.traced(text)
	for n := range ports {
		name := fmt.Sprintf("p%d", n+1)
		reached := result.Ends[name]
		must, may := m.space.And(reached.Must, set) != bdd.None, m.space.And(reached.May, set) != bdd.None
		if got := slices.Contains(want, name); must && !got || got && !may {
			b.t.Errorf("%s: at %s: must %v, may %v; the switch sends it to %v\n%s", text, name, must, may, want, printed)
		}
		if must {
			out = append(out, name)
		}
	}
	return min(1, len(out))
}
