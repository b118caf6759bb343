package prove

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/prove/symbolic"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/bdd"
	"ovs-offline/internal/show"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/running"
	"ovs-offline/test/oracle/sets"
)

// open opens a session on the replicas of a set.
func open(t *testing.T, name string) (*trace.Session, *sets.Set) {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	recorded := sets.Recorded(t, "../../scripts/lab/lab", name)
	session, err := trace.OpenFolder(t.Context(), running.Of(t, recorded).Folder, trace.Options{Options: follow.Options{New: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session, recorded
}

// entrance is where packets of a family enter a bridge.
type entrance struct {
	at     symbolic.Place
	port   int
	family symbolic.Family
}

// truths computes what becomes of packets, once for each entrance.
type truths struct {
	t        *testing.T
	session  *trace.Session
	fabric   *fabric
	machines map[symbolic.Family]*symbolic.Machine
	tracking map[symbolic.Family]*symbolic.Machine // by the recorded connections
	results  map[entrance]*computed
}

func newTruths(t *testing.T, session *trace.Session) *truths {
	machines := func() map[symbolic.Family]*symbolic.Machine { return map[symbolic.Family]*symbolic.Machine{} }
	return &truths{t, session, &fabric{nodes: session.Nodes(), peer: session.Peer}, machines(), machines(), map[entrance]*computed{}}
}

type computed struct {
	machine *symbolic.Machine
	begin   bdd.Set
	result  *symbolic.Result
}

func (p *truths) at(e entrance) *computed {
	p.t.Helper()
	if found := p.results[e]; found != nil {
		return found
	}
	m := p.machines[e.family]
	if m == nil {
		var err error
		if m, err = symbolic.New(e.family, p.fabric); err != nil {
			p.t.Fatal(err)
		}
		p.machines[e.family] = m
	}
	begin, err := followed(m, e.family, symbolic.Tracking{})
	if err != nil {
		p.t.Fatal(err)
	}
	result, err := m.Run(p.t.Context(), e.at, e.port, begin)
	if err != nil {
		p.t.Fatal(err)
	}
	p.results[e] = &computed{m, begin, result}
	return p.results[e]
}

// TestRealPackets compares where real packets came out with the sets that they are in: of those that open a connection, and those of recorded
// connections, none came out at a port where it may not, and each came out where it must.
func TestRealPackets(t *testing.T) {
	for name, least := range map[string][2]int{"openstack": {100, 45}, "kubernetes-ic": {100, 30}} { // that open a connection, and of recorded ones
		t.Run(name, func(t *testing.T) {
			if name != "openstack" {
				sweep.Only(t, "the same test of openstack")
			}
			session, recorded := open(t, name)
			p := newTruths(t, session)
			opening, known := 0, 0
			for _, packet := range recorded.Packets {
				if packet.Established {
					known += p.check(recorded, packet)
				} else {
					opening += p.check(recorded, packet)
				}
			}
			if t.Logf("%d of %d packets open a connection, %d belong to one", opening, len(recorded.Packets), known); opening < least[0] || known < least[1] {
				t.Errorf("want %v", least)
			}
		})
	}
}

// among returns what becomes of packets among which a real one is: of all that open a connection, or of that packet alone, by the connections that
// were recorded.
func (p *truths) among(e entrance, packet flow.Packet, established bool) (*computed, bdd.Set) {
	p.t.Helper()
	if !established {
		found := p.at(e)
		packet.Delete("tcp_flags")
		set, err := setOf(found.machine, packet)
		if err != nil {
			p.t.Fatal(err)
		}
		return found, p.machines[e.family].Space().And(set, found.begin)
	}
	m := p.tracking[e.family]
	if m == nil {
		var err error
		if m, err = symbolic.New(e.family, p.fabric); err != nil {
			p.t.Fatal(err)
		}
		m.Track(symbolic.Tracking{Recorded: recordedBy(p.session)})
		p.tracking[e.family] = m
	}
	begin, err := followed(m, e.family, symbolic.Tracking{Recorded: recordedBy(p.session)})
	set, wrong := setOf(m, packet)
	if err != nil || wrong != nil {
		p.t.Fatal(err, wrong)
	}
	set = m.Space().And(set, begin)
	result, err := m.Run(p.t.Context(), e.at, e.port, set)
	if err != nil {
		p.t.Fatal(err)
	}
	return &computed{m, begin, result}, set
}

// check checks a packet that was sent; it returns the number of ports at which it was looked for.
func (p *truths) check(recorded *sets.Set, sent *sets.Packet) (ports int) {
	p.t.Helper()
	packet, err := flow.Parse(sent.Flow)
	if err != nil {
		p.t.Fatal(err)
	}
	n, ok := p.fabric.node(sent.Node)
	const fits = 1000 // bytes, everywhere in the lab
	if !ok || sent.Size > fits || len(sent.After) > 0 || sent.Datagram != 0 || packet.Fragmentation() != "" ||
		!sent.Established && packet.Has("tcp_flags") && packet.Get("tcp_flags") != "syn" {
		return 0
	}
	port, ok := n.Port(sent.Port)
	family := symbolic.Family(packet.EtherType())
	if !ok || family.String() == "" || packet.DoubleTagged() {
		return 0
	}
	packet.Delete("in_port")
	found, set := p.among(entrance{symbolic.Place{Node: n.Name, Bridge: port.Bridge}, port.Number, family}, packet, sent.Established)
	space := found.machine.Space()
	if set == bdd.None {
		return 0
	}
	for _, unknown := range found.result.Unknown {
		if space.And(set, unknown) != bdd.None {
			return 0
		}
	}
	for _, edge := range recorded.Ports {
		if edge.Role != "edge" || !slices.Contains(recorded.Nodes, edge.Node) {
			continue
		}
		reached := found.result.Ends[fmt.Sprintf("port %s of node %s", edge.Name, edge.Node)]
		must, may := space.And(set, reached.Must) != bdd.None, space.And(set, reached.May) != bdd.None
		came := slices.ContainsFunc(sent.Outputs, func(o sets.Output) bool { return o.Own && o.Node == edge.Node && o.Port == edge.Name })
		if ports++; must && !came && sent.Class != sets.Generated || came && !may {
			p.t.Errorf("packet %d, %s (%s): at %s must %v, may %v; it came out there: %v", sent.ID, sent.Shows, sent.Flow, edge.Label, must, may, came)
		}
	}
	return 1
}

// TestWitnesses asks the replicas about packets of the sets that get to each port, and about random ones, and compares all ports where they come out.
func TestWitnesses(t *testing.T) {
	for _, name := range sweep.Spread([]string{"openstack", "kubernetes-ic", "kubernetes-host"}, 1) {
		t.Run(name, func(t *testing.T) {
			session, recorded := open(t, name)
			p := newTruths(t, session)
			random := rand.New(rand.NewPCG(3, 4))
			asked := 0
			for _, edge := range sweep.Spread(recorded.Ports, 12) {
				n, collected := p.fabric.node(edge.Node)
				if edge.Role != "edge" || !collected {
					continue
				}
				port, ok := n.Port(edge.Name)
				if !ok || port.IfaceID == "" {
					continue
				}
				for _, family := range []symbolic.Family{symbolic.IPv4, symbolic.IPv6, symbolic.ARP} {
					found := p.at(entrance{symbolic.Place{Node: n.Name, Bridge: port.Bridge}, port.Number, family})
					asked += p.witnesses(session, recorded, n, port, found, random)
				}
			}
			if t.Logf("%d packets", asked); asked < 20 {
				t.Error("few packets were asked")
			}
		})
	}
}

// witnesses asks about packets of an entrance.
func (p *truths) witnesses(session *trace.Session, recorded *sets.Set, n trace.Node, port *host.Port, found *computed, random *rand.Rand) (asked int) {
	p.t.Helper()
	space := found.machine.Space()
	from := []bdd.Set{found.begin}
	for _, end := range slices.Sorted(maps.Keys(found.result.Ends)) {
		from = append(from, found.result.Ends[end].Must, found.result.Ends[end].May)
	}
	for _, set := range from {
		for range sweep.Count(20, 1) {
			if set == bdd.None {
				break
			}
			text := witness(found.machine, set, random)
			packet, err := flow.Parse(text)
			if err != nil {
				p.t.Fatal(err)
			}
			one, err := setOf(found.machine, packet)
			if err != nil {
				p.t.Fatal(err)
			}
			a, err := session.Flow(p.t.Context(), n.Name, fmt.Sprintf("%s in_port=%d,%s", port.Bridge, port.Number, text), 0)
			if err != nil {
				p.t.Fatal(err)
			}
			if a.Verdict == answer.Undetermined {
				continue
			}
			asked++
			for _, edge := range recorded.Ports {
				if edge.Role != "edge" || !slices.Contains(recorded.Nodes, edge.Node) {
					continue
				}
				reached := found.result.Ends[fmt.Sprintf("port %s of node %s", edge.Name, edge.Node)]
				must, may := space.And(one, reached.Must) != bdd.None, space.And(one, reached.May) != bdd.None
				came := slices.ContainsFunc(a.Outcomes, func(o answer.Outcome) bool { return o.Node == edge.Node && o.Port == edge.Name })
				if must && !came || came && !may {
					p.t.Errorf("%s %s: at %s must %v, may %v; it comes out there: %v (%s)", port.Name, text, edge.Label, must, may, came, a.Verdict)
				}
			}
		}
	}
	return asked
}

// TestProofs proves what the security groups, policies, routers and load balancers of the lab allow.
func TestProofs(t *testing.T) {
	type proof struct {
		from, to, protocol string
		verdict            Verdict
		has                string // in the words of a set
	}
	for name, list := range map[string][]proof{
		"openstack": {
			{"vm1", "vm2:22", "", Possible, "port 22"},
			{"vm1", "vm2:23", "", Impossible, ""},
			{"vm1", "vm5", "", Possible, "port 53, 161"},
			{"vm1", "vm9", "", Impossible, ""},
		},
		"kubernetes-ic": {
			{"ns1/client-0", "ns2/db-0:5432", "", Possible, "port 5432"},
			{"ns1/client-0", "ns2/db-0:5433", "", Impossible, ""},
			{"ns1/client-0", "ns2/db-0:5432", "udp", Impossible, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			session, recorded := open(t, name)
			idle := openIdle(t, recorded)
			for _, c := range list {
				ask := func(session *trace.Session) *Proof {
					question := trace.Between{From: c.from, To: c.to, Question: names.Question{Protocol: c.protocol}}
					document, err := Ask(t.Context(), session, question, func(int, int) {})
					if err != nil {
						t.Fatal(err)
					}
					expect.Equal(t, document.Doubtful(), session == idle, c)
					return document.Proofs[0]
				}
				got, alone := ask(session), ask(idle)
				words := got.words()
				expect.Equal(t, alone.Verdict, c.verdict, c, alone.Missing)
				expect.Equal(t, alone.words(), words, c)
				expect.Equal(t, alone.Asked, 0, c)
				if !strings.Contains(alone.NotWitnessed, "no replica is running of "+recorded.Nodes[0]) || got.NotWitnessed != "" {
					t.Errorf("%v: not witnessed: %q, and with replicas %q", c, alone.NotWitnessed, got.NotWitnessed)
				}
				expect.Equal(t, got.Verdict, c.verdict, c, got.Missing)
				expect.Equal(t, got.Disagree, nil, c)
				if all := strings.Join(words, "\n"); got.Asked < 50 || !strings.Contains(all, c.has) {
					t.Errorf("%v: %d asked: %s", c, got.Asked, all)
				}
			}
		})
	}
}

// words returns the sets of a proof in words.
func (p *Proof) words() (list []string) {
	for _, family := range p.Families {
		for _, set := range family.Packets {
			list = append(list, set.text(p.own, p.known))
		}
	}
	return list
}

// openIdle opens a session on the nodes of a set without replicas.
func openIdle(t *testing.T, recorded *sets.Set) *trace.Session {
	t.Helper()
	folder := ovs.Dir(t)
	if _, err := recorded.Workdirs(t.Context(), folder, sets.Native); err != nil {
		t.Fatal(err)
	}
	session, err := trace.OpenFolder(t.Context(), folder, trace.Options{Options: follow.Options{New: true}, Absent: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

// TestEverySender compares, for all senders of a target, the verdicts with what trace says of one packet of each.
func TestEverySender(t *testing.T) {
	session, _ := open(t, "openstack")
	question := trace.Between{From: "vm[1-5]", To: "vm2:22", Question: names.Question{Family: 4}}
	if sweep.Whole() {
		question.From, question.Family = "*", 0
	}
	document, err := Ask(t.Context(), session, question, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	document.Print(&show.Page{Out: &out})
	possible := 0
	for _, proof := range document.Proofs {
		from, _, _ := strings.Cut(proof.Question, " -> ")
		a, err := session.Ask(t.Context(), trace.Between{From: from, To: "vm2:22"})
		if err != nil {
			t.Fatal(err)
		}
		if proof.Verdict == Possible {
			possible++
		}
		arrives := a.Verdict == answer.Reachable || a.Verdict == answer.OneWay
		if arrives && proof.Verdict != Possible || proof.Verdict == Undetermined || !strings.Contains(out.String(), from) {
			t.Errorf("%s: %s %v; trace says %s\n%s", proof.Question, proof.Verdict, proof.Missing, a.Verdict, out.String())
		}
	}
	want := fmt.Sprintf("POSSIBLE  %s -> vm2:22: %d of %d senders get packets there\n", question.From, possible, len(document.Proofs))
	if possible == 0 || possible == len(document.Proofs) || !strings.HasPrefix(out.String(), want) {
		t.Errorf("want %s\n%s", want, out.String())
	}
}

// TestConnections proves what gets through of connections: by the states that each lookup finds, and by the recorded ones. The replicas are asked about
// packets of each set in the same way.
func TestConnections(t *testing.T) {
	_, recorded := open(t, "openstack")
	folder := running.Of(t, recorded).Folder
	for _, c := range []struct {
		from, to string
		states   conntrack.Flags // none for the recorded connections
		verdict  Verdict
		has      string
	}{
		{"vm1", "vm2", conntrack.Flags{Est: true}, Possible, "port 22, 80, 443"},
		{"vm1", "vm2:23", conntrack.Flags{Est: true}, Impossible, ""},
		{"vm1", "vm2:23", conntrack.Flags{Est: true, Rpl: true}, Possible, "port 23"},
		{"vm1", "vm2:23", conntrack.Flags{}, Impossible, ""},
		{"vm2", "vm1:20014", conntrack.Flags{}, Possible, "source port 22, port 20014"}, // answers of a recorded connection
	} {
		options := trace.Options{}
		if c.states != (conntrack.Flags{}) {
			options.States = slices.Repeat([]conntrack.Flags{c.states}, 64)
		}
		session, err := trace.OpenFolder(t.Context(), folder, options)
		if err != nil {
			t.Fatal(err)
		}
		question := trace.Between{From: c.from, To: c.to, Question: names.Question{Protocol: "tcp", Family: 4}}
		document, err := Ask(t.Context(), session, question, func(int, int) {})
		session.Close()
		if err != nil {
			t.Fatal(err)
		}
		got := document.Proofs[0]
		expect.Equal(t, got.Verdict, c.verdict, c, got.Missing)
		expect.Equal(t, got.Disagree, nil, c)
		if all := strings.Join(got.words(), "\n"); got.Asked < 20 || !strings.Contains(all, c.has) {
			t.Errorf("%v: %d asked: %s", c, got.Asked, all)
		}
	}
}
