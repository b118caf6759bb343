package whatif

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/command"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/replica/scratch"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// live is a running set of the lab.
type live struct {
	t     *testing.T
	dir   string
	nodes []string
}

// startLive starts the set openstack, which ends with the test.
func startLive(t *testing.T) *live {
	t.Helper()
	dir, err := os.MkdirTemp("", "set.") // the path of a socket holds at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	l := &live{t, filepath.Join(dir, "s"), []string{"compute1", "compute2", "gateway"}}
	lab := func(args ...string) error {
		_, err := command.Run(context.Background(),
			command.Command{Argv: append([]string{"../../scripts/lab/lab"}, args...), Group: true})
		return err
	}
	t.Cleanup(func() {
		if err := lab("set-down", l.dir); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	if err := lab("set-up", "openstack", l.dir); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *live) run(argv ...string) string {
	l.t.Helper()
	out, err := command.Run(l.t.Context(), command.Command{Argv: argv, Env: append(os.Environ(), "OVN_RUNDIR="+l.dir)})
	if err != nil {
		l.t.Fatal(err)
	}
	return string(out)
}

func (l *live) central(name string) string { return filepath.Join(l.dir, "central", "ovn", name) }

// nbctl changes the live deployment, and waits until its nodes have the flows.
func (l *live) nbctl(args ...string) {
	l.t.Helper()
	l.apply(Change{args})
}

// apply does the same with several commands.
func (l *live) apply(change Change) {
	l.t.Helper()
	for _, args := range change {
		l.run(append([]string{"ovn-nbctl", "--db=unix:" + l.central("ovnnb_db.sock"), ovs.Timeout(), "--wait=hv"},
			args...)...)
	}
	ovs.Await(l.t, "BFD sessions that are all up, and alike twice in a row", l.isSettled())
}

// isSettled returns a condition that holds once all BFD sessions are up and are as they were when it was asked before.
func (l *live) isSettled() func() bool {
	before := ""
	return func() bool {
		l.unlearn()
		for range 2 { // for ports that ovn-controllers bind, which northd answers
			l.run("ovn-nbctl", "--db=unix:"+l.central("ovnnb_db.sock"), ovs.Timeout(), "--wait=hv", "sync")
		}
		now, up := "none", true
		for _, node := range l.nodes {
			sessions := l.vsctl(node, "--bare", "--columns=name,bfd_status", "find", "Interface", "bfd:enable=true")
			up = up && strings.Count(sessions, " state=up") == strings.Count(sessions, "ovn-")
			now += sessions
		}
		same := now == before
		before = now
		return up && same
	}
}

// unlearn removes what routers have learned from packets, as the announcements of a gateway
// that came to another node: it does not follow from a change.
func (l *live) unlearn() {
	l.t.Helper()
	l.run("ovn-sbctl", "--db=unix:"+l.central("ovnsb_db.sock"), ovs.Timeout(), "--all", "destroy", "MAC_Binding")
}

// hasLearned reports whether routers have learned addresses, according to a copy of the database.
func (l *live) hasLearned(database string) bool {
	l.t.Helper()
	content, _, err := file.Read(l.t.Context(), database, "MAC_Binding")
	if err != nil {
		l.t.Fatal(err)
	}
	return len(content.Rows("MAC_Binding")) > 0
}

func (l *live) vsctl(node string, args ...string) string {
	l.t.Helper()
	return l.run(append([]string{"ovs-vsctl", "--db=unix:" + filepath.Join(l.dir, "nodes", node, "ovs", "db.sock")},
		args...)...)
}

// collect copies the databases of the set, and returns the options to compute from them.
func (l *live) collect(dir *workdir.Dir) Options {
	l.t.Helper()
	folder := ovs.Dir(l.t)
	copied := func(from, to string) string {
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			l.t.Fatal(err)
		}
		if _, _, err := file.Standalone(l.t.Context(), from, to); err != nil {
			l.t.Fatal(err)
		}
		return to
	}
	southbound := func() string { return copied(l.central("ovnsb_db.db"), filepath.Join(folder, "sb.db")) }
	o := Options{Dir: dir, Runtime: process.New(process.Options{Folders: dir.RuntimeFolders()}),
		NB: copied(l.central("ovnnb_db.db"), filepath.Join(folder, "nb.db")), SB: southbound()}
	ovs.Await(l.t, "a database in which routers have learned no address", func() bool {
		if !l.hasLearned(o.SB) {
			return true
		}
		l.unlearn()
		o.SB = southbound()
		return false
	})
	for _, node := range l.nodes {
		wd, err := workdir.Find(filepath.Join(folder, node))
		if err != nil {
			l.t.Fatal(err)
		}
		home := filepath.Join(l.dir, "nodes", node, "ovs")
		copied(filepath.Join(home, "conf.db"), wd.Database(workdir.OVS))
		for table, name := range map[string]string{"Interface": workdir.RecordedListInterface,
			"Port": workdir.RecordedListPort, "Bridge": workdir.RecordedListBridge} {
			path := wd.Recorded(name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				l.t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(l.vsctl(node, "list", table)), 0o600); err != nil {
				l.t.Fatal(err)
			}
		}
		for _, bridge := range []string{"br-ex", "br-eth0"} {
			path := wd.DumpFile(bridge, workdir.Flows)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				l.t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(l.dump(node, bridge, "dump-flows")), 0o600); err != nil {
				l.t.Fatal(err)
			}
		}
		learned := l.learned(node)
		path := wd.Recorded(filepath.Join("bridges", "br-ex", workdir.RecordedFDB))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			l.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(learned), 0o600); err != nil {
			l.t.Fatal(err)
		}
		o.Nodes = append(o.Nodes, snapshot.Member{Name: node, Dir: wd})
	}
	return o
}

// recompute makes both ovn-controllers of a node compute all flows again: after some changes
// they leave a flow that they no longer want, depending on the order in which they learn of
// things, as the one that replaces a router's MAC on a chassis that becomes the gateway.
func (l *live) recompute(s *Session, node string) {
	l.t.Helper()
	computing := filepath.Join(s.options.Dir.VarRuns(), fmt.Sprint("node", slices.Index(l.nodes, node)), "ovn-controller")
	l.run("ovn-appctl", "-t", control(l.t, computing), "recompute")
	l.run("ovn-appctl", "-t", l.control(node, "ovn/ovn-controller"), "recompute")
	l.unlearn()
	l.run("ovn-nbctl", "--db=unix:"+l.central("ovnnb_db.sock"), ovs.Timeout(), "--wait=hv", "sync")
	next, err := s.read(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	s.now.close()
	s.now = next
}

// control returns the control socket of a daemon of a live node.
func (l *live) control(node, daemon string) string {
	l.t.Helper()
	return control(l.t, filepath.Join(l.dir, "nodes", node, daemon))
}

// control returns the control socket of the daemon with a pid file of that name.
func control(t *testing.T, daemon string) string {
	t.Helper()
	number, err := os.ReadFile(daemon + ".pid")
	if err != nil {
		t.Fatal(err)
	}
	return daemon + "." + strings.TrimSpace(string(number)) + ".ctl"
}

// learned returns the MAC addresses that br-ex of a node has learned, once that of the router
// is among them: ovn-controller announces it several times in its first half minute.
func (l *live) learned(node string) string {
	l.t.Helper()
	var learned string
	ovs.Await(l.t, fmt.Sprintf("br-ex of %s to learn %s", node, routerMAC), func() bool {
		learned = l.run("ovs-appctl", "-t", l.control(node, "ovs/ovs-vswitchd"), "fdb/show", "br-ex")
		return strings.Contains(learned, routerMAC)
	}, func() string { return learned })
	return learned
}

// dump returns what ovs-ofctl prints of a bridge of a live node.
func (l *live) dump(node, bridge, command string) string {
	l.t.Helper()
	return l.run("ovs-ofctl", "--no-names", "-O", "OpenFlow15", command,
		"unix:"+filepath.Join(l.dir, "nodes", node, "ovs", bridge+".mgmt"))
}

// state returns what the switch of a live node has, with the numbers that the computed
// ports of the same names have: where ovn-controller adds several ports at once,
// ovs-vswitchd numbers them in an order of its own. It also returns
// the numbers of those ports.
func (l *live) state(s *Session, node string) (flowdiff.State, map[string]bool) {
	l.t.Helper()
	computed, err := ports(l.t.Context(), s.scratch.Conf(node))
	if err != nil {
		l.t.Fatal(err)
	}
	names, err := ports(l.t.Context(), filepath.Join(l.dir, "nodes", node, "ovs", "conf.db"))
	if err != nil {
		l.t.Fatal(err)
	}
	renumbered := map[string]bool{}
	numbers := map[string]string{} // of the computed port, by that of the live one
	for name, number := range names {
		numbers[number] = cmp.Or(computed[name], "no port "+name)
		if computed[name] != number {
			l.t.Logf("%s: %s is %s live and %s computed", node, name, number, computed[name])
			renumbered[computed[name]] = true
		}
	}
	dump := func(what string) *strings.Reader {
		return strings.NewReader(portNumber.ReplaceAllStringFunc(l.dump(node, "br-int", what), func(text string) string {
			word, number := text[:strings.IndexAny(text, "=:")+1], text[strings.IndexAny(text, "=:")+1:]
			return word + cmp.Or(numbers[number], number)
		}))
	}
	state, lost := flowdiff.Read(dump("dump-flows"), dump("dump-groups"), dump("dump-meters"))
	if len(lost) > 0 {
		l.t.Fatal(lost[0])
	}
	return state, renumbered
}

var portNumber = regexp.MustCompile(`\b(in_port=|output:)[0-9]+`)

// ports returns the OpenFlow numbers of the interfaces of an OVS database by name.
func ports(ctx context.Context, path string) (map[string]string, error) {
	content, _, err := file.Read(ctx, path, "Interface")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, row := range content.Rows("Interface") {
		if number, ok := row.Int("ofport"); ok {
			found[row.String("name")] = strconv.Itoa(number)
		}
	}
	return found, nil
}

// differences returns in what a state differs from a live node's. Cookies are left out:
// they are the beginnings of UUIDs, which the servers choose again for new rows. So are the
// numbers of ECMP routes and of their members, and of new conntrack zones, which follow
// those UUIDs. Of ports that were added again and have other numbers than computed, which one
// has which number is left out too, and so are addresses that routers have learned meanwhile.
// zones holds the conntrack zones of the node before the change.
func differences(computed, live flowdiff.State, zones, renumbered map[string]bool) []string {
	d := flowdiff.Compare(computed, live)
	plain := func(text string) string {
		return portNumber.ReplaceAllStringFunc(withoutZones(flowdiff.WithoutCookies(text), zones), func(port string) string {
			if at := strings.IndexAny(port, "=:") + 1; renumbered[port[at:]] {
				return port[:at] + "NEW"
			}
			return port
		})
	}
	var found []string
	unmatched := map[string]int{}
	for _, c := range d.OnlyB {
		unmatched[plain(c.B)]++
	}
	for _, c := range d.OnlyA {
		if unmatched[plain(c.A)] > 0 {
			unmatched[plain(c.A)]--
			continue
		}
		found = append(found, "predicted only: "+flowdiff.WithoutCookies(c.A))
	}
	for _, c := range d.OnlyB {
		if text := plain(c.B); unmatched[text] > 0 && !learned.MatchString(text) {
			unmatched[text]--
			found = append(found, "live only: "+flowdiff.WithoutCookies(c.B))
		}
	}
	var predicted, lives, members []string
	for _, c := range d.Changed {
		a, b := plain(c.A), plain(c.B)
		switch {
		case !c.Actions, a == b:
		case ecmp.MatchString(a):
			predicted, lives = append(predicted, ecmp.ReplaceAllString(a, "")), append(lives, ecmp.ReplaceAllString(b, ""))
			members = append(members, "predicted "+a+"\n            live "+b)
		default:
			found = append(found, "predicted "+a+"\n            live "+b)
		}
	}
	slices.Sort(predicted)
	slices.Sort(lives)
	if !slices.Equal(predicted, lives) {
		found = append(found, members...)
	}
	return found
}

var (
	// ecmp matches the numbers of an ECMP route and of a member, in a match and in actions.
	ecmp = regexp.MustCompile(`reg8=0x[0-9a-f]+,|set_field:0x[0-9a-f]+/0xffff00000000->xreg4,group:[0-9]+`)
	// learned matches the flows of a row of MAC_Binding; those of table 79 note its use.
	learned = regexp.MustCompile(`table=6[67],priority=100,.*reg0=0x[0-9a-f]+,reg1[45]=|table=79,priority=100,(?:ip|arp|ipv6|icmp6),reg14=.*actions=drop`)
	zone    = regexp.MustCompile(`set_field:(0x[0-9a-f]+)(?:/0xffff)?->reg1[123]\b`)
)

// withoutZones replaces the numbers of zones other than those that a node had.
func withoutZones(text string, had map[string]bool) string {
	return zone.ReplaceAllStringFunc(text, func(load string) string {
		if number := zone.FindStringSubmatch(load)[1]; !had[number] {
			return strings.Replace(load, number, "NEW", 1)
		}
		return load
	})
}

// zones returns the numbers of the conntrack zones of a live node.
func (l *live) zones(node string) map[string]bool {
	l.t.Helper()
	text := l.vsctl(node, "get", "Bridge", "br-int", "external_ids")
	found := map[string]bool{"0": true}
	for _, m := range regexp.MustCompile(`ct-zone-[^=]+="?([0-9]+)`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			l.t.Fatal(err)
		}
		found[fmt.Sprintf("%#x", n)] = true
	}
	if len(found) < 5 {
		l.t.Fatalf("%s: zones %v", node, found)
	}
	return found
}

// The rows of the set that the changes name.
const (
	blue = "neutron-e3c647f7-8126-4a93-8c43-b76ffa808cd7"
	vm1  = "bd9e8124-4e85-4ce9-8853-39a7c44a644a"
	vm2  = "59b79644-9135-466c-8ae9-cedc223b2034"
	vm4  = "daeff289-a111-4f57-8a1e-a8600cb3ef10"

	external  = "lrp-e184c1ab-969d-4e41-82f9-060b8d095a43" // the gateway port of the router main
	routerMAC = "fa:16:3e:aa:00:10"                        // of that port

	compute1 = "4c4c4544-0000-4000-8000-000000000011"
	compute2 = "4c4c4544-0000-4000-8000-000000000012"
	gateway  = "4c4c4544-0000-4000-8000-000000000013"
)

// TestChangesDoWhatWasPredicted applies changes to a live deployment after their effect was
// computed from what was collected before all of them, and compares the flows of all nodes
// and where packets come out. The nodes have BFD sessions of their own.
func TestChangesDoWhatWasPredicted(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovn-controller", "ovn-northd",
		"ovn-nbctl", "unshare")
	if isolated, why := process.New(process.Options{}).Isolated(t.Context()); !isolated {
		t.Skip(why)
	}
	l := startLive(t)
	probe, err := sets.NewProbe(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.Resolve(t.Context(), "ext0", "172.24.4.10"); err != nil {
		t.Fatal(err)
	}
	folder, err := workdir.Find(ovs.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := scratch.Lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { scratch.Release(dir) })
	l.nbctl("sync")
	s, err := Open(t.Context(), l.collect(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	zones := map[string]map[string]bool{}
	before := map[string][]string{} // what differs before any change: the lab removes flows
	for _, node := range l.nodes {
		zones[node] = l.zones(node)
		state, renumbered := l.state(s, node)
		before[node] = differences(s.now.states[node], state, zones[node], renumbered)
		t.Logf("%s: %q", node, before[node])
	}
	for _, together := range rounds(changes(l)) {
		c := together[len(together)-1]
		t.Run(strings.ReplaceAll(c.what, " ", "-"), func(t *testing.T) {
			var change Change
			for _, one := range together {
				t.Log(one.what)
				change = append(change, one.args)
			}
			r, err := s.Apply(t.Context(), change)
			if err != nil {
				t.Fatal(err)
			}
			l.t = t
			l.apply(change)
			changed := 0
			for i, node := range l.nodes {
				compare := func() []string {
					state, renumbered := l.state(s, node)
					found := differences(s.now.states[node], state, zones[node], renumbered)
					return slices.DeleteFunc(found, func(text string) bool { return slices.Contains(before[node], text) })
				}
				wrong := compare()
				if len(wrong) > 0 {
					t.Logf("%s differs before all is computed again: %q", node, wrong)
					l.recompute(s, node)
					wrong = compare()
				}
				for _, text := range wrong {
					t.Errorf("%s: %s", node, text)
				}
				if !r.Nodes[i].Equal() {
					changed++
				}
				t.Logf("%s: %s", node, r.Nodes[i].Summary())
			}
			if changed == 0 && !c.nothing {
				t.Error("no change was predicted")
			}
			if len(c.packets) > 0 {
				comparePackets(t, s, probe, c.packets)
			}
		})
	}
}

// rounds returns the changes that are applied together: each alone in a sweep, and otherwise those of a round.
func rounds(all []planned) (together [][]planned) {
	for _, c := range all {
		at := c.round
		if sweep.Whole() {
			at = len(together)
		}
		for len(together) <= at {
			together = append(together, nil)
		}
		together[at] = append(together[at], c)
	}
	return together
}

// comparePackets compares what is said of packets with where they come out of the set.
func comparePackets(t *testing.T, s *Session, probe *sets.Probe, packets []packet) {
	t.Helper()
	err := s.onReplicas(t.Context(), Question{Runtime: choose.Process, Replica: replicaAt},
		func(asked *trace.Session) error {
			for _, p := range packets {
				a, err := asked.Ask(t.Context(), trace.Between{From: p.from, To: p.to,
					Question: names.Question{Protocol: "tcp", DstPort: p.port}})
				if err != nil {
					return err
				}
				predicted := string(a.Verdict)
				for _, o := range a.Outcomes {
					if o.Destination && !strings.HasSuffix(predicted, " "+o.Node) { // a flood may reach a node twice
						predicted += " " + o.Node
					}
				}
				var sent []string
				ovs.Resend(t, p.label+" to "+p.address, func() {
					if sent, err = probe.Connect(t.Context(), p.label, p.address, p.port, p.at...); err != nil {
						t.Fatal(err)
					}
				}, func() bool { return isWithin(p.at, sent) })
				t.Logf("%s -> %s: %s; the packet came out at %q", p.from, p.to, predicted, sent)
				for _, label := range p.at {
					if !slices.Contains(sent, label) {
						t.Errorf("%s -> %s: the packet did not come out at %s: %q", p.from, p.to, label, sent)
					}
				}
				if predicted != p.verdict {
					var text strings.Builder
					if err := a.Write(&text, answer.Options{Verbose: true}); err != nil {
						t.Error(err)
					}
					t.Errorf("%s -> %s: %s, want %s\n%s", p.from, p.to, predicted, p.verdict, &text)
				}
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

func isWithin(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// planned is a change of a live deployment.
type planned struct {
	what    string
	args    []string
	nothing bool     // it changes no flow
	packets []packet // to follow afterwards
	// round is the number of the changes with which make test applies this one, in the order of the list. The
	// packets of the last one are sent.
	round int
}

// packet is the first one of a TCP connection, and what becomes of it in the set.
type packet struct {
	from, to       string // of the question
	label, address string // of what is sent
	port           uint16
	verdict        string   // with the node where it arrives
	at             []string // the labels of the ports where it comes out
}

func changes(l *live) []planned {
	row := func(table, condition string) string {
		return strings.TrimSpace(l.run("ovn-nbctl", "--db=unix:"+l.central("ovnnb_db.sock"), "--bare", "--columns=_uuid",
			"find", table, condition))
	}
	dhcp := row("DHCP_Options", `cidr="192.168.10.0/24"`)
	router := strings.Fields(l.run("ovn-nbctl", "--db=unix:"+l.central("ovnnb_db.sock"), "--bare", "--columns=name",
		"find", "Logical_Router", "external_ids:neutron\\:router_name=main"))[0]
	out := func(gateway string) packet {
		return packet{from: vm2, to: "external/198.51.100.9", label: "vm2", address: "198.51.100.9", port: 443,
			verdict: "REACHABLE " + gateway, at: []string{gateway + ":eth1", "ext0"}}
	}
	in := packet{from: "external/172.24.4.1", to: "172.24.4.22", label: "ext0", address: "172.24.4.22", port: 443,
		verdict: "REACHABLE compute2", at: []string{"vm3"}}
	return []planned{
		// Tunnel keys are requested: ovn-northd gives those of ports that it sees first together in an order of its own.
		{what: "provider network", args: []string{"ls-add", "public9", "--", "set", "Logical_Switch", "public9",
			"other_config:requested-tnl-key=901", "--", "lsp-add", "public9", "net9", "--", "lsp-set-type", "net9", "localnet",
			"--", "lsp-set-addresses", "net9", "unknown", "--",
			"lsp-set-options", "net9", "network_name=physnet1", "requested-tnl-key=1", "--", "set", "Logical_Switch_Port",
			"net9", "tag=99"}, nothing: true},
		{what: "new router with gateways", args: []string{"lr-add", "r9", "--", "set", "Logical_Router", "r9",
			"options:requested-tnl-key=902", "--", "lrp-add", "r9", "r9-public", "00:00:00:00:cc:01", "172.24.9.9/24", "--",
			"lr-nat-add", "r9", "snat", "172.24.9.9", "10.9.0.0/24", "--",
			"lrp-set-gateway-chassis", "r9-public", gateway, "20", "--", "lrp-set-gateway-chassis", "r9-public", compute1, "10",
			"--",
			"lsp-add", "public9", "public-r9", "--", "lsp-set-type", "public-r9", "router", "--", "lsp-set-addresses",
			"public-r9", "router", "--", "lsp-set-options", "public-r9", "router-port=r9-public", "requested-tnl-key=2"}},
		{what: "next hop known", args: []string{"static-mac-binding-add", external, "172.24.4.1", "02:00:00:00:00:fe"}},
		{what: "second gateway of a lower priority", round: 1,
			args: []string{"lrp-set-gateway-chassis", external, compute1, "1"}, packets: []packet{out("gateway"), in}},
		{what: "second gateway of an equal priority", round: 1,
			args: []string{"lrp-set-gateway-chassis", external, compute1, "2"}, nothing: true},
		{what: "second gateway of a higher priority", round: 1,
			args: []string{"lrp-set-gateway-chassis", external, compute1, "3"}, packets: []packet{out("compute1"), in}},
		{what: "active gateway removed", round: 2, args: []string{"lrp-del-gateway-chassis", external, compute1}},
		{what: "gateway moved", round: 3, args: []string{"lrp-del-gateway-chassis", external, gateway, "--",
			"lrp-set-gateway-chassis", external, compute2, "5"}, packets: []packet{out("compute2"), in}},
		{what: "HA group of two", round: 3, args: []string{"--id=@high", "create", "HA_Chassis", "chassis_name=" + gateway,
			"priority=30", "--", "--id=@low", "create", "HA_Chassis", "chassis_name=" + compute2, "priority=20", "--",
			"--id=@group", "create", "HA_Chassis_Group", "name=hag", "ha_chassis=@high,@low", "--",
			"clear", "Logical_Router_Port", external, "gateway_chassis", "--", "set", "Logical_Router_Port", external,
			"ha_chassis_group=@group"}, packets: []packet{out("gateway"), in}},
		{what: "other priorities in the group", round: 3,
			args: []string{"ha-chassis-group-add-chassis", "hag", compute2, "40"}, packets: []packet{out("compute2"), in}},
		{what: "active gateway removed from the group", round: 4,
			args: []string{"ha-chassis-group-remove-chassis", "hag", compute2}},
		{what: "distributed floating IP", round: 4,
			args:    []string{"lr-nat-add", router, "dnat_and_snat", "172.24.4.88", "192.168.10.6", vm2, "fa:16:3e:ff:00:88"},
			packets: []packet{out("compute2"), in}},
		{what: "distributed floating IP removed", round: 5,
			args: []string{"lr-nat-del", router, "dnat_and_snat", "172.24.4.88"}},
		{what: "new router removed", round: 5, args: []string{"lr-del", "r9", "--", "ls-del", "public9"}},
		{what: "ACL of a switch", round: 5, args: []string{"--log", "--severity=info", "--name=n1", "acl-add", blue,
			"from-lport", "900", "ip4 && tcp.dst == 9999", "drop"}},
		{what: "stateful ACL", round: 5, args: []string{"acl-add", blue, "to-lport", "1200",
			fmt.Sprintf("outport == %q && ip4 && udp.dst == {53, 67}", vm1), "allow-related"}},
		{what: "ACL removed", round: 6, args: []string{"acl-del", blue, "from-lport", "900", "ip4 && tcp.dst == 9999"}},
		{what: "port without a VIF", round: 5,
			args: []string{"lsp-add", blue, "new1", "--", "lsp-set-addresses", "new1", "00:00:00:00:aa:01 192.168.10.77"}},
		{what: "port security", round: 6, args: []string{"lsp-set-port-security", vm2, "fa:16:3e:10:00:06 192.168.10.6"}},
		{what: "port removed", round: 7, args: []string{"lsp-del", "new1"}},
		{what: "port group", round: 5, args: []string{"pg-add", "pg1", vm1, vm2}, nothing: true},
		{what: "ACL of a port group", round: 5,
			args: []string{"--type=port-group", "acl-add", "pg1", "to-lport", "1300",
				"outport == @pg1 && ip4.src == 198.51.100.0/24", "reject"}},
		{what: "port group changed", round: 6, args: []string{"pg-set-ports", "pg1", vm1, vm4}},
		{what: "address set", round: 5, args: []string{"create", "Address_Set", "name=as1",
			"addresses=192.0.2.1,192.0.2.2,192.0.2.3"}, nothing: true},
		{what: "ACL with an address set", round: 5,
			args: []string{"acl-add", "pg1", "to-lport", "1301", "outport == @pg1 && ip4.src == $as1 && tcp.dst == {80, 443}",
				"allow"}},
		{what: "address set changed", round: 6, args: []string{"add", "Address_Set", "as1", "addresses", "192.0.2.9"}},
		{what: "load balancer", round: 5, args: []string{"lb-add", "lb1", "192.168.10.200:80",
			"192.168.10.5:80,192.168.10.6:80", "--", "ls-lb-add", blue, "lb1"}},
		{what: "load balancer changed", round: 6,
			args: []string{"set", "Load_Balancer", "lb1", `vips:"192.168.10.200:80"="192.168.10.7:80"`}},
		{what: "load balancer of a router", round: 6, args: []string{"lr-lb-add", router, "lb1"}},
		{what: "load balancer removed", round: 7, args: []string{"lb-del", "lb1"}},
		{what: "static route", round: 5, args: []string{"lr-route-add", router, "10.99.0.0/16", "192.168.10.6"}},
		{what: "ECMP route", round: 6, args: []string{"--ecmp", "lr-route-add", router, "10.99.0.0/16", "192.168.10.7"}},
		{what: "route removed", round: 7, args: []string{"lr-route-del", router, "10.99.0.0/16"}},
		{what: "NAT", round: 5, args: []string{"lr-nat-add", router, "dnat_and_snat", "172.24.4.77", "192.168.10.6"}},
		{what: "NAT removed", round: 7, args: []string{"lr-nat-del", router, "dnat_and_snat", "172.24.4.77"}},
		{what: "router policy", round: 5, args: []string{"lr-policy-add", router, "500",
			"ip4.src == 192.168.10.5 && ip4.dst == 203.0.113.9", "drop"}},
		{what: "DHCP options", round: 6, args: []string{"dhcp-options-set-options", dhcp, "lease_time=600",
			"server_id=192.168.10.1", "server_mac=fa:16:3e:aa:00:01", "router=192.168.10.1"}},
		{what: "QoS", round: 5, args: []string{"qos-add", blue, "from-lport", "100", fmt.Sprintf("inport == %q && ip4", vm1),
			"dscp=10", "rate=1000", "burst=100"}},
		{what: "router port with a switch", round: 5,
			args: []string{"ls-add", "sw9", "--", "lrp-add", router, "lrp9", "00:00:00:00:bb:01", "10.9.0.1/24", "--",
				"lsp-add", "sw9", "sw9-r", "--", "lsp-set-type", "sw9-r", "router", "--", "lsp-set-addresses", "sw9-r", "router",
				"--", "lsp-set-options", "sw9-r", "router-port=lrp9"}},
		{what: "port disabled", round: 6, args: []string{"lsp-set-enabled", vm4, "disabled"}},
		{what: "switch removed", round: 7, args: []string{"ls-del", "sw9", "--", "lrp-del", "lrp9"}},
	}
}
