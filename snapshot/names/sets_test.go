package names

import (
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/rules"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// TestSetsOfTheLab loads the databases of the lab's sets, and compares first packets and
// rules with the packets that were really sent and the rules that were planted.
func TestSetsOfTheLab(t *testing.T) {
	for _, name := range sets.Names() {
		t.Run(name, func(t *testing.T) {
			s := sets.Recorded(t, "../../scripts/lab/lab", name)
			zones, words := openSet(t, s)
			n := load(t, zones...)
			comparePackets(t, s, n)
			for _, p := range s.Packets {
				if p.Rule != nil && p.Rule.Kind != "flow" &&
					!slices.ContainsFunc(words, func(text string) bool { return isNamedAfter(text, p.Rule) }) {
					t.Errorf("%s: no rule is named after %s %s", p.Shows, p.Rule.Kind, p.Rule.Name)
				}
			}
		})
	}
}

// openSet returns the zones of a set, and the words of the rules of all flows of its nodes.
func openSet(t *testing.T, s *sets.Set) (zones []*snapshot.Deployment, words []string) {
	t.Helper()
	paths, err := s.Workdirs(t.Context(), t.TempDir(), sets.Native)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]int{} // zones by the UUIDs of SB_Global
	for _, node := range s.Nodes {
		wd, err := workdir.Find(paths[node])
		if err != nil {
			t.Fatal(err)
		}
		sb, nb := openExisting(t, wd.Database(workdir.SB)), openExisting(t, wd.Database(workdir.NB))
		id := ""
		if sb != nil {
			for row := range sb.Rows("SB_Global") {
				id = row.UUID
			}
		}
		at, found := known[id]
		if !found {
			at = len(zones)
			known[id] = at
			zones = append(zones, &snapshot.Deployment{NB: nb, SB: sb})
		}
		zones[at].Nodes = append(zones[at].Nodes, snapshot.Member{Name: node, Dir: wd, OVS: open(t, wd.Database(workdir.OVS))})
		if sb != nil {
			words = append(words, wordsOf(t, rules.New(nb, sb), wd.DumpFile("br-int", workdir.Flows))...)
		}
	}
	return zones, words
}

func openExisting(t *testing.T, path string) *file.Index {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return open(t, path)
}

// wordsOf returns the words of the rules of all flows in a dump. Each flow has a rule.
func wordsOf(t *testing.T, r *rules.Rules, dump string) []string {
	t.Helper()
	text, err := os.Open(dump)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	var flows []openflow.Key
	for line, problem := range openflow.Flows(text) {
		if problem != nil {
			t.Fatal(problem)
		}
		flows = append(flows, line.Key())
	}
	layout, err := r.Layout(slices.Values(flows))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, k := range flows {
		f := rules.FlowOf(k, layout)
		rule, ok, err := r.Find(f)
		if err != nil || !ok || rule.Candidates > 0 {
			t.Errorf("%s: flow %+v: %+v %v", dump, f, rule, err)
		}
		words = append(words, rule.Words+" "+rule.Cause.Name)
	}
	return words
}

// comparePackets compares first packets with those that were sent from a port and that
// came out where they should: their MAC addresses were right.
func comparePackets(t *testing.T, s *sets.Set, n *Names) {
	t.Helper()
	field := func(flow, name string) string {
		if m := regexp.MustCompile(`(?:^|,)` + name + `=([^,]*)`).FindStringSubmatch(flow); m != nil {
			return m[1]
		}
		return ""
	}
	compared := map[bool]int{}
	for _, p := range s.Packets {
		src, dst := field(p.Flow, "nw_src")+field(p.Flow, "ipv6_src"), field(p.Flow, "nw_dst")+field(p.Flow, "ipv6_dst")
		if p.Class != sets.Delivered || src == "" || strings.Contains(p.Flow, "dl_dst=ff:ff") ||
			notFirst.MatchString(p.Shows) {
			continue
		}
		from, err := n.Find(field(p.Flow, "dl_src"), Filter{})
		outside := err != nil
		if outside && len(n.zones[0].routers) == 0 {
			continue // the ports of the lab's ML2/OVS nodes don't name their physical networks
		}
		to, err := n.Find("external/"+dst, Filter{})
		if err == nil && outside {
			if from, err = n.Find("external/"+src, Filter{}); err == nil {
				if known, err := n.Find(dst, Filter{}); err == nil {
					to = known
				}
			}
		}
		if err != nil {
			t.Errorf("%s: %v", p.Shows, err)
			continue
		}
		if !outside && !slices.ContainsFunc(from.IPs, func(ip netip.Addr) bool { return ip.String() == src }) {
			continue // not the port's own address
		}
		got, err := n.First(Question{From: from, To: to})
		if err != nil {
			t.Errorf("packet %d (%s): %v\n%s", p.ID, p.Shows, err, p.Flow)
			continue
		}
		if got.Unresolved.IsValid() && len(n.zones[0].routers) == 0 {
			continue // a port without the firewall has no address in the flows
		}
		compared[outside]++
		if field(got.Flow, "dl_dst") != field(p.Flow, "dl_dst") || field(got.Flow, "dl_vlan") != field(p.Flow, "dl_vlan") ||
			!outside && !slices.Contains(got.Nodes, p.Node) ||
			outside && field(got.Flow, "dl_src") != field(p.Flow, "dl_src") {
			t.Errorf("packet %d (%s): %v %s\nwas sent: %s %s", p.ID, p.Shows, got.Nodes, got.Flow, p.Node, p.Flow)
		}
	}
	t.Logf("%d packets of ports, %d from outside", compared[false], compared[true])
	if compared[false] < 20 {
		t.Error("too few")
	}
}

// notFirst matches packets that answer others, which go where those came from, and those
// between hosts outside of OVN.
var notFirst = regexp.MustCompile(`answer|reports an error|a MAC that no switch has learned|^from a node to (the outside|another)`)

// isNamedAfter reports whether the words of a rule have the name of a planted one.
func isNamedAfter(words string, planted *sets.Rule) bool {
	name := planted.Name
	if planted.Kind == "policy" {
		name = "policy route priority " + name
	}
	return strings.Contains(words, name)
}
