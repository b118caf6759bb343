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
	"ovs-offline/internal/flow"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/release"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/replica/synth"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
)

// databases makes a workdir with nothing but the OVN databases of another.
func databases(t *testing.T, from, path string) *workdir.Dir {
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
	for _, k := range []workdir.Kind{workdir.NB, workdir.SB} {
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
	return synth.Options{Chassis: chassis, Release: release.Options{Runtime: process.Name, Version: "test"}}
}

// synthesised returns the workdirs of a set's nodes, made from its OVN databases alone: of
// those of each zone, or of the central ones.
func synthesised(t *testing.T, s *sets.Set, collected map[string]string) map[string]string {
	t.Helper()
	paths := map[string]string{}
	folder := ovs.Dir(t)
	if s.Name == "kubernetes-ic" {
		for node, path := range collected {
			wd := databases(t, path, filepath.Join(folder, node))
			if chassis, err := synth.Make(t.Context(), wd, options()); err != nil || len(chassis) != 1 || chassis[0].Title() != node {
				t.Fatalf("the zone of %s has the chassis %v: %v", node, chassis, err)
			}
			wd.Unlock()
			paths[node] = wd.Path()
		}
		return paths
	}
	wd := databases(t, collected[s.Nodes[0]], filepath.Join(folder, "central"))
	if _, err := synth.Make(t.Context(), wd, options(synth.All)); err != nil {
		t.Fatal(err)
	}
	wd.Unlock()
	for node := range collected {
		paths[node] = filepath.Join(wd.Chassis(), node)
	}
	return paths
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
// switches that were made from the OVN databases alone, and compares where they come out,
// and with which headers, with what really happened. Packets count that enter and leave at
// ports that the databases know, in connections that are not older than the capture: no
// database holds these.
func TestPacketsComeOutOfSynthesisedSwitches(t *testing.T) {
	fidelity.NeedScratch(t)
	for _, name := range []string{"openstack", "kubernetes-ic"} {
		t.Run(name, func(t *testing.T) {
			s := sets.Recorded(t, "../../scripts/lab/lab", name)
			collected, err := s.Workdirs(t.Context(), ovs.Dir(t), sets.Kernel)
			if err != nil {
				t.Fatal(err)
			}
			paths := synthesised(t, s, collected)
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
			q.compareAll(t)
		})
	}
}

// compareAll compares all packets, by their kinds.
func (q question) compareAll(t *testing.T) {
	all, right := map[string]int{}, map[string]int{}
	for _, p := range q.set.Packets {
		if len(p.After) > 0 {
			continue
		}
		kind := q.kind(p)
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
		return node != "fabric" && slices.ContainsFunc(q.set.Ports, func(o sets.Port) bool { return o.Node == node && o.Name == port && o.Role == "edge" })
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
	case within(own, predicted) && within(predicted, out) && (p.Class != sets.Generated || generated || len(predicted) > 0):
		return ""
	case p.Choice && len(predicted) > 0 && slices.ContainsFunc(predicted, func(o string) bool { return slices.Contains(out, o) }):
		return ""
	}
	return fmt.Sprintf("  came out:  %s\n  predicted: %s\n%s", strings.Join(out, "\n             "), strings.Join(predicted, "\n             "), strings.Join(why, "\n"))
}

// watched reports whether the lab catches what comes out of a port.
func (q question) watched(node, port string) bool {
	return slices.ContainsFunc(q.set.Ports, func(p sets.Port) bool { return p.Node == node && q.names[node][p.Name] == port })
}

func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
