package follow_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/running"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// rootsVariable names the folder with the root file systems that scripts/roots makes.
const rootsVariable = "OVS_OFFLINE_ROOTS"

// TestPredictionsAreWhatCameOut runs the lab's sets. Of each packet it compares where the
// tracer says that it comes out, and with which headers, with what really came out.
func TestPredictionsAreWhatCameOut(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	for _, name := range sets.Names() {
		t.Run(name, func(t *testing.T) { predictsSet(t, name, "") })
	}
}

// TestPredictionsOfEachRelease does the same with the Open vSwitch and OVN of other
// releases, in the nodes and in the replicas.
func TestPredictionsOfEachRelease(t *testing.T) {
	roots := os.Getenv(rootsVariable)
	if roots == "" {
		t.Skipf("%s names no folder with root file systems of other releases: make test-versions makes them", rootsVariable)
	}
	for _, release := range sweep.Last([]string{"trixie", "sid"}) {
		root := filepath.Join(roots, release)
		for _, name := range sets.Names() {
			t.Run(release+" "+name, func(t *testing.T) {
				if _, err := os.Stat(root); err != nil {
					t.Skip(err)
				}
				predictsSet(t, name, root)
			})
		}
	}
}

// predictsSet runs a set and its replicas with the programs of a root file system; "" for this host's. Where replicas
// build the headers of tunnels, make test compares the tunnels over IPv6 of one set; package trace compares where the
// packets of all sets come out.
func predictsSet(t *testing.T, name, root string) {
	s := run(t, name, root)
	for as, title := range map[sets.Datapath]string{sets.Native: "native", sets.Kernel: "kernel"} {
		t.Run(title, func(t *testing.T) {
			if as == sets.Native && root == "" && name != "neutron-ovs" {
				sweep.Only(t, "TestAnswersAreWhatCameOut in package trace")
			}
			predicts(t, s, replicas(t, s, as, root))
		})
	}
}

func run(t *testing.T, name, root string) *sets.Set {
	t.Helper()
	const lab = "../../../scripts/lab/lab"
	if root == "" {
		return sets.Recorded(t, lab, name)
	}
	s, err := sets.Run(t.Context(), sets.Options{Lab: lab, Root: root, Name: name}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// replicas starts a replica of each node of a set, and opens them.
func replicas(t *testing.T, s *sets.Set, as sets.Datapath, root string) []*host.Host {
	t.Helper()
	_, hosts := openAll(t, s, as, root)
	for _, h := range hosts {
		// The packets went through the userspace datapath, whatever the workdir shows.
		h.Conntrack.Userspace = true
	}
	return hosts
}

// openAll starts the replicas of a set's nodes and opens them, and returns the folder of their workdirs too. No test
// changes either.
func openAll(t *testing.T, s *sets.Set, as sets.Datapath, root string) (folder string, hosts []*host.Host) {
	t.Helper()
	if as == sets.Native && root == "" {
		nodes := running.Of(t, s)
		for _, node := range s.Nodes {
			hosts = append(hosts, reopen(t, node, nodes.Replicas[node].Workdir))
		}
		return nodes.Folder, hosts
	}
	folder = ovs.Dir(t)
	paths, err := s.Workdirs(t.Context(), folder, as)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range s.Nodes {
		hosts = append(hosts, openIn(t, root, node, paths[node]))
	}
	return folder, hosts
}

// open starts a replica of a workdir and opens it. Both end with the test.
func open(t testing.TB, name, path string) *host.Host {
	t.Helper()
	return openIn(t, "", name, path)
}

func openIn(t testing.TB, root, name, path string) *host.Host {
	t.Helper()
	n := fidelity.StartedIn(t, root, path)
	return reopen(t, name, n.Workdir)
}

func reopen(t testing.TB, name string, wd *workdir.Dir) *host.Host {
	t.Helper()
	h, err := host.Open(t.Context(), name, wd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func predicts(t *testing.T, s *sets.Set, hosts []*host.Host) {
	if undetermined := comparePredictions(t, s, hosts, follow.Options{}); undetermined*50 > len(s.Packets) {
		t.Errorf("%d of %d packets are undetermined: at most 2 %% may be", undetermined, len(s.Packets))
	}
}

// comparePredictions fails for each packet whose prediction is wrong, and returns how many
// are undetermined.
func comparePredictions(t *testing.T, s *sets.Set, hosts []*host.Host, options follow.Options) (undetermined int) {
	q := question{tracer: follow.New(hosts, options), packets: map[int]*sets.Packet{}, ports: map[string]string{},
		devices: s.Devices()}
	for _, networks := range hosts[0].Networks {
		q.network = networks[0]
	}
	for _, p := range s.Packets {
		q.packets[p.ID] = s.Whole(p)
	}
	for _, p := range s.Packets {
		prediction, err := q.ask(t.Context(), p)
		if err != nil {
			t.Errorf("packet %d (%s): %v", p.ID, p.Shows, err)
			continue
		}
		prediction.watch(s)
		real, err := prediction.about(s, p)
		if err != nil {
			t.Errorf("packet %d (%s): %v\n%s", p.ID, p.Shows, err, prediction.ends)
			continue
		}
		wrong := prediction.differs(real)
		switch {
		case wrong == "":
		case prediction.causes != nil:
			undetermined++
			t.Logf("packet %d (%s) is undetermined: %q\n%s%s", p.ID, p.Shows, prediction.causes, wrong, prediction.ends)
		default:
			t.Errorf("packet %d (%s, after %v)\n%s\n%s%s", p.ID, p.Shows, p.After, p.Flow, wrong, prediction.ends)
		}
	}
	t.Logf("%d packets, %d undetermined", len(s.Packets), undetermined)
	return undetermined
}

// question asks the tracer for packets of a set.
type question struct {
	tracer  *follow.Tracer
	network string // the nodes' name for the fabric's network
	packets map[int]*sets.Packet
	// devices are the devices of nodes, and no ports of Open vSwitch, by the networks of the fabric.
	devices map[string]sets.Port
	// ports maps each source port that the kernel of the lab chose at random to the port that the replica's
	// kernel chose for the same packet.
	ports map[string]string
}

// prediction is what the tracer says of a packet.
type prediction struct {
	outputs    []string // "NODE PORT PACKET"
	tunnels    []string // "NODE SOURCE DESTINATION", of each tunnel once, sorted
	answers    []string // what OVN makes
	causes     []string // why it is undetermined
	ends       string   // all ends, to read
	repeated   bool     // it is about the packet as it is sent again
	random     bool     // a rule of netfilter chooses the source port at random
	unlabelled bool     // a packet of IPv6 has no flow label: a kernel chose that of its own packet
	received   []string // as outputs, what a network namespace itself receives: what answers there is not predicted
	entering   []string // those of received of which the lab recorded what entered
}

// ask follows a packet, after those that changed the connections before it.
func (q question) ask(ctx context.Context, p *sets.Packet) (all prediction, err error) {
	states := []*follow.State{nil}
	for _, id := range p.After {
		if states, err = q.after(ctx, q.packets[id], states); err != nil {
			return prediction{}, err
		}
	}
	for _, state := range states {
		hop, _, err := q.packet(ctx, p, state)
		if err != nil {
			return prediction{}, err
		}
		all.add(predictionOf(hop, p.Datagram != 0))
	}
	return all, nil
}

// after returns the states that a packet leaves, each of another way that a hash may choose:
// those of the ways by which it came out, or else all.
func (q question) after(ctx context.Context, p *sets.Packet, before []*follow.State) ([]*follow.State, error) {
	out, err := outputsOf(p, p.Datagram != 0)
	if err != nil {
		return nil, err
	}
	var all, taken []*follow.State
	for _, state := range before {
		hop, after, err := q.packet(ctx, p, state)
		if err != nil {
			return nil, err
		}
		for _, o := range hop.Outcomes(after) {
			all = append(all, o.State)
			q.noteRandom(o, p, out)
			if o.Branch.Kind == follow.Delivered && slices.Contains(out, outputOf(o.Hop, o.Branch, p.Datagram != 0)) {
				taken = append(taken, o.State)
			}
		}
	}
	if len(taken) > 0 {
		all = taken
	}
	var once []*follow.State
	for _, state := range all {
		if !slices.Contains(once, state) {
			once = append(once, state)
		}
	}
	return once, nil
}

// noteRandom notes the source port that the replica's kernel chose at random for a packet, and the port that the
// lab's kernel chose for it.
func (q question) noteRandom(o follow.Outcome, p *sets.Packet, out []string) {
	if o.Branch.Kind != follow.Delivered || !slices.ContainsFunc(o.Branch.Uncertain, isRandomPort) {
		return
	}
	predicted := outputOf(o.Hop, o.Branch, p.Datagram != 0)
	for _, real := range out {
		from, to := sourcePort.FindString(real), sourcePort.FindString(predicted)
		if from != "" && to != "" && strings.Replace(real, from, to, 1) == predicted {
			q.ports[strings.TrimPrefix(from, ",tp_src=")] = strings.TrimPrefix(to, ",tp_src=")
		}
	}
}

// isRandomPort reports whether a rule of netfilter, which a replica has too, makes a packet uncertain.
func isRandomPort(why string) bool {
	return strings.HasSuffix(why, "chooses the source port at random")
}

func (q question) packet(ctx context.Context, p *sets.Packet, state *follow.State) (*follow.Hop, *follow.State, error) {
	f, err := sets.Frame(p.Bytes)
	if err != nil {
		return nil, nil, err
	}
	if chosen := q.ports[f.Packet.Get("tp_dst")]; chosen != "" {
		f.Packet.Set("tp_dst", chosen)
	}
	start := follow.Start{Node: p.Node, InPort: p.Port, Packet: f.Packet, Size: f.Size, ID: f.ID,
		MayFragment: f.MayFragment, State: state}
	if f.Quoted != nil {
		start.Quoted, start.QuotedID = &f.Quoted.Packet, f.Quoted.ID
	}
	if p.Port == sets.Process {
		start.InPort, start.Process = "", true
	}
	if p.Node == "fabric" {
		start.Node, start.InPort, start.Network = "", "", q.network
		if at, ok := q.devices[p.Bridge]; ok {
			start.Node, start.InPort, start.Network = at.Node, at.Name, ""
		}
	}
	return q.tracer.Packet(ctx, start)
}

func predictionOf(hop *follow.Hop, fragment bool) (p prediction) {
	p.tunnels, p.repeated = tunnelsOf(hop), isRepeated(hop)
	for h, b := range hop.Ends() {
		if b.Kind == follow.Undetermined {
			p.causes = append(p.causes, b.Why)
		}
		for _, why := range b.Uncertain {
			if isRandomPort(why) {
				p.random = true
			} else {
				p.causes = append(p.causes, why)
			}
		}
		if b.Kind == follow.Generated {
			p.answers = append(p.answers, b.Response.Name)
			if b.Response.Asks {
				p.causes = append(p.causes, b.Response.Name)
			}
		}
		switch {
		case b.Kind != follow.Delivered:
		case b.Port != h.Port || !h.Kernel:
			p.outputs = append(p.outputs, outputOf(h, b, fragment))
			number, _ := b.Packet.Number("ipv6_label")
			p.unlabelled = p.unlabelled || b.Packet.EtherType() == flow.IPv6 && number == 0
		default:
			p.received = append(p.received, outputOf(h, b, fragment))
		}
		at := ""
		if b.Stage != nil {
			at = fmt.Sprintf(" [table %d %s]", b.Stage.Table, b.Stage.Flow)
		}
		p.ends += fmt.Sprintf("  %s on %s: %s%s %s\n", b.Kind, h.Node, b.Why, at, b.Packet)
	}
	return p
}

func outputOf(h *follow.Hop, b follow.Branch, fragment bool) string {
	return h.Node + " " + b.Port.Name + " " + normal(b.Packet, fragment)
}

// isRepeated reports whether a packet ended while a flow was learned, and was followed again.
func isRepeated(hop *follow.Hop) bool {
	return slices.ContainsFunc(hop.Branches, func(b follow.Branch) bool {
		return b.Kind == follow.Repeated || b.Next != nil && isRepeated(b.Next)
	})
}

// add adds the prediction of another way that earlier packets may have taken.
func (p *prediction) add(q prediction) {
	p.outputs = append(p.outputs, q.outputs...)
	p.tunnels = slices.Compact(slices.Sorted(slices.Values(append(p.tunnels, q.tunnels...))))
	p.answers = append(p.answers, q.answers...)
	p.causes = append(p.causes, q.causes...)
	p.ends += q.ends
	p.received = append(p.received, q.received...)
	p.repeated, p.random = p.repeated || q.repeated, p.random || q.random
	p.unlabelled = p.unlabelled || q.unlabelled
}

// about returns the packet of the set that the prediction is about: of one that is sent again,
// its repetition.
func (p prediction) about(s *sets.Set, asked *sets.Packet) (*sets.Packet, error) {
	whole := s.Whole(asked)
	if !p.repeated {
		return whole, nil
	}
	again, err := s.Repetition(whole)
	if err != nil {
		return nil, err
	}
	first, err := sets.Frame(asked.Bytes)
	if err != nil {
		return nil, err
	}
	second, err := sets.Frame(again.Bytes)
	if err != nil {
		return nil, err
	}
	const label = "ipv6_label" // the packet's number
	for i, output := range p.outputs {
		p.outputs[i] = strings.Replace(output, label+"="+first.Packet.Get(label), label+"="+second.Packet.Get(label), 1)
	}
	return again, nil
}

// tunnelsOf returns the tunnels that a packet enters on its way.
func tunnelsOf(hop *follow.Hop) []string {
	var list []string
	for _, b := range hop.Branches {
		if b.Tunnel != nil && b.Kind != follow.Dropped {
			list = append(list, fmt.Sprintf("%s %v %v", hop.Node, b.Tunnel.Src, b.Tunnel.Dst))
		}
		if b.Next != nil {
			list = append(list, tunnelsOf(b.Next)...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// realTunnels returns the tunnels that the lab saw the packet enter; with own, the packet
// itself, and not what answers it.
func realTunnels(real *sets.Packet, own bool) []string {
	var list []string
	for _, o := range real.Tunnels {
		f, err := sets.Frame(o.Bytes)
		src, dst, ok := f.Packet.Addresses()
		if err == nil && ok && (o.Own || !own) && o.Node != "fabric" {
			list = append(list, fmt.Sprintf("%s %v %v", o.Node, src, dst))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// watch leaves out what is predicted at ports where the lab catches nothing, as the own
// port of a bridge that nothing uses.
func (p *prediction) watch(s *sets.Set) {
	p.outputs = slices.DeleteFunc(p.outputs, func(output string) bool {
		return !slices.ContainsFunc(s.Ports, func(port sets.Port) bool {
			return strings.HasPrefix(output, port.Node+" "+port.Name+" ")
		})
	})
	for _, received := range p.received {
		if slices.ContainsFunc(s.Ports, func(port sets.Port) bool {
			return port.Namespace != "" && strings.HasPrefix(received, port.Node+" "+port.Name+" ")
		}) {
			p.entering = append(p.entering, received)
		}
	}
}

// differs returns the difference between a prediction and what came out at the nodes, ""
// for none. What a flow made of the packet as an answer is predicted like the packet
// itself; of what ovn-controller made, only that it made something.
func (p prediction) differs(real *sets.Packet) string {
	all, err := outputsOf(real, real.Datagram != 0)
	if err != nil {
		return err.Error()
	}
	itself := *real
	itself.Outputs = slices.DeleteFunc(slices.Clone(real.Outputs), func(o sets.Output) bool { return !o.Own })
	own, err := outputsOf(&itself, real.Datagram != 0)
	if err != nil {
		return err.Error()
	}
	itself.Outputs = slices.DeleteFunc(slices.Clone(real.Passed), func(o sets.Output) bool { return !o.Own || o.Left })
	entered, err := outputsOf(&itself, real.Datagram != 0)
	if err != nil {
		return err.Error()
	}
	if p.random {
		own, all, p.outputs = without(sourcePort, own), without(sourcePort, all), without(sourcePort, p.outputs)
	}
	if p.unlabelled && real.Class == sets.Generated {
		own, all, p.outputs = without(label, own), without(label, all), without(label, p.outputs)
	}
	switch {
	case !within(own, p.outputs), !real.Choice && !within(p.outputs, all), real.Choice && len(p.outputs) > 0 &&
		!slices.ContainsFunc(p.outputs, func(o string) bool { return slices.Contains(all, o) }):
		return fmt.Sprintf("  came out:  %s\n  predicted: %s\n", strings.Join(all, "\n             "),
			strings.Join(p.outputs, "\n             "))
	case !real.Choice && (!within(realTunnels(real, true), p.tunnels) || !within(p.tunnels, realTunnels(real, false))):
		return fmt.Sprintf("  tunnels:   %q\n  predicted: %q\n", realTunnels(real, false), p.tunnels)
	case !within(p.entering, entered):
		return fmt.Sprintf("  entered:   %s\n  received:  %s\n", strings.Join(entered, "\n             "),
			strings.Join(p.entering, "\n             "))
	case real.Class == sets.Generated && len(p.received) == 0 && !within(all, p.outputs) &&
		!begins(p.answers, answersOf(real)):
		return fmt.Sprintf("  OVN made %q, and the prediction was %q\n", answersOf(real), p.answers)
	}
	return ""
}

// without returns outputs without a field of their packets.
func without(field *regexp.Regexp, outputs []string) (list []string) {
	for _, output := range outputs {
		list = append(list, field.ReplaceAllString(output, ""))
	}
	return list
}

var (
	sourcePort = regexp.MustCompile(`,tp_src=[0-9]+`)
	label      = regexp.MustCompile(`,ipv6_label=\w+`)
)

// outputsOf returns what came out at the nodes, as a prediction has it.
func outputsOf(real *sets.Packet, fragment bool) ([]string, error) {
	var list []string
	for _, o := range real.Outputs {
		if o.Node == "fabric" {
			continue
		}
		f, err := sets.Frame(o.Bytes)
		if err != nil {
			return nil, err
		}
		list = append(list, o.Node+" "+o.Port+" "+normal(f.Packet, fragment))
	}
	return list, nil
}

// answersOf returns the tracer's words for the packets that OVN made.
func answersOf(real *sets.Packet) []string {
	var list []string
	for _, o := range real.Outputs {
		if f, err := sets.Frame(o.Bytes); err == nil && !o.Own &&
			f.Packet.Get("icmp_type") != "5" { // a redirect: the packet itself goes on
			list = append(list, answerOf(f.Packet))
		}
	}
	return list
}

func answerOf(p flow.Packet) string {
	icmp := p.Get("icmp_type") + "/" + p.Get("icmp_code")
	switch {
	case p.Has("arp"):
		return "an ARP request"
	case strings.Contains(p.Get("tcp_flags"), "rst"):
		return "a TCP reset"
	case p.Get("tp_src") == "67":
		return "a DHCP answer"
	case p.Has("icmp6"):
		return map[string]string{"1/4": "an ICMP error: port unreachable", "1/3": "an ICMP error: address unreachable",
			"2/0": "an ICMP error: packet too big", "3/0": "an ICMP error: hop limit exceeded",
			"134/0": "a router advertisement", "136/0": "a neighbour advertisement", "135/0": "a neighbour solicitation"}[icmp]
	}
	return map[string]string{"3/0": "an ICMP error: network unreachable", "3/1": "an ICMP error: host unreachable",
		"3/3": "an ICMP error: port unreachable", "3/4": "an ICMP error: fragmentation needed",
		"11/0": "an ICMP error: TTL exceeded"}[icmp]
}

// begins reports whether each text begins as one of the beginnings does.
func begins(texts, beginnings []string) bool {
	return !slices.ContainsFunc(beginnings, func(b string) bool {
		return !slices.ContainsFunc(texts, func(s string) bool { return b != "" && strings.HasPrefix(s, b) })
	})
}

func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// normal returns a packet with its fields in one order, without those that are zero. Of a
// fragment it has no nw_frag: the tracer follows the datagram, which the datapath cuts up
// again.
func normal(p flow.Packet, fragment bool) string {
	var list []string
	for _, f := range p.Fields() {
		if fragment && f.Name == "nw_frag" {
			continue
		}
		switch f.Value {
		case "0", "0x0000", "0x00000", "no", "00:00:00:00:00:00":
			continue
		}
		list = append(list, strings.TrimSuffix(f.Name+"="+f.Value, "="))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}
