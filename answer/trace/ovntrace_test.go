package trace

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/internal/ovn"
	"ovs-offline/snapshot/rules"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// rootsVariable names the folder with the root file systems that scripts/roots makes.
const rootsVariable = "OVS_OFFLINE_ROOTS"

// TestAnswersAgreeWithOVNTrace puts each packet of the lab's sets that enters at a logical
// port and begins a connection to ovn-trace too. The logical ports where the packet leaves
// have to be the same, but for the causes that docs/trace.md lists.
func TestAnswersAgreeWithOVNTrace(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "ovn-trace",
		"unshare", "xz")
	for _, name := range []string{"kubernetes-ic", "openstack"} {
		t.Run(name, func(t *testing.T) { agrees(t, sets.Recorded(t, "../../scripts/lab/lab", name), "") })
	}
}

// TestAnswersAgreeWithOVNTraceOfEachRelease does the same with the Open vSwitch and OVN of
// other releases.
func TestAnswersAgreeWithOVNTraceOfEachRelease(t *testing.T) {
	roots := os.Getenv(rootsVariable)
	if roots == "" {
		t.Skipf("%s names no folder with root file systems of other releases: make test-versions makes them", rootsVariable)
	}
	for _, release := range sweep.Last([]string{"trixie", "sid"}) {
		for _, name := range sweep.Last([]string{"openstack", "kubernetes-ic"}) {
			t.Run(release+" "+name, func(t *testing.T) {
				root := filepath.Join(roots, release)
				if _, err := os.Stat(root); err != nil {
					t.Skip(err)
				}
				s, err := sets.Run(t.Context(), sets.Options{Lab: "../../scripts/lab/lab", Root: root, Name: name}, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				agrees(t, s, root)
			})
		}
	}
}

// agrees compares the answers for the packets of a set. The bridges of tunnels don't show
// in the passes of the kernel's datapath.
func agrees(t *testing.T, recorded *sets.Set, root string) {
	folder, replicas := startIn(t, recorded, sets.Kernel, root)
	c := comparison{Session: openSet(t, folder, nil), replicas: replicas}
	asked, agreed, causes := 0, 0, map[string]int{}
	for _, p := range eachShape(recorded.Packets, wayAndProtocolOf) {
		q, ok := c.question(t, p)
		if !ok {
			continue
		}
		asked++
		cause, difference := c.compare(t, q)
		switch {
		case difference == "":
			agreed++
		case cause == "":
			t.Errorf("packet %d (%s, %s)\n%s\n%s", p.ID, p.Shows, p.Class, q.microflow, difference)
		default:
			causes[cause]++
			t.Logf("%s: %s", difference, cause)
		}
	}
	t.Logf("%s: ovn-trace agrees for %d of %d packets", recorded.Name, agreed, asked)
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		t.Logf("%4d %s", causes[cause], cause)
	}
	if least := sweep.Count(8, 6); agreed*10 < asked*least { // outside of a sweep, each cause has one packet
		t.Errorf("ovn-trace agrees for less than %d0 %%", least)
	}
	documented, err := os.ReadFile("../../docs/trace.md")
	if err != nil {
		t.Fatal(err)
	}
	for cause := range causes {
		if !strings.Contains(string(documented), "| "+cause+" |") {
			t.Errorf("docs/trace.md lacks the cause: %s", cause)
		}
	}
}

type comparison struct {
	*Session
	replicas map[string]*fidelity.Replica
}

// question is a packet in the words of ovn-trace, and where it really begins.
type question struct {
	*sets.Packet
	start     follow.Start
	microflow string
}

// question returns ok only for the first packet of a connection that enters at a logical
// port.
func (c comparison) question(t *testing.T, p *sets.Packet) (q question, ok bool) {
	t.Helper()
	if p.Node == "fabric" || p.Established || len(p.After) > 0 {
		return q, false
	}
	port, ok := c.nodes[p.Node].Port(p.Port)
	if !ok || port.IfaceID == "" {
		return q, false
	}
	f, err := sets.Frame(p.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	start := follow.Start{Node: p.Node, InPort: p.Port, Packet: f.Packet, Size: f.Size, ID: f.ID}
	if f.Quoted != nil {
		start.Quoted, start.QuotedID = &f.Quoted.Packet, f.Quoted.ID
	}
	return question{p, start, Microflow(port.IfaceID, f.Packet)}, true
}

// end is where copies of a packet leave the logical network, if hashes choose one way: the
// names of ports and of physical networks, sorted.
type end struct {
	places  []string
	backend string // that the load balancer chose
}

// compare returns the difference between an answer and ovn-trace, "" for none, and its
// cause, "" if it is not known.
func (c comparison) compare(t *testing.T, q question) (cause, difference string) {
	t.Helper()
	hop := c.follow(t, q.start)
	ends := c.ends(hop, false)
	logical := c.logical(t, q, ends[0].backend, "new")
	if isOneOf(ends, logical) {
		return "", ""
	}
	for _, candidate := range []struct {
		sentence string
		applies  bool
	}{
		{solicits, slices.Equal(logical, aborted) && q.start.Packet.Get("icmp_type") == "135" || len(ends[0].places) == 0 &&
			q.start.Packet.Get("icmp_type") == "133"},
		{asksFirst, asks(hop) && len(ends[0].places) == 0},
		{noSize, q.start.Size > 0 && isOneOf(c.withoutSize(t, q), logical)},
		{noConntrack, c.agreesWithStates(t, q, hop, ends)},
		{notBound, isOneOf(ends, c.bound(t, q.Node, logical))},
		{notTheFlows, c.missesFlow(t, q)},
		{assumesDHCP, q.start.Packet.Get("tp_dst") == "67" && len(ends[0].places) == 0 &&
			slices.Equal(logical, []string{c.port(q)})},
		{oneSwitch, c.agreesOnward(t, q, hop, logical)},
	} {
		if candidate.applies {
			return candidate.sentence, fmt.Sprintf("packet %d (%s)", q.ID, q.Shows)
		}
	}
	return "", fmt.Sprintf("ovn-trace: %q\nanswer:    %q\n", logical, ends)
}

// The causes of differences, as docs/trace.md lists them.
const (
	noSize      = "The packet is larger than a port, a tunnel or the gateway takes"
	noConntrack = "Conntrack takes the packet as invalid, or as part of a connection that it opened earlier on its way"
	notBound    = "The port is bound to no chassis"
	notTheFlows = "The node lacks a flow that the logical flows call for"
	assumesDHCP = "The packet is a DHCP request"
	oneSwitch   = "The packet crosses a physical network between nodes"
	asksFirst   = "The router has to ask for the MAC address of the next hop"
	solicits    = "The packet is a router solicitation, or a neighbor solicitation for a router"
)

// aborted stands for an ovn-trace that ended at a failed assertion.
var aborted = []string{"assertion failed"}

// asks reports whether a router asks for the MAC address of a neighbour.
func asks(h *follow.Hop) bool {
	for _, b := range h.Ends() {
		if b.Response != nil && b.Response.Asks {
			return true
		}
	}
	return false
}

func isOneOf(ends []end, places []string) bool {
	return slices.ContainsFunc(ends, func(e end) bool {
		return e.backend == ends[0].backend &&
			slices.Equal(e.places, places)
	})
}

func (c comparison) follow(t *testing.T, start follow.Start) *follow.Hop {
	t.Helper()
	hop, _, err := c.tracer.Packet(t.Context(), start)
	if err != nil {
		t.Fatal(err)
	}
	return hop
}

// logical returns where ovn-trace says that a packet leaves, if each lookup in conntrack
// finds a state.
func (c comparison) logical(t *testing.T, q question, backend, state string) []string {
	t.Helper()
	socket := c.replicas[q.Node].Workdir.Socket(workdir.SB)
	args := []string{"--db=unix:" + socket, "--summary", "--no-friendly-names"}
	for range 20 { // ovn-trace takes those that are not given as established
		args = append(args, "--ct="+state)
	}
	if backend != "" {
		args = append(args, "--lb-dst="+backend)
	}
	text, err := c.replicas[q.Node].Program(t.Context(), "ovn-trace", append(args, q.microflow)...)
	if strings.Contains(text, "assertion ovnact->type == OVNACT_") {
		return aborted
	}
	if err != nil || !strings.Contains(text, "ingress(") {
		t.Fatalf("packet %d: %s: %v\n%s", q.ID, q.microflow, err, text)
	}
	return c.outputs(t, q.Node, text)
}

func (c comparison) port(q question) string {
	port, _ := c.nodes[q.Node].Port(q.Port)
	return port.IfaceID
}

func (c comparison) withoutSize(t *testing.T, q question) []end {
	t.Helper()
	q.start.Size = 0
	return c.ends(c.follow(t, q.start), false)
}

// agreesWithStates reports whether ovn-trace agrees if it is given what conntrack found. It
// adds the flags of a lookup to those of the lookups before it, so the reply's are given for
// all.
func (c comparison) agreesWithStates(t *testing.T, q question, hop *follow.Hop, ends []end) bool {
	t.Helper()
	found := states(hop)
	invalid := slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, "inv") })
	reply := slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, "rpl") })
	return invalid && isOneOf(ends, c.logical(t, q, ends[0].backend, "inv")) ||
		reply && isOneOf(ends, c.logical(t, q, ends[0].backend, "est,rpl"))
}

// states returns what conntrack found on the way of a packet.
func states(h *follow.Hop) []string {
	var list []string
	for _, b := range h.Branches {
		if b.Lookup != nil {
			list = append(list, b.Lookup.State)
		}
		if b.Next != nil {
			list = append(list, states(b.Next)...)
		}
	}
	return list
}

// bound returns the places without the ports that are bound to no chassis.
func (c comparison) bound(t *testing.T, node string, places []string) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(places), func(place string) bool {
		for row, err := range c.nodes[node].zone.SB.Rows("Port_Binding", "logical_port", "chassis") {
			if err != nil {
				t.Fatal(err)
			}
			if row.String("logical_port") == place {
				return len(row.UUIDs("chassis")) == 0
			}
		}
		return false
	})
}

// missesFlow reports whether the answer is that the node lacked a flow.
func (c comparison) missesFlow(t *testing.T, q question) bool {
	t.Helper()
	drop := ask(t, c.Session, q.Packet).answer.Drop
	return drop != nil && drop.Reason == string(rules.MissingFlow)
}

// agreesOnward reports whether ovn-trace agrees with what becomes of the packet on other
// nodes of the physical network that it leaves by: it arrives at the same ports, or an ACL
// drops it.
func (c comparison) agreesOnward(t *testing.T, q question, hop *follow.Hop, logical []string) bool {
	t.Helper()
	logical = withoutNetwork(logical)
	leaves := func(e end) bool { return len(withoutNetwork(e.places)) < len(e.places) }
	switch {
	case !slices.ContainsFunc(c.ends(hop, false), leaves):
		return false
	case len(logical) == 0:
		return slices.ContainsFunc(ask(t, c.Session, q.Packet).drops.list, func(d drop) bool {
			return d.Reason == string(rules.ACL) && d.Node != q.Node
		})
	}
	ends := c.ends(hop, true)
	for i := range ends {
		ends[i].places = withoutNetwork(ends[i].places)
	}
	return isOneOf(ends, logical)
}

func withoutNetwork(places []string) []string {
	return slices.DeleteFunc(slices.Clone(places), func(p string) bool { return strings.HasPrefix(p, "network ") })
}

var chosenBackend = regexp.MustCompile(`nat\(dst=([^)]+)\)`)

// ends returns the ends of a packet, one for each way that hashes may choose. With onward,
// the packet is followed to the nodes that a physical network leads to.
func (c comparison) ends(h *follow.Hop, onward bool) []end {
	var here end
	if m := chosenBackend.FindStringSubmatch(h.Pass.ActionsText); m != nil {
		here.backend = m[1]
	}
	for _, s := range h.Pass.Stages {
		if networks := c.nodes[h.Node].Networks[s.Bridge]; s.Bridge != ovn.Integration && len(networks) > 0 {
			here.places = append(here.places, "network "+networks[0])
		}
	}
	all, alternatives := []end{here}, []end(nil)
	for _, b := range h.Branches {
		var after []end
		switch b.Kind {
		case follow.Delivered:
			if b.Port.Bridge != ovn.Integration || b.Port.IfaceID == "" {
				continue
			}
			after = []end{{places: []string{b.Port.IfaceID}}}
		case follow.Tunneled:
			after = []end{{places: []string{"node " + b.Next.Node}}}
			if c.nodes[b.Next.Node].zone == c.nodes[h.Node].zone {
				after = c.ends(b.Next, onward)
			}
		case follow.Recirculated:
			if stages := b.Next.Pass.Stages; len(stages) > 0 && stages[0].Bridge != ovn.Integration {
				continue // after it has left
			}
			after = c.ends(b.Next, onward)
		case follow.Networked:
			if !onward {
				continue
			}
			after = c.ends(b.Next, onward)
		case follow.Undetermined:
			after = []end{{places: []string{"undetermined: " + b.Why}}}
		default:
			continue
		}
		if b.Choice != "" {
			alternatives = append(alternatives, after...)
		} else {
			all = product(all, after)
		}
	}
	if alternatives != nil {
		all = product(all, alternatives)
	}
	return all
}

// product returns every end of a with every end of b.
func product(a, b []end) []end {
	var all []end
	for _, x := range a {
		for _, y := range b {
			places := append(slices.Clone(x.places), y.places...)
			slices.Sort(places)
			all = append(all, end{slices.Compact(places), cmp.Or(x.backend, y.backend)})
		}
	}
	return all
}

// Actions whose packet is another one, which OVN makes.
var makesPacket = []string{"icmp4", "icmp6", "icmp4_error", "icmp6_error", "tcp_reset", "sctp_abort", "reject", "arp",
	"nd_ns", "nd_na", "nd_na_router"}

var logicalOutput = regexp.MustCompile(`^/\* output to "([^"]+)", type "([^"]*)" \*/;$`)

// outputs returns where a packet leaves the logical network as ovn-trace prints it.
func (c comparison) outputs(t *testing.T, node, text string) []string {
	t.Helper()
	var places, open []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if word, ok := strings.CutSuffix(line, "{"); ok {
			word, _, _ = strings.Cut(strings.TrimSpace(word), " ")
			open = append(open, word)
		} else if line == "};" && len(open) > 0 {
			open = open[:len(open)-1]
		}
		m := logicalOutput.FindStringSubmatch(line)
		if m == nil || slices.ContainsFunc(open, func(word string) bool { return slices.Contains(makesPacket, word) }) {
			continue
		}
		switch m[2] {
		case "", "localport", "virtual", "remote", "localnet":
			places = append(places, c.place(t, node, m[1], m[2]))
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// place returns what a port leads to, in the words of end.
func (c comparison) place(t *testing.T, node, port, kind string) string {
	t.Helper()
	for row, err := range c.nodes[node].zone.SB.Rows("Port_Binding", "logical_port", "options") {
		if err != nil {
			t.Fatal(err)
		}
		if row.String("logical_port") != port {
			continue
		}
		switch kind {
		case "localnet":
			return "network " + row.Map("options")["network_name"]
		case "remote":
			return "node " + strings.TrimPrefix(port, "tstor-")
		}
	}
	return port
}
