package reach

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/running"
	"ovs-offline/test/oracle/sets"
)

// open opens a session on the running nodes of a recorded set.
func open(t *testing.T, name string) (*trace.Session, *sets.Set) {
	t.Helper()
	recorded := needed(t, name)
	return openFolder(t, running.Of(t, recorded).Folder), recorded
}

// needed returns a recorded set whose replicas can run here.
func needed(t *testing.T, name string) *sets.Set {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	return sets.Recorded(t, "../../scripts/lab/lab", name)
}

func openFolder(t *testing.T, folder string) *trace.Session {
	t.Helper()
	s, err := trace.OpenFolder(t.Context(), folder, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// start starts replicas of a recorded set that are the test's own, and returns its folder, and the replicas by node.
func start(t *testing.T, name string) (folder string, replicas map[string]*fidelity.Replica) {
	t.Helper()
	recorded := needed(t, name)
	folder = ovs.Dir(t)
	replicas = map[string]*fidelity.Replica{}
	paths, err := recorded.Workdirs(t.Context(), folder, sets.Native)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range recorded.Nodes {
		n := fidelity.Started(t, paths[node])
		replicas[node] = n
	}
	return folder, replicas
}

// ask returns the cells of a matrix.
func ask(t *testing.T, s *trace.Session, o Options) (*Matrix, []Cell) {
	t.Helper()
	m, err := New(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return m, slices.Collect(m.Cells(t.Context()))
}

func parsePorts(t *testing.T, text string) []Port {
	t.Helper()
	var all []Port
	for _, word := range strings.Fields(text) {
		p, err := ParsePort(word)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func arrives(v answer.Verdict) bool { return v == answer.Reachable || v == answer.OneWay }

// planted is who reaches whom in the set kubernetes-ic, as its policies in
// scripts/lab/sets/kubernetes-ic.sh say in words:
//   - Pods of ns2 accept tcp 5432 from the web pods of ns1; tcp 9100 to 9110 from all pods but
//     ns3/eip-0; tcp 5432 and 8080 from ns1/client-0; nothing else.
//   - An admin policy denies everything from ns3 to ns2.
//   - ns1/client-0 sends tcp 5432 to ns2, and udp 53 to all; nothing else.
//
// All other pairs reach each other with all ports.
const planted = `
	ns1/web-0          ns2/db-0  tcp/5432 tcp/9100 tcp/9105 tcp/9110
	ns1/web-0          ns2/db-1  tcp/5432 tcp/9100 tcp/9105 tcp/9110
	ns1/web-1          ns2/db-0  tcp/5432 tcp/9100 tcp/9105 tcp/9110
	ns1/web-1          ns2/db-1  tcp/5432 tcp/9100 tcp/9105 tcp/9110
	kube-system/dns-0  ns2/db-0  tcp/9100 tcp/9105 tcp/9110
	kube-system/dns-0  ns2/db-1  tcp/9100 tcp/9105 tcp/9110
	ns2/db-0           ns2/db-1  tcp/9100 tcp/9105 tcp/9110
	ns2/db-1           ns2/db-0  tcp/9100 tcp/9105 tcp/9110
	ns3/eip-0          ns2/db-0
	ns3/eip-0          ns2/db-1
	ns3/open-0         ns2/db-0
	ns3/open-0         ns2/db-1
	ns1/client-0       ns2/db-0           tcp/5432
	ns1/client-0       ns2/db-1           tcp/5432
	ns1/client-0       ns1/web-0          udp/53
	ns1/client-0       ns1/web-1          udp/53
	ns1/client-0       ns3/eip-0          udp/53
	ns1/client-0       ns3/open-0         udp/53
	ns1/client-0       kube-system/dns-0  udp/53
`

// policy has the ports of each pair that is an exception, by the names of both.
type policy map[string]string

func plantedPolicy() policy {
	ports := policy{}
	for line := range strings.Lines(strings.TrimSpace(planted)) {
		if words := strings.Fields(line); len(words) > 1 {
			ports[words[0]+" "+words[1]] = " " + strings.Join(words[2:], " ") + " "
		}
	}
	return ports
}

func (p policy) allows(a Answer, port Port) bool {
	allowed, exception := p[a.From+" "+a.To]
	return !exception || strings.Contains(allowed, " "+port.String()+" ")
}

// TestMatrixWithoutAReplica stops the replica of a node. Pairs of pods on other nodes keep the
// verdicts of the policies, and of the others only what is decided before that node is known.
func TestMatrixWithoutAReplica(t *testing.T) {
	folder, replicas := start(t, "kubernetes-ic")
	if err := replicas["worker3"].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := openFolder(t, folder)
	policy := plantedPolicy()
	_, cells := ask(t, s, Options{Each: true, From: []string{"ns?/*", "kube-system/*"},
		To:    []string{"ns?/*", "kube-system/*"},
		Ports: parsePorts(t, "icmp tcp/5432 tcp/9100 udp/53")})
	const cause = "node worker3: its replica does not run"
	there := map[string]bool{} // the pods of worker3
	for _, e := range s.Names().Senders() {
		there[e.Name] = e.Node == "worker3"
	}
	undetermined, known := 0, 0
	for _, c := range cells {
		for _, a := range c.Asked {
			expected := policy.allows(a, c.Port)
			switch {
			case there[a.From] && (a.Verdict != answer.Undetermined || a.Reason != cause),
				there[a.To] && expected && a.Verdict != answer.Undetermined,
				a.Verdict == answer.Undetermined && !strings.HasPrefix(a.Reason, cause),
				a.Verdict == answer.Undetermined && !there[a.From] && !there[a.To],
				a.Verdict != answer.Undetermined && arrives(a.Verdict) != expected:
				t.Errorf("%s to %s, %s: %s (%s, %s), expected to arrive: %t", a.From, a.To, c.Port, a.Verdict, a.Reason, a.Rule,
					expected)
			}
			if a.Verdict == answer.Undetermined {
				undetermined++
			} else {
				known++
			}
		}
	}
	t.Logf("%d pairs and ports are undetermined, and %d as planted", undetermined, known)
	if undetermined < 50 || known < 50 {
		t.Error("few pairs were compared")
	}
}

// TestMatrixIsThePlantedPolicy compares the matrix of the pods of a cluster with its policies.
func TestMatrixIsThePlantedPolicy(t *testing.T) {
	s, _ := open(t, "kubernetes-ic")
	policy := plantedPolicy()
	_, cells := ask(t, s, Options{Each: true, From: []string{"ns?/*", "kube-system/*"},
		To:    []string{"ns?/*", "kube-system/*"},
		Ports: parsePorts(t, "icmp tcp/22 tcp/80 tcp/443 tcp/5432 tcp/8080 tcp/9100 tcp/9105 tcp/9110 tcp/9111 udp/53 udp/5353")})
	compared := 0
	for _, c := range cells {
		for _, a := range c.Asked {
			compared++
			if expected := policy.allows(a, c.Port); arrives(a.Verdict) != expected || a.Verdict == answer.Undetermined {
				t.Errorf("%s to %s, %s: %s (%s, %s), expected to arrive: %t", a.From, a.To, c.Port, a.Verdict, a.Reason, a.Rule,
					expected)
			}
			// The router of worker2 sends all that is from ns3/eip-0 to the gateway router,
			// also replies to pods on worker2. UDP leaves from there with the egress IP as
			// its source. What conntrack takes as invalid keeps its source, and the gateway
			// router sends it back, until the datapath has recirculated it as often as that of
			// userspace does.
			onWorker2 := a.From == "ns1/web-1" || a.From == "ns2/db-0"
			circle := c.Port.Protocol != "udp" && a.Reason == "reply: translation failed"
			if a.Verdict == answer.OneWay && (!onWorker2 || a.To != "ns3/eip-0" || c.Port.Protocol != "udp" && !circle) {
				t.Errorf("%s to %s, %s: %s (%s)", a.From, a.To, c.Port, a.Verdict, a.Reason)
			}
		}
	}
	if pods := 8; compared != pods*(pods-1)*12 {
		t.Errorf("%d pairs and ports were compared", compared)
	}
	t.Logf("%d pairs and ports are as planted", compared)
}

// TestMatrixAgreesWithRealPackets compares the cells with where the lab's packets came out:
// those that begin a connection from an endpoint to another, to a service or outside. make test has the packets of one
// sender of each node; TestAnswersAreWhatCameOut in package trace has all.
func TestMatrixAgreesWithRealPackets(t *testing.T) {
	for name, least := range map[string]int{"kubernetes-ic": sweep.Count(50, 15), "openstack": sweep.Count(50, 15),
		"neutron-ovs": sweep.Count(10, 5)} {
		t.Run(name, func(t *testing.T) {
			s, recorded := open(t, name)
			sent := ofEachNode(s, firsts(s, recorded))
			o := Options{Services: true, External: []string{"198.51.100.9", "203.0.113.9", "8.8.8.8"}, Each: true}
			for _, p := range sent {
				o.Ports, o.From = append(o.Ports, p.port), append(o.From, p.from)
			}
			slices.SortFunc(o.Ports, ComparePorts)
			slices.Sort(o.From)
			o.Ports, o.From = slices.Compact(o.Ports), slices.Compact(o.From)
			_, cells := ask(t, s, o)
			compared := 0
			for _, c := range cells {
				for _, a := range c.Asked {
					for _, p := range sent {
						if p.from == a.From && p.port == c.Port && (p.to == a.To || p.to == c.To) {
							compared++
							p.compare(t, c, a)
						}
					}
				}
			}
			t.Logf("%d packets agree", compared)
			if compared < least {
				t.Errorf("%d packets were compared, of %d", compared, len(sent))
			}
		})
	}
}

// ofEachNode returns the packets of the sender of each node that sent the most, and in a sweep all.
func ofEachNode(s *trace.Session, sent []first) []first {
	count, most := map[string]int{}, map[string]string{} // by sender, and the sender by node
	for _, p := range sent {
		count[p.from]++
	}
	for _, e := range s.Names().Senders() {
		if count[e.Name] > count[most[e.Node]] {
			most[e.Node] = e.Name
		}
	}
	chosen := slices.Collect(maps.Values(most))
	return sweep.Rows(sent, func(p first) bool { return slices.Contains(chosen, p.from) })
}

// first is a real packet that begins a connection.
type first struct {
	*sets.Packet
	from, to string // as cells name them
	port     Port
}

func (p first) compare(t *testing.T, c Cell, a Answer) {
	own := func(o sets.Output) bool { return o.Own && o.Role != "uplink" }
	came := slices.ContainsFunc(p.Outputs, own)
	switch {
	case p.Class == sets.Generated && a.Verdict == answer.Undetermined: // OVN asks for the next hop
	case a.Verdict == answer.Undetermined &&
		strings.Contains(a.Reason, "whether it forwards the packet is not known"): // the packet came out there
	case a.Verdict == answer.Ambiguous && p.Choice && came:
	case !arrives(a.Verdict) && a.Verdict != answer.Unreachable, arrives(a.Verdict) != came:
		t.Errorf("packet %d (%s): %s to %s, %s: %s (%s, %s), and it came out: %t", p.ID, p.Shows, c.From, c.To, c.Port,
			a.Verdict, a.Reason, a.Rule, came)
	}
}

// firsts returns the packets of a set that begin connections between endpoints over IPv4.
func firsts(s *trace.Session, recorded *sets.Set) []first {
	var found []first
	senders := s.Names().Senders()
	for _, p := range recorded.Packets {
		fields := map[string]string{}
		for field := range strings.SplitSeq(p.Flow, ",") {
			key, value, _ := strings.Cut(field, "=")
			fields[key] = value
		}
		port, begins := beginning(p, fields)
		if !begins || len(p.After) > 0 || p.Established || p.Size > 100 || fields["nw_ttl"] != "64" ||
			fields["dl_vlan"] != "" {
			continue
		}
		f := first{Packet: p, port: port}
		for _, e := range senders {
			for _, ip := range e.IPs {
				if ip.String() == fields["nw_src"] && e.MAC == fields["dl_src"] {
					f.from = e.Name
				}
				if ip.String() == fields["nw_dst"] {
					f.to = e.Name
				}
			}
		}
		for _, e := range s.Names().Services() {
			if e.IPs[0].String() == fields["nw_dst"] && (Port{e.Protocol, e.Port}) == port {
				f.to = serviceName(s, e)
			}
		}
		if f.to == "" {
			f.to = "external/" + fields["nw_dst"]
		}
		if f.from != "" {
			found = append(found, f)
		}
	}
	return found
}

// serviceName returns the name of the column of a VIP.
func serviceName(s *trace.Session, e names.Endpoint) string {
	for _, o := range s.Names().Services() {
		if o.Name == e.Name && vip(o) != vip(e) {
			return fmt.Sprintf("%s (%s)", e.Name, vip(e))
		}
	}
	return e.Name
}

// beginning returns the port of an IPv4 packet that begins a connection.
func beginning(p *sets.Packet, fields map[string]string) (Port, bool) {
	raw, err := hex.DecodeString(p.Bytes)
	const header, flags, syn = 14 + 20, 13, 2
	if err != nil || len(raw) < header+flags+1 || fields["nw_src"] == "" {
		return Port{}, false
	}
	if fields["icmp_type"] == "8" {
		return Port{Protocol: "icmp"}, true
	}
	for _, protocol := range []string{"tcp", "udp", "sctp"} {
		if text := fields[protocol+"_dst"]; text != "" {
			port, err := ParsePort(protocol + "/" + text)
			return port, err == nil && (protocol != "tcp" || raw[header+flags]&0x3f == syn)
		}
	}
	return Port{}, false
}

// TestInterruptedMatrixEnds ends a matrix after some cells, as Ctrl-C does.
func TestInterruptedMatrixEnds(t *testing.T) {
	s, _ := open(t, "neutron-ovs")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m, err := New(ctx, s, Options{Ports: parsePorts(t, "icmp tcp/22 tcp/80 udp/53")})
	if err != nil {
		t.Fatal(err)
	}
	cells := 0
	for range m.Cells(ctx) {
		if cells++; cells == 3 {
			cancel()
		}
	}
	if cells != 3 {
		t.Errorf("%d cells", cells)
	}
}
