package rules

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/running"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// TestDropsOfSetsAreThoseThatWerePlanted follows the packets of the lab's sets that the
// network really dropped or answered, and compares the reason and the deciding rule with
// what was planted.
func TestDropsOfSetsAreThoseThatWerePlanted(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	for _, name := range []string{"openstack", "kubernetes-ic"} { // those with OVN
		t.Run(name, func(t *testing.T) {
			s := sets.Recorded(t, "../../scripts/lab/lab", name)
			w := startSet(t, s)
			compared, named := 0, 0
			for _, p := range s.Packets {
				if p.Class == sets.Delivered || p.Established || len(p.After) > 0 || p.Reason == "" || otherwise(p) {
					continue
				}
				compared++
				if w.compare(t, p) {
					named++
				}
			}
			t.Logf("%d packets, %d with a planted rule", compared, named)
			if compared < 20 {
				t.Error("too few")
			}
		})
	}
}

// otherwise reports whether another rule than the planted one decides about a packet, or
// several do. The node of a backend sends one packet through the egress IP of its source
// first, so that the policy no longer sees the pod's address. A broadcast ends at each
// receiver on its own. Without a planted rule, ACL is what the lab guessed.
func otherwise(p *sets.Packet) bool {
	return p.Shows == "a service that an admin policy denies" || strings.Contains(p.Flow, "dl_dst=ff:ff:ff:ff:ff:ff") ||
		p.Reason == string(ACL) && p.Rule == nil
}

// walked is a set with a replica of each node, and the rules of each.
type walked struct {
	tracer  *follow.Tracer
	network string // the physical network
	rules   map[string]*Rules
	layouts map[string]Layout
}

func startSet(t *testing.T, s *sets.Set) walked {
	t.Helper()
	nodes := running.Of(t, s)
	w := walked{rules: map[string]*Rules{}, layouts: map[string]Layout{}}
	var hosts []*host.Host
	for _, node := range s.Nodes {
		n := nodes.Replicas[node]
		h, err := host.Open(t.Context(), node, n.Workdir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		h.Conntrack.Userspace = true
		hosts = append(hosts, h)
		for _, networks := range h.Networks {
			w.network = networks[0]
		}
		r := New(open(t, n.Workdir.Database(workdir.NB)), open(t, n.Workdir.Database(workdir.SB)))
		if w.layouts[node], err = r.Layout(flowsOf(t, n.Workdir.DumpFile("br-int", workdir.Flows))); err != nil {
			t.Fatal(err)
		}
		w.rules[node] = r
	}
	w.tracer = follow.New(hosts, follow.Options{})
	return w
}

// reasonOf returns the reason that the lab's word for a drop or an answer stands for, ""
// for an answer that is no drop.
func reasonOf(p *sets.Packet) Reason {
	switch word := p.Reason; word {
	case "TTL exceeded":
		return TTL
	case "reject":
		if p.Rule != nil && p.Rule.Kind == "load_balancer" { // without backends
			return Explicit
		}
		return ACL
	case "fragmentation needed":
		return MTU
	case "ARP request", "ND solicitation":
		return Unresolved
	default:
		if slices.Contains(reasons(), Reason(word)) {
			return Reason(word)
		}
		return ""
	}
}

// compare follows a packet, and compares the drops at its ends with what was planted. It
// reports whether a rule was planted.
func (w walked) compare(t *testing.T, p *sets.Packet) (named bool) {
	t.Helper()
	want := reasonOf(p)
	if want == "" {
		return false
	}
	f, err := sets.Frame(p.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	start := follow.Start{Node: p.Node, InPort: p.Port, Packet: f.Packet, Size: f.Size, ID: f.ID}
	if p.Node == "fabric" {
		start.Node, start.InPort, start.Network = "", "", w.network
	}
	hop, _, err := w.tracer.Packet(t.Context(), start)
	if err != nil {
		t.Errorf("packet %d (%s): %v", p.ID, p.Shows, err)
		return false
	}
	var found []string
	ok := false
	for h, b := range hop.Ends() {
		if b.Kind != follow.Dropped && b.Kind != follow.Generated {
			continue
		}
		end, err := w.rules[h.Node].End(h.Pass, b.Stage, "br-int", w.layouts[h.Node])
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.Why, "MTU") {
			end.Known = MTU
		}
		d, err := w.rules[h.Node].Drop(end)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, h.Node+": "+string(d.Reason)+" in "+d.Stage+": "+d.Rule.Words)
		right := d.Reason == want
		if p.Rule != nil && d.Reason != PortSecurity { // a route led to the port
			right = right && strings.Contains(d.Rule.Words+" "+d.Rule.Cause.Name, p.Rule.Name)
		}
		ok = ok || right
	}
	if !ok {
		t.Errorf("packet %d (%s) was planted to end with %s, %+v; ends:\n  %s\n%s", p.ID, p.Shows, p.Reason, p.Rule,
			strings.Join(found, "\n  "), p.Flow)
	}
	return p.Rule != nil
}
