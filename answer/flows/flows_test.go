package flows

import (
	"os"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

func list(t *testing.T, wd *workdir.Dir, q Query) (found []Flow) {
	t.Helper()
	listed, err := List(t.Context(), []Source{{Dir: wd}}, q, func(f Flow) error { found = append(found, f); return nil })
	if err != nil || listed.Lost > 0 || listed.Flows != len(found) {
		t.Fatal(listed, err)
	}
	return found
}

// lines returns the lines of a dump that hold a flow and a text.
func lines(t *testing.T, wd *workdir.Dir, bridge, part string) (found []string) {
	t.Helper()
	raw, err := os.ReadFile(wd.DumpFile(bridge, workdir.Flows))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, "actions=") && strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

func TestEveryRecordedFlowIsListedInItsOrder(t *testing.T) {
	for _, name := range []string{"ovn-openstack-compute", "ovn-kubernetes-worker"} {
		wd := collected.Report(t, captures.Report(t, "captures/"+name))
		found, recorded := list(t, wd, Query{Bridge: "br-int"}), lines(t, wd, "br-int", "")
		if len(found) != len(recorded) {
			t.Fatalf("%s: %d flows of %d", name, len(found), len(recorded))
		}
		for i, f := range found {
			_, actions, _ := strings.Cut(recorded[i], "actions=")
			if !strings.HasSuffix(f.Text, " actions="+strings.TrimSpace(actions)) {
				t.Fatalf("%s: line %d: %s, want %s", name, i, f.Text, recorded[i])
			}
			if f.Stage == "" || f.For == "no row has its cookie" {
				t.Errorf("%s: %s has stage %q and is for %q", name, f.Text, f.Stage, f.For)
			}
		}
	}
}

func TestFlowsThatMatchedNoPacket(t *testing.T) {
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	never, hit := list(t, wd, Query{Filter: Filter{NeverHit: true}}), list(t, wd, Query{Filter: Filter{Hit: true}})
	clauses := lines(t, wd, "br-int", "actions=conjunction(")
	zero := lines(t, wd, "br-int", "n_packets=0,")
	if len(clauses) == 0 || len(never) != len(zero)-len(clauses) || len(hit) != len(lines(t, wd, "br-int", ""))-len(zero) {
		t.Errorf("%d never hit, %d hit; %d flows have no packets, %d of them are clauses", len(never), len(hit), len(zero),
			len(clauses))
	}
}

func TestSortedByPacketsWithinALimit(t *testing.T) {
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	all := list(t, wd, Query{Sort: ByPackets})
	packets := func(f Flow) uint64 {
		if f.Packets == nil {
			return 0
		}
		return *f.Packets
	}
	if !slices.IsSortedFunc(all, func(a, b Flow) int { return int(packets(b)) - int(packets(a)) }) {
		t.Error("not sorted")
	}
	first := list(t, wd, Query{Sort: ByPackets, Limit: 7})
	if len(first) != 7 || !slices.EqualFunc(first, all[:7],
		func(a, b Flow) bool { return a.Text == b.Text && a.Bridge == b.Bridge }) {
		t.Errorf("%v", first)
	}
}

// TestClausesAreNamedByTheirConjunction compares with the cookie of the flow that has the
// conj_id.
func TestClausesAreNamedByTheirConjunction(t *testing.T) {
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	n := 0
	for _, f := range list(t, wd, Query{Bridge: "br-int"}) {
		_, rest, clause := strings.Cut(f.Text, "actions=conjunction(")
		if !clause {
			continue
		}
		n++
		id, _, _ := strings.Cut(rest, ",")
		with := list(t, wd, Query{Filter: Filter{Match: []string{"conj_id=" + id}}})
		if len(with) != 1 || with[0].For != f.For || with[0].UUID != f.UUID || f.Row != "ACL" || !f.Clause ||
			f.Packets != nil {
			t.Errorf("%s is for %s; %+v", f.Text, f.For, with)
		}
	}
	if n == 0 {
		t.Error("no conjunction")
	}
}

func TestFilters(t *testing.T) {
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	same := func(what string, a, b Filter) {
		t.Helper()
		x, y := list(t, wd, Query{Filter: a}), list(t, wd, Query{Filter: b})
		if len(x) == 0 || !slices.EqualFunc(x, y, func(a, b Flow) bool { return a.Text == b.Text }) {
			t.Errorf("%s: %d and %d flows", what, len(x), len(y))
		}
	}
	same("an interface and its logical port", Filter{Port: "tapvm1aaaaa-aa"}, Filter{Port: "p-vm1"})
	same("a table that is one stage", Filter{Table: "65"}, Filter{Table: "output: from logical to physical"})
	same("a field by another name", Filter{Match: []string{"eth_dst=ff:ff:ff:ff:ff:ff"}},
		Filter{Match: []string{"dl_dst=ff:ff:ff:ff:ff:ff"}})
	same("a number in another notation", Filter{Match: []string{"metadata=2"}}, Filter{Match: []string{"metadata=0x2"}})
	same("a field in any notation", Filter{Match: []string{"in_port=3"}},
		Filter{Match: []string{"in_port=tapvm1aaaaa-aa"}})
	same("a cookie and all its bits", Filter{Cookie: "0x3c43a14"}, Filter{Cookie: "0x3c43a14/0xffffffff"})
	router := list(t, wd, Query{Filter: Filter{Router: "neutron-d4d4d4d4-0004"}})
	if len(router) != len(lines(t, wd, "br-int", "metadata=0x4,"))+len(lines(t, wd, "br-int", "metadata=0x4 ")) ||
		len(router) == 0 {
		t.Errorf("%d flows of the router", len(router))
	}
	if found := list(t, wd, Query{Filter: Filter{Switch: "neutron-d4d4d4d4-0004"}}); len(found) > 0 {
		t.Errorf("%d flows of a switch that is a router", len(found))
	}
	for _, f := range list(t, wd, Query{Filter: Filter{ACL: "SG X"}}) {
		if f.Row != "ACL" || !strings.Contains(f.For, "sg x") {
			t.Errorf("%+v", f)
		}
	}
	if _, err := List(t.Context(), []Source{{Dir: wd}}, Query{Filter: Filter{Cookie: "x"}}, nil); err == nil {
		t.Error("x is a cookie")
	}
}

// TestTreeCountsStages adds up the stages and compares them with the dump.
func TestTreeCountsStages(t *testing.T) {
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	flows, shown, last := 0, 0, ""
	var packets uint64
	_, err := Tree(t.Context(), []Source{{Dir: wd}}, Query{Bridge: "br-int", Limit: 3}, func(s Stage) error {
		flows += s.Flows
		packets += s.Packets
		last = s.Name
		return nil
	}, func(f Flow) error {
		shown++
		if f.Stage != last {
			t.Errorf("%s in stage %s", f.Text, last)
		}
		return nil
	})
	var want uint64
	for _, f := range list(t, wd, Query{Bridge: "br-int"}) {
		if f.Packets != nil {
			want += *f.Packets
		}
	}
	if err != nil || flows != len(lines(t, wd, "br-int", "")) || packets != want || shown == 0 || shown >= flows {
		t.Errorf("%d flows, %d of them shown, %d packets of %d: %v", flows, shown, packets, want, err)
	}
}

// TestABadLineCostsThatLine damages one line of a dump.
func TestABadLineCostsThatLine(t *testing.T) {
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	path := wd.DumpFile("br-int", workdir.Flows)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := list(t, wd, Query{Bridge: "br-int"})
	damaged := strings.Replace(string(raw), "table=8,", "table=x,", 1)
	if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	listed, err := List(t.Context(), []Source{{Dir: wd}}, Query{Bridge: "br-int"}, func(Flow) error { n++; return nil })
	if err != nil || listed.Lost != 1 || n != len(all)-1 || len(listed.Remarks) != 1 {
		t.Errorf("%+v, %d flows of %d: %v", listed, n, len(all), err)
	}
}

// TestAgentTablesHaveNames lists the flows of neutron's Open vSwitch agent.
func TestAgentTablesHaveNames(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "unshare", "xz")
	s := sets.Recorded(t, "../../scripts/lab/lab", "neutron-ovs")
	paths, err := s.Workdirs(t.Context(), t.TempDir(), sets.Kernel)
	if err != nil {
		t.Fatal(err)
	}
	wd, err := workdir.Find(paths["compute1"])
	if err != nil {
		t.Fatal(err)
	}
	floods := list(t, wd, Query{Bridge: "br-tun", Filter: Filter{Table: "flood to tunnels"}})
	if len(floods) == 0 || len(floods) != len(lines(t, wd, "br-tun", "table=22,")) {
		t.Errorf("%d flows flood to tunnels", len(floods))
	}
	for _, f := range floods {
		expect.Equal(t, f.Table, 22, f)
		expect.Equal(t, f.For, "", f)
	}
}
