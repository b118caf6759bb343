package synth_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/release"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/replica/synth"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/local"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// databases makes a workdir with nothing but OVN databases of another.
func databases(t *testing.T, from, path string, kinds ...workdir.Kind) *workdir.Dir {
	t.Helper()
	full, err := workdir.Find(from)
	if err != nil {
		t.Fatal(err)
	}
	wd, err := workdir.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	for _, k := range kinds {
		text, err := os.ReadFile(full.Database(k))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(wd.Database(k)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(wd.Database(k), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return wd
}

// options returns the options that synthesise chassis with this host's tools.
func options(chassis ...string) synth.Options {
	return synth.Options{Chassis: chassis, Release: release.Options{Runtime: process.Name, Runtimes: local.Runtimes},
		Version: "test"}
}

// both are the OVN databases of a deployment.
func both() []workdir.Kind { return []workdir.Kind{workdir.NB, workdir.SB} }

// synthesised returns the workdirs of a set's nodes, made from OVN databases alone: of
// those of each zone, or of the central ones.
func synthesised(t *testing.T, s *sets.Set, collected map[string]string, kinds ...workdir.Kind) map[string]string {
	t.Helper()
	paths := map[string]string{}
	folder := ovs.Dir(t)
	if s.Name == "kubernetes-ic" {
		for node, path := range collected {
			wd := databases(t, path, filepath.Join(folder, node), kinds...)
			if chassis, err := synth.Make(t.Context(), wd, options()); err != nil || len(chassis) != 1 ||
				chassis[0].Title() != node {
				t.Fatalf("the zone of %s has the chassis %v: %v", node, chassis, err)
			}
			wd.Unlock()
			paths[node] = wd.Path()
		}
		return paths
	}
	wd := databases(t, collected[s.Nodes[0]], filepath.Join(folder, "central"), kinds...)
	if _, err := synth.Make(t.Context(), wd, options(synth.All)); err != nil {
		t.Fatal(err)
	}
	wd.Unlock()
	for node, path := range collected {
		paths[node] = filepath.Join(wd.Chassis(), node)
		if _, err := os.Stat(paths[node]); err != nil { // only gateways name the chassis, by its system-id
			paths[node] = filepath.Join(wd.Chassis(), systemID(t, path))
		}
	}
	return paths
}

// systemID returns the name of the chassis of a collected node.
func systemID(t *testing.T, path string) string {
	t.Helper()
	wd, err := workdir.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	content, _, err := file.Read(t.Context(), wd.Database(workdir.OVS), ovsdb.OVS)
	if err != nil {
		t.Fatal(err)
	}
	return content.Rows(ovsdb.OVS)[0].Value("external_ids", "system-id")
}

// start starts a replica of a workdir and opens it.
func start(t *testing.T, node, path string) *host.Host {
	t.Helper()
	n := fidelity.Started(t, path)
	h, err := host.Open(t.Context(), node, n.Workdir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// portNames returns the synthesised names of the interfaces of a node by their own ones.
// Those of logical ports are found by their iface-id.
func portNames(t *testing.T, live, made string) map[string]string {
	t.Helper()
	byID := map[string]string{}
	for _, i := range interfaces(t, made) {
		byID[i.id] = i.name
	}
	names := map[string]string{}
	for _, i := range interfaces(t, live) {
		names[i.name] = i.name
		if i.id != "" {
			names[i.name] = byID[i.id]
		}
	}
	names["eth1"] = "nic-br-ex" // the labs' physical port on br-ex, which no database names
	return names
}

type named struct{ name, id string }

func interfaces(t *testing.T, path string) (all []named) {
	t.Helper()
	wd, err := workdir.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	content, _, err := file.Read(t.Context(), wd.Database(workdir.OVS), "Interface")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range content.Rows("Interface") {
		all = append(all, named{row.String("name"), row.Map("external_ids")["iface-id"]})
	}
	return all
}

// normal returns a packet with its fields in one order, without those that are zero.
func normal(p flow.Packet) string {
	var list []string
	for _, f := range p.Fields() {
		switch f.Value {
		case "0", "0x0000", "0x00000", "no", "00:00:00:00:00:00":
			continue
		}
		list = append(list, strings.TrimSuffix(f.Name+"="+f.Value, "="))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// question asks about the packets of a set.
type question struct {
	set     *sets.Set
	tracer  *follow.Tracer
	names   map[string]map[string]string // of ports, by node
	network string
}

// TestPacketsComeOutOfSynthesisedSwitches follows the packets of the lab's sets over
// switches that were made from OVN databases alone, from one of them or both, and compares where
// they come out, and with which headers, with what really happened. Packets count that enter and
// leave at ports that the databases know, in connections that are not older than the capture: no
// database holds these. Outside of a sweep, it follows only the packets that count, and has each shape of databases
// once: both, and NB of a central one (SB is then computed), and SB of zones.
func TestPacketsComeOutOfSynthesisedSwitches(t *testing.T) {
	fidelity.NeedScratch(t)
	for _, name := range []string{"openstack", "kubernetes-ic"} {
		s := sets.Recorded(t, "../../scripts/lab/lab", name)
		collected, err := s.Workdirs(t.Context(), ovs.Dir(t), sets.Kernel)
		if err != nil {
			t.Fatal(err)
		}
		for what, kinds := range map[string][]workdir.Kind{"both": both(), "NB": {workdir.NB}, "SB": {workdir.SB}} {
			if !sweep.Whole() && !slices.Contains(map[string][]string{"openstack": {"NB", "both"},
				"kubernetes-ic": {"SB"}}[name], what) {
				continue
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				ask(t, s, collected, synthesised(t, s, collected, kinds...)).compareAll(t)
			})
		}
	}
}

// ask starts replicas of synthesised nodes.
func ask(t *testing.T, s *sets.Set, collected, paths map[string]string) question {
	q := question{set: s, names: map[string]map[string]string{}}
	var hosts []*host.Host
	for _, node := range s.Nodes {
		h := start(t, node, paths[node])
		h.Conntrack.Userspace = true // as the packets' datapath was
		hosts = append(hosts, h)
		q.names[node] = portNames(t, collected[node], paths[node])
		for _, networks := range h.Networks {
			q.network = networks[0]
		}
	}
	q.tracer = follow.New(hosts, follow.Options{})
	return q
}

// compareAll compares all packets, by their kinds.
func (q question) compareAll(t *testing.T) {
	all, right := map[string]int{}, map[string]int{}
	for _, p := range q.set.Packets {
		kind := q.kind(p)
		if len(p.After) > 0 || !sweep.Whole() && kind != known {
			continue
		}
		all[kind]++
		if wrong := q.differs(t, p); wrong == "" {
			right[kind]++
		} else {
			t.Logf("%s: packet %d (%s): %s\n%s", kind, p.ID, p.Shows, p.Flow, wrong)
		}
	}
	for kind := range all {
		t.Logf("%s: %d of %d right", kind, right[kind], all[kind])
	}
	if right[known]*100 < all[known]*95 {
		t.Errorf("%d of %d packets between known ports are right: it has to be 95 %%", right[known], all[known])
	}
}

// The kinds of packets.
const (
	known       = "between ports that SB knows"
	established = "of a connection that was open before"
	outside     = "through a port that SB does not know"
)

func (q question) kind(p *sets.Packet) string {
	edge := func(node, port string) bool {
		return node != "fabric" && slices.ContainsFunc(q.set.Ports,
			func(o sets.Port) bool { return o.Node == node && o.Name == port && o.Role == "edge" })
	}
	if p.Established {
		return established
	}
	if !edge(p.Node, p.Port) || slices.ContainsFunc(p.Outputs, func(o sets.Output) bool { return !edge(o.Node, o.Port) }) {
		return outside
	}
	return known
}

// differs returns in what the prediction differs from what came out, "" for nothing.
func (q question) differs(t *testing.T, p *sets.Packet) string {
	t.Helper()
	f, err := sets.Frame(p.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	start := follow.Start{Node: p.Node, InPort: q.names[p.Node][p.Port], Packet: f.Packet, Size: f.Size, ID: f.ID}
	if f.Quoted != nil {
		start.Quoted, start.QuotedID = &f.Quoted.Packet, f.Quoted.ID
	}
	if p.Node == "fabric" {
		start.Node, start.InPort, start.Network = "", "", q.network
	}
	hop, _, err := q.tracer.Packet(t.Context(), start)
	if err != nil {
		return err.Error()
	}
	var predicted, why []string
	generated := false
	for h, b := range hop.Ends() {
		switch b.Kind {
		case follow.Delivered:
			if q.watched(h.Node, b.Port.Name) {
				predicted = append(predicted, h.Node+" "+b.Port.Name+" "+normal(b.Packet))
			}
		case follow.Generated:
			generated = true
		}
		stage := ""
		if b.Stage != nil {
			stage = fmt.Sprintf(" [table %d %s]", b.Stage.Table, b.Stage.Flow)
		}
		why = append(why, fmt.Sprintf("  %s on %s: %s%s", b.Kind, h.Node, b.Why, stage))
	}
	var own, out []string
	for _, o := range p.Outputs {
		f, err := sets.Frame(o.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if o.Node == "fabric" {
			continue
		}
		line := o.Node + " " + q.names[o.Node][o.Port] + " " + normal(f.Packet)
		out = append(out, line)
		if o.Own {
			own = append(own, line)
		}
	}
	switch {
	case within(own, predicted) && within(predicted, out) &&
		(p.Class != sets.Generated || generated || len(predicted) > 0):
		return ""
	case p.Choice && len(predicted) > 0 && slices.ContainsFunc(predicted,
		func(o string) bool { return slices.Contains(out, o) }):
		return ""
	}
	return fmt.Sprintf("  came out:  %s\n  predicted: %s\n%s", strings.Join(out, "\n             "),
		strings.Join(predicted, "\n             "), strings.Join(why, "\n"))
}

// watched reports whether the lab catches what comes out of a port.
func (q question) watched(node, port string) bool {
	return slices.ContainsFunc(q.set.Ports,
		func(p sets.Port) bool { return p.Node == node && q.names[node][p.Name] == port })
}

func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// TestComputedLogicalFlowsAreTheRecordedOnes compares the logical flows of two southbound databases:
// one was computed from the northbound database, and the deployment had the other.
func TestComputedLogicalFlowsAreTheRecordedOnes(t *testing.T) {
	fidelity.NeedScratch(t)
	for _, name := range []string{"openstack", "kubernetes-ic"} {
		s := sets.Recorded(t, "../../scripts/lab/lab", name)
		collected, err := s.Workdirs(t.Context(), ovs.Dir(t), sets.Kernel)
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := workdir.Find(collected[s.Nodes[0]])
		if err != nil {
			t.Fatal(err)
		}
		wd := databases(t, recorded.Path(), filepath.Join(ovs.Dir(t), "nb"), workdir.NB)
		if _, err := synth.Make(t.Context(), wd, options(synth.All)); err != nil {
			t.Fatal(err)
		}
		want, got := logicalFlows(t, recorded), logicalFlows(t, wd)
		for flow, n := range want {
			if n != got[flow] {
				t.Errorf("%s: recorded %d times, computed %d times: %s", name, n, got[flow], flow)
			}
		}
		for flow := range got {
			if want[flow] == 0 {
				t.Errorf("%s: only computed: %s", name, flow)
			}
		}
		t.Logf("%s: %d different logical flows", name, len(want))
	}
}

// logicalFlows counts the logical flows of a workdir's southbound database by what they do, with
// the names of their datapaths.
func logicalFlows(t *testing.T, wd *workdir.Dir) map[string]int {
	t.Helper()
	content, _, err := file.Read(t.Context(), wd.Database(workdir.SB), "Logical_Flow", "Logical_DP_Group",
		"Datapath_Binding")
	if err != nil {
		t.Fatal(err)
	}
	names, groups := map[string]string{}, map[string][]string{}
	for _, row := range content.Rows("Datapath_Binding") {
		names[row.UUID] = row.Value("external_ids", "name")
	}
	for _, row := range content.Rows("Logical_DP_Group") {
		groups[row.UUID] = row.UUIDs("datapaths")
	}
	counts := map[string]int{}
	for _, row := range content.Rows("Logical_Flow") {
		datapaths := row.UUIDs("logical_datapath")
		for _, group := range row.UUIDs("logical_dp_group") {
			datapaths = append(datapaths, groups[group]...)
		}
		table, _ := row.Int("table_id")
		priority, _ := row.Int("priority")
		for _, datapath := range datapaths {
			counts[fmt.Sprintf("%s %s table %d priority %d: %s -> %s", names[datapath], row.String("pipeline"), table, priority,
				row.String("match"), row.String("actions"))]++
		}
	}
	return counts
}
