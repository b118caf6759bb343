package flows

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

func count(t *testing.T, sources []Source, by By, limit int) *Top {
	t.Helper()
	top, listed, err := Count(t.Context(), sources, by, limit)
	if err == nil {
		t.Cleanup(top.Close)
		err = top.Examine(t.Context())
	}
	if err != nil || listed.Lost > 0 {
		t.Fatal(listed, err)
	}
	return top
}

// TestCostsDoNotDependOnUUIDs lists what costs the most of a set, and of the set with other UUIDs.
func TestCostsDoNotDependOnUUIDs(t *testing.T) {
	s := sets.Recorded(t, "../../scripts/lab/lab", "openstack")
	var sources, others []Source
	var reports []string
	for _, node := range s.Nodes {
		archive, err := s.Report(node)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, Source{node, collected.Report(t, archive)})
		reports = append(reports, captures.Unpack(t, archive))
	}
	if err := sets.Renumber(reports...); err != nil {
		t.Fatal(err)
	}
	for i, node := range s.Nodes {
		others = append(others, Source{node, collected.Report(t, reports[i])})
	}
	for _, by := range []By{ByRule, ByACL, ByRoute} {
		names := func(sources []Source) (names []string) {
			top := count(t, sources, by, 10)
			for _, c := range slices.Concat(top.Costs, top.NeverHit) {
				names = append(names, c.Name)
			}
			for _, p := range slices.Concat(top.Products, top.Conjunctions) {
				names = append(names, p.Name)
			}
			return names
		}
		if want, got := names(sources), names(others); !slices.Equal(got, want) || len(want) < 3 {
			t.Errorf("by %s:\n%s\nwith other UUIDs:\n%s", by, strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
	}
}

// TestSumsAreThoseOfTheDump adds up by table and by node, and compares with the lines of
// the dumps.
func TestSumsAreThoseOfTheDump(t *testing.T) {
	a, b := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute")),
		collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	sources := []Source{{"a", a}, {"b", b}}
	flows := map[string]int{"a": len(lines(t, a, "br-int", "")),
		"b": len(lines(t, b, "br-int", "")) + len(lines(t, b, "breth0", ""))}
	nodes := count(t, sources, ByNode, 0)
	if len(nodes.Costs) != 2 || nodes.Flows != flows["a"]+flows["b"] || nodes.Counted != nodes.Flows {
		t.Errorf("%+v", nodes)
	}
	for _, c := range nodes.Costs {
		if c.Flows != flows[c.Name] || c.Nodes[c.Name] != c.Flows {
			t.Errorf("%+v, want %d", c, flows[c.Name])
		}
	}
	tables := count(t, sources[:1], ByTables, 0)
	seen := 0
	for _, c := range tables.Costs {
		number := strings.Fields(c.Name)[2]
		seen += c.Flows
		if recorded := lines(t, a, "br-int", ", table="+number+", n_packets="); c.Flows != len(recorded) {
			t.Errorf("%s has %d flows, want %d", c.Name, c.Flows, len(recorded))
		}
	}
	if seen != flows["a"] {
		t.Errorf("%d flows of %d", seen, flows["a"])
	}
}

// TestACLsWithTheirFlowsAndPackets compares the sums of each ACL with its listed flows.
func TestACLsWithTheirFlowsAndPackets(t *testing.T) {
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	want := map[string]Cost{}
	for _, f := range list(t, wd, Query{}) {
		if f.Row != "ACL" {
			continue
		}
		c := want[f.UUID]
		c.Flows++
		if f.Packets != nil {
			c.Packets += *f.Packets
		}
		want[f.UUID] = c
	}
	top := count(t, []Source{{Dir: wd}}, ByACL, 0)
	if len(top.Costs) != len(want) || len(want) < 3 {
		t.Errorf("%d ACLs, want %d", len(top.Costs), len(want))
	}
	for i, c := range top.Costs {
		if w := want[c.UUID]; w.Flows != c.Flows || w.Packets != c.Packets || c.Name == "" || i > 0 &&
			c.Flows > top.Costs[i-1].Flows {
			t.Errorf("%+v, want %+v", c, w)
		}
	}
	for _, c := range top.NeverHit {
		if want[c.UUID].Packets != 0 {
			t.Errorf("%s was hit", c.Name)
		}
	}
	if limited := count(t, []Source{{Dir: wd}}, ByACL, 1); len(limited.Costs) != 1 || limited.Groups != len(want) {
		t.Errorf("%+v", limited)
	}
}

// TestNeverHitIsOverTheWholeSet has two copies of a node: with the flow counters of one
// set to zero, a rule that the other one hit is hit.
func TestNeverHitIsOverTheWholeSet(t *testing.T) {
	a, b := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute")),
		collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	path := a.DumpFile("br-int", workdir.Flows)
	files.Write(t, path, regexp.MustCompile(`n_packets=[0-9]+`).ReplaceAllString(files.Read(t, path), "n_packets=0"))
	alone, both, hit := count(t, []Source{{"a", a}}, ByRule, 0), count(t, []Source{{"a", a}, {"b", b}}, ByRule, 0),
		count(t, []Source{{"b", b}}, ByRule, 0)
	if alone.Never != alone.Groups || both.Never != hit.Never || both.Never >= both.Groups {
		t.Errorf("%d of %d alone, %d of both, %d of the node with counters", alone.Never, alone.Groups, both.Never, hit.Never)
	}
}

// recordedSources returns the nodes of a recorded set.
func recordedSources(t *testing.T, name string) (sources []Source) {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	paths, err := sets.Recorded(t, "../../scripts/lab/lab", name).Workdirs(t.Context(), t.TempDir(), sets.Native)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range slices.Sorted(maps.Keys(paths)) {
		wd, err := workdir.Find(paths[node])
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, Source{node, wd})
	}
	return sources
}

// TestOneLineForEachRule has ACLs of two logical flows, which are in the databases of several
// zones, and ports that are in the northbound and in the southbound database.
func TestOneLineForEachRule(t *testing.T) {
	sources := recordedSources(t, "kubernetes-ic")
	const policy = "NetworkPolicy ns2/allow-metrics"
	ofPolicy, own := 0, 0
	for _, s := range sources {
		for _, f := range list(t, s.Dir, Query{}) {
			if f.Row == "ACL" && strings.Contains(f.For, policy) {
				ofPolicy++
			}
			if f.Row == "Logical_Flow" {
				own++
			}
		}
	}
	top := count(t, sources, ByRule, 0)
	lines, flows := map[string]int{}, map[string]int{} // lines by node, but for ACLs
	for _, c := range top.Costs {
		line := c.Name
		if c.Row != "ACL" {
			line += fmt.Sprint(c.Nodes)
		}
		lines[line]++
		flows[c.Name] += c.Flows
		if c.Row == "" || c.Row == "Logical_Flow" {
			t.Errorf("%s is no rule", c.Name)
		}
	}
	for name, n := range lines {
		if n > 1 {
			t.Errorf("%s is on %d lines", name, n)
		}
		if strings.HasPrefix(name, policy) && flows[name] != ofPolicy {
			t.Errorf("%s has %d flows, want %d", name, flows[name], ofPolicy)
		}
	}
	if top.Own == nil || top.Own.Flows != own || top.Counted+own > top.Flows || own == 0 {
		t.Errorf("%+v, want %d", top.Own, own)
	}
	on := map[string]int{}
	for _, p := range top.Conjunctions {
		if strings.HasPrefix(p.Name, policy) {
			on[p.Node] = p.Flows
		}
	}
	if len(top.Conjunctions) != len(on) || on["worker2"]+on["worker3"] != ofPolicy || len(top.Products) > 0 {
		t.Errorf("%+v %+v, want one conjunction on each of two nodes, with %d flows", top.Conjunctions, top.Products,
			ofPolicy)
	}
}

// TestConjunctionsHaveTheValuesOfTheirFields compares with the clauses in the dump.
func TestConjunctionsHaveTheValuesOfTheirFields(t *testing.T) {
	sources := recordedSources(t, "kubernetes-ic")
	wd := sources[slices.IndexFunc(sources, func(s Source) bool { return s.Name == "worker2" })].Dir
	top := count(t, []Source{{Dir: wd}}, ByACL, 0)
	if len(top.Conjunctions) == 0 {
		t.Fatal("no conjunction")
	}
	for _, p := range top.Conjunctions {
		if !strings.Contains(p.Name, "NetworkPolicy ns2/allow-metrics") || p.Clauses == 0 {
			continue
		}
		id := ""
		for _, f := range list(t, wd, Query{Filter: Filter{ACL: "ns2/allow-metrics"}}) {
			if f.UUID == p.UUID && f.Table == p.Table && f.Clause {
				_, rest, _ := strings.Cut(f.Text, "conjunction(")
				id, _, _ = strings.Cut(rest, ",")
			}
			values := map[string]bool{}
			for _, line := range lines(t, wd, "br-int", "conjunction("+id+",") {
				if m := regexp.MustCompile(`nw_src=([0-9./]+)`).FindStringSubmatch(line); m != nil {
					values[m[1]] = true
				}
			}
			if id != "" && (len(values) < 2 || !strings.Contains(p.Text(), " + ") ||
				p.Fields[0] != (Factor{"nw_src", len(values)})) {
				t.Errorf("%s: %s, want %d nw_src", p.Name, p.Text(), len(values))
			}
		}
		if id == "" {
			t.Error("the conjunction has no clause in the dump")
		}
	}
}

// TestDuplicatesAreFound plants two ACLs and two logical flows that are there twice, and
// the same match in other places.
func TestDuplicatesAreFound(t *testing.T) {
	ovs.Need(t, "ovsdb-tool")
	id := func(n string) string { return n + "0000000-0000-4000-8000-000000000000" }
	acl := func(priority int, match string) ovndb.Row {
		return ovndb.Row{"priority": priority, "direction": "to-lport", "match": match, "action": "allow"}
	}
	nb := ovndb.Create(t, ovs.NBSchema)
	nb.Add(ovndb.Rows{
		"ACL": {id("1"): acl(1001, "ip4"), id("2"): acl(1001, "ip4"), id("3"): acl(1002, "ip4"),
			id("4"): acl(1001, "ip6"), id("5"): acl(1001, "ip4")},
		"Port_Group": {id("6"): {"name": "pg1",
			"acls": ovndb.Set(ovndb.UUID(id("1")), ovndb.UUID(id("2")), ovndb.UUID(id("3")), ovndb.UUID(id("4")))},
			id("7"): {"name": "pg2", "acls": ovndb.UUID(id("5"))}},
	})
	flow := func(datapath, match string) ovndb.Row {
		return ovndb.Row{"pipeline": "ingress", "table_id": 3, "priority": 50, "match": match, "actions": "next;",
			"logical_datapath": ovndb.UUID(id(datapath)), "external_ids": ovndb.Map("stage-name", "ls_in_acl")}
	}
	sb := ovndb.Create(t, ovs.SBSchema)
	sb.Add(ovndb.Rows{
		"Datapath_Binding": {id("8"): {"tunnel_key": 1, "external_ids": ovndb.Map("name", "blue")},
			id("9"): {"tunnel_key": 2, "external_ids": ovndb.Map("name", "red")}},
		"Logical_Flow": {id("a"): flow("8", "tcp"), id("b"): flow("8", "tcp"), id("c"): flow("9", "tcp"),
			id("d"): flow("8", "udp")},
	})
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	for kind, path := range map[workdir.Kind]string{workdir.NB: nb.Close(), workdir.SB: sb.Close()} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files.Write(t, wd.Database(kind), string(raw))
	}
	files.Write(t, wd.DumpFile("br-int", workdir.Flows),
		" cookie=0xa0000000, duration=1s, table=11, n_packets=0, n_bytes=0, priority=50,tcp,metadata=0x1 actions=resubmit(,12)\n")
	found := count(t, []Source{{Dir: wd}}, ByRule, 0).Duplicates
	if len(found) != 2 {
		t.Fatalf("%+v", found)
	}
	for i, want := range []struct {
		where, match, first,
		second string
	}{{"port group pg1, to-lport", "ip4", id("1"), id("2")}, {"stage ls_in_acl", "tcp", id("a"), id("b")}} {
		d := found[i]
		if d.Where != want.where || d.Match != want.match || len(d.Rows) != 2 || d.Rows[0].UUID != want.first ||
			d.Rows[1].UUID != want.second {
			t.Errorf("%+v, want %+v", d, want)
		}
	}
}
