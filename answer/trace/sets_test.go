package trace

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/running"
	"ovs-offline/test/oracle/sets"
)

// TestAnswersAreWhatCameOut asks for each packet of the lab's sets, and compares the
// verdict with what really came out, and the reason and the rule with those that were
// planted. Each flow of OVN on the way has a name.
func TestAnswersAreWhatCameOut(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	for _, name := range sets.Names() {
		t.Run(name, func(t *testing.T) {
			recorded := sets.Recorded(t, "../../scripts/lab/lab", name)
			s := openSet(t, startReplicas(t, recorded), nil)
			asked := 0
			for _, p := range recorded.Packets {
				if len(p.After) > 0 {
					continue // package follow compares what depends on earlier packets
				}
				asked++
				compare(t, p, ask(t, s, p), recorded.OVN != "")
			}
			t.Logf("%s: %d packets", name, asked)
			oneVerdict(t, s)
			flows := flowAnswers{s, map[int]flowAnswer{}}
			asRecorded(t, s, recorded, flows)
			byFlow(t, recorded, flows)
			fromOutside(t, s, recorded)
			switch name {
			case "kubernetes-ic":
				reachThemselves(t, s)
				isUDPService(t, s, "kube-system/dns-0", "svc/kube-system/dns:53")
				isUDPService(t, s, "kube-system/dns-0", "10.96.0.10:53")
			case "openstack":
				isUDPService(t, s, "vm1", "192.168.10.103:53")
				reachFloatingIP(t, s)
				vacantNextHop(t, s)
				knownOutside(t, s)
				localPort(t, s)
			}
		})
	}
}

// reachThemselves asks about backends that reach themselves through their service. OVN
// learns a flow from the first packet for the reply. The replies of the connections that
// were open at the capture came out at the pods that asked (packets 68 and 71 of the set);
// those of a first connection do too.
func reachThemselves(t *testing.T, s *Session) {
	for from, to := range map[string]string{"ns1/web-0": "svc/ns1/self:80", "ns3/open-0": "svc/ns3/open:80"} {
		for _, to := range []string{to, strings.Replace(to, "self", "self6", 1)} {
			a, err := s.Ask(t.Context(), Between{From: from, To: to})
			if err != nil || a.Verdict != answer.Reachable || a.Return == nil || a.Return.Verdict != answer.Reachable {
				t.Errorf("%s to %s: %v\n%s", from, to, err, text(a))
			}
		}
	}
}

// reachFloatingIP asks from outside for the floating IP of vm1, whose security group lets
// https in and not ssh.
func reachFloatingIP(t *testing.T, s *Session) {
	for port, verdict := range map[string]answer.Verdict{"443": answer.Reachable, "22": answer.Unreachable} {
		a, err := s.Ask(t.Context(), Between{From: "external/172.24.4.1", To: "172.24.4.21:" + port})
		if err != nil || a.Verdict != verdict {
			t.Errorf("port %s: %v\n%s", port, err, text(a))
		}
	}
}

// isUDPService asks about a service that is there for UDP only.
func isUDPService(t *testing.T, s *Session, from, to string) {
	a, err := s.Ask(t.Context(), Between{From: from, To: to})
	if err != nil || !strings.Contains(a.Question, ": udp,") || a.Verdict != answer.Reachable {
		t.Errorf("%s to %s: %v, %v", from, to, a, err)
	}
	for _, protocol := range []string{"tcp", "icmp"} {
		_, err := s.Ask(t.Context(), Between{From: from, To: to, Question: names.Question{Protocol: protocol}})
		if want := fmt.Sprintf("%q is a load balancer for udp, not %s", to, protocol); err == nil || err.Error() != want {
			t.Errorf("%s to %s: %v", from, to, err)
		}
	}
}

// TestNodeThatWasNotCapturedLeavesTheAnswerOpen leaves out the node where each packet really
// came out, and the host outside: it is not known then whether the packet arrives.
func TestNodeThatWasNotCapturedLeavesTheAnswerOpen(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	for _, name := range sets.Names() {
		t.Run(name, func(t *testing.T) {
			recorded := sets.Recorded(t, "../../scripts/lab/lab", name)
			folder := startReplicas(t, recorded)
			all, without := openSet(t, folder, nil), map[string]*Session{}
			for _, node := range recorded.Nodes {
				without[node] = openSet(t, folder, slices.DeleteFunc(slices.Clone(recorded.Nodes),
					func(n string) bool { return n == node }))
			}
			asked := 0
			for _, p := range eachShape(recorded.Packets, wayAndProtocolOf) {
				edges := slices.DeleteFunc(slices.Clone(p.Outputs), func(o sets.Output) bool { return o.Role != "edge" })
				if p.Node == "fabric" || len(p.After) > 0 || p.Choice || p.Class != sets.Delivered || len(edges) != 1 {
					continue
				}
				out := edges[0]
				s, wanted := without[out.Node], names.Endpoint{LogicalPort: "of no collected node"}
				switch {
				case out.Node == "fabric":
					s = all
				case out.Node == p.Node:
					continue
				default:
					port, _ := all.nodes[out.Node].Port(out.Port)
					wanted.LogicalPort = port.IfaceID
				}
				asked++
				if asked := askFor(t, s, p, endsAt(wanted)); asked.answer.Verdict != answer.Undetermined ||
					len(asked.answer.Missing) == 0 {
					t.Errorf("packet %d (%s) came out on %s: %s\n%s", p.ID, p.Shows, out.Node, p.Flow, text(asked.answer))
				}
			}
			t.Logf("%s: %d packets", name, asked)
			if asked < 10 {
				t.Errorf("only %d packets were asked for", asked)
			}
			if name == "openstack" {
				startsForAnotherNode(t, without["compute1"])
			}
		})
	}
}

// eachShape returns all packets in a sweep, and otherwise the first one of each shape.
func eachShape(packets []*sets.Packet, shape func(*sets.Packet) string) []*sets.Packet {
	seen := map[string]bool{}
	return sweep.Rows(packets, func(p *sets.Packet) bool {
		first := !seen[shape(p)]
		seen[shape(p)] = true
		return first
	})
}

// wayOf is the shape of the packets that enter at one node, that fare alike, for one reason, and that come out at the
// same nodes.
func wayOf(p *sets.Packet) string {
	var ends []string
	for _, o := range p.Outputs {
		ends = append(ends, o.Node+" "+o.Role)
	}
	slices.Sort(ends)
	return fmt.Sprint(p.Node, p.Class, p.Reason, p.Choice, len(p.After) > 0, slices.Compact(ends))
}

// wayAndProtocolOf is the shape of those that also have the same protocol.
func wayAndProtocolOf(p *sets.Packet) string {
	for field := range strings.SplitSeq(p.Flow, ",") {
		if !strings.Contains(field, "=") {
			return wayOf(p) + field
		}
	}
	return wayOf(p)
}

// startsForAnotherNode asks for the distributed floating IP of vm1, which packets 91 and 93 of
// the set reached, on the nodes without that of vm1: by names, and by the flow on another node.
func startsForAnotherNode(t *testing.T, s *Session) {
	const packet = "in_port=eth1,icmp,dl_src=02:00:00:00:00:fe,dl_dst=fa:16:3e:ff:00:21,nw_src=172.24.4.1,nw_dst=172.24.4.21,nw_ttl=64,icmp_type=8,icmp_code=0"
	named, err := s.Ask(t.Context(), Between{From: "external/172.24.4.1", To: "172.24.4.21:443"})
	if err != nil {
		t.Fatal(err)
	}
	flow, err := s.Flow(t.Context(), "compute2", "br-ex "+packet, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*answer.Answer{named, flow} {
		const cause = "for the MAC address fa:16:3e:ff:00:21: it belongs to 172.24.4.21 on node compute1, which was not captured"
		if a.Verdict != answer.Undetermined || !strings.HasSuffix(strings.Join(a.Missing, "\n"), cause) || a.Drop != nil {
			t.Errorf("without the node of the floating IP:\n%s", text(a))
		}
	}
}

// startReplicas returns the folder of a recorded set whose replicas run. The tests that call it change neither.
func startReplicas(t *testing.T, recorded *sets.Set) (folder string) {
	t.Helper()
	return running.Of(t, recorded).Folder
}

// startIn starts the replicas of a recorded set with the programs of a root file system, "" for this host's, and
// returns its folder and the replicas by node. Both are the test's own.
func startIn(t *testing.T, recorded *sets.Set, as sets.Datapath, root string) (folder string,
	replicas map[string]*fidelity.Replica) {
	t.Helper()
	folder = ovs.Dir(t)
	paths, err := recorded.Workdirs(t.Context(), folder, as)
	if err != nil {
		t.Fatal(err)
	}
	replicas = map[string]*fidelity.Replica{}
	for _, node := range recorded.Nodes {
		n := fidelity.StartedIn(t, root, paths[node])
		replicas[node] = n
	}
	return folder, replicas
}

// openSet opens a session on nodes of a set, all if none is named.
func openSet(t *testing.T, folder string, nodes []string) *Session {
	t.Helper()
	s := openRecorded(t, folder, nodes)
	for _, n := range s.nodes {
		n.Conntrack.Userspace = true // as the packets' datapath was
	}
	return s
}

// openRecorded opens a session on nodes of a set, whose datapaths were as they are recorded.
func openRecorded(t *testing.T, folder string, nodes []string) *Session {
	t.Helper()
	all, err := snapshot.Open(folder, nodes)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenSet(t.Context(), all, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// ask asks what becomes of a packet where it was put in.
func ask(t *testing.T, s *Session, p *sets.Packet) *inquiry {
	t.Helper()
	return askFor(t, s, p, isDelivered)
}

// askFor works like ask, for a packet that is to arrive at certain ends.
func askFor(t *testing.T, s *Session, p *sets.Packet, arrived endTest) *inquiry {
	t.Helper()
	f, err := sets.Frame(p.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	start := follow.Start{Node: p.Node, InPort: p.Port, Packet: f.Packet, Size: f.Size, ID: f.ID}
	if f.Quoted != nil {
		start.Quoted, start.QuotedID = &f.Quoted.Packet, f.Quoted.ID
	}
	if p.Node == "fabric" {
		start.Node, start.InPort, start.Network = "", "", networkOf(s)
	}
	asked := s.inquire(p.Shows, arrived)
	if err := asked.follow(t.Context(), start); err != nil {
		t.Errorf("packet %d (%s): %v", p.ID, p.Shows, err)
	}
	return asked
}

// networkOf returns the physical network of the fabric.
func networkOf(s *Session) string {
	for _, name := range s.order {
		for _, networks := range s.nodes[name].Networks {
			return networks[0]
		}
	}
	return ""
}

// limits matches the rule of a packet that is too large.
var limits = regexp.MustCompile(`the packet has \d+ bytes, and (gateway_mtu|the MTU) of (router )?port \S+ (is|was) \d+$`)

func compare(t *testing.T, p *sets.Packet, asked *inquiry, ovn bool) {
	t.Helper()
	a := asked.answer
	wrong := func(format string, args ...any) {
		t.Errorf("packet %d (%s): %s: "+format+"\n%s", append([]any{p.ID, p.Shows, p.Flow}, append(args, text(a))...)...)
	}
	for _, h := range a.Path {
		for _, s := range h.Stages {
			if s.Cookie != "" && s.Cookie != "0x0" && s.Name == "" && h.Bridge == "br-int" && s.OnBridge == "" && ovn {
				wrong("table %d, cookie %s has no name", s.Table, s.Cookie)
			}
			if s.Stale {
				wrong("table %d, cookie %s is stale: %s", s.Table, s.Cookie, s.Rule)
			}
			if bridge := cmp.Or(s.OnBridge, h.Bridge); bridge != "br-int" && strings.Contains(s.Flow, "metadata=") {
				wrong("table %d, %s, a flow of OVN, is on %s", s.Table, s.Flow, bridge)
			}
		}
	}
	if a.Drop != nil && a.Drop.Reason == "MTU" && !limits.MatchString(a.Drop.Rule) {
		wrong("the rule does not say how large the packet and the limit are: %q", a.Drop.Rule)
	}
	if a.Verdict == answer.Undetermined && p.Class != sets.Generated {
		wrong("undetermined")
		return
	}
	if p.Class != sets.Dropped || len(p.Outputs) > 0 {
		return // package follow compares where packets come out
	}
	if a.Verdict != answer.Unreachable || a.Drop == nil {
		wrong("the packet was dropped, and the verdict is %s", a.Verdict)
		return
	}
	if p.Reason != "" && a.Drop.Reason != p.Reason {
		wrong("the reason is %q, not %q", a.Drop.Reason, p.Reason)
	}
	// Where a hash chooses the way, the live node took one of the alternatives.
	list := []drop{{Drop: *a.Drop}}
	if a.Drop.Choice != "" {
		list = asked.drops.list
	}
	named := func(d drop) bool { return strings.Contains(d.Rule+" "+d.RuleName, p.Rule.Name) }
	if p.Rule != nil && p.Rule.Kind == "acl" && !slices.ContainsFunc(list, named) {
		wrong("the rule is %q (%s), not %q", a.Drop.Rule, a.Drop.RuleName, p.Rule.Name)
	}
}

func text(a *answer.Answer) string {
	var b strings.Builder
	_ = a.Write(&b, answer.Options{})
	return b.String()
}
