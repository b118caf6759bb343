package scratch

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/ovs"
	"ovs-offline/test/sets"
)

// need skips the test where the programs of OVN are missing, or have no namespaces.
func need(t *testing.T) {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovn-controller", "ovn-northd", "ovn-nbctl", "xz")
	if isolated, why := process.New(process.Options{}).Isolated(t.Context()); !isolated {
		t.Skip(why)
	}
}

// options returns the options for a Scratch in a new folder.
func options(t *testing.T) Options {
	t.Helper()
	dir, err := workdir.Lock(filepath.Join(ovs.Dir(t), "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dir.Unlock)
	return Options{Dir: dir, Runtime: process.New(process.Options{Folders: dir.RuntimeFolders()})}
}

// start starts a Scratch and waits for the flows.
func start(t *testing.T, o Options) *Scratch {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// nodeOf returns the node of a workdir.
func nodeOf(wd *workdir.Dir, name string) Node {
	return Node{Name: name, Conf: wd.Database(workdir.OVS), Lists: wd.Recorded("")}
}

func collected(t *testing.T, report string) *workdir.Dir {
	t.Helper()
	wd, err := workdir.Lock(filepath.Join(ovs.Dir(t), "node"))
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	if _, _, err := collect.Collect(t.Context(), wd, collect.SosReport{Path: report}, collect.Options{}); err != nil {
		t.Fatal(err)
	}
	return wd
}

// recordedFlows returns the collected flows of a bridge, and their OpenFlow version.
func recordedFlows(t *testing.T, wd *workdir.Dir, bridge string) (string, openflow.Version) {
	t.Helper()
	path := wd.DumpFile(bridge, "flows")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wd.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Collection(workdir.OVS).Files {
		if f.Path == wd.Relative(path) {
			return string(text), openflow.ParseVersion(f.OpenFlow)
		}
	}
	t.Fatalf("the manifest does not name %s", path)
	return "", 0
}

// compare compares the flows that a node's switch got with the recorded ones, cookie
// included.
func compare(t *testing.T, s *Scratch, wd *workdir.Dir, node string) (recorded, same int, missing, extra []string) {
	t.Helper()
	text, version := recordedFlows(t, wd, s.places[node].bridge)
	d, err := s.Dump(t.Context(), node, version)
	if err != nil {
		t.Fatal(err)
	}
	computed := flows(t, d.Flows)
	for key, actions := range flows(t, text) {
		recorded++
		if have, found := computed[key]; found && have == actions {
			same++
			delete(computed, key)
			continue
		}
		missing = append(missing, key+" actions="+actions)
	}
	for key, actions := range computed {
		extra = append(extra, key+" actions="+actions)
	}
	slices.Sort(missing)
	slices.Sort(extra)
	return recorded, same, missing, extra
}

// flows returns the actions of each flow by its cookie, table, priority and match.
func flows(t *testing.T, text string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for f, problem := range openflow.Flows(strings.NewReader(text)) {
		if problem != nil {
			t.Fatal(problem)
		}
		found[f.Key()] = f.Actions()
	}
	return found
}

func TestFlowsOfCapturesAreReproduced(t *testing.T) {
	need(t)
	for _, name := range []string{"ovn-openstack-compute", "ovn-kubernetes-worker"} {
		t.Run(name, func(t *testing.T) {
			found, err := filepath.Glob("../../testdata/captures/" + name + "/sosreport-*.tar.xz")
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			wd := collected(t, found[0])
			o := options(t)
			o.SB, o.Nodes = wd.Database(workdir.SB), []Node{nodeOf(wd, "node")}
			s := start(t, o)
			recorded, same, missing, extra := compare(t, s, wd, "node")
			t.Logf("%d of %d; remarks: %q", same, recorded, s.Remarks())
			t.Logf("missing:\n%s\nextra:\n%s", strings.Join(missing, "\n"), strings.Join(extra, "\n"))
		})
	}
}

func TestFlowsOfSetsAreReproduced(t *testing.T) {
	need(t)
	for _, name := range []string{"openstack", "kubernetes-ic"} {
		t.Run(name, func(t *testing.T) {
			set := sets.Recorded(t, "../../scripts/lab/lab", name)
			paths, err := set.Workdirs(t.Context(), ovs.Dir(t), sets.Native)
			if err != nil {
				t.Fatal(err)
			}
			groups := map[string]*Options{}
			dirs := map[string]*workdir.Dir{}
			for _, node := range slices.Sorted(maps.Keys(paths)) {
				wd, err := workdir.Find(paths[node])
				if err != nil {
					t.Fatal(err)
				}
				dirs[node] = wd
				sb := filepath.Join(set.Dir, "databases", "ovnsb_db.db")
				if _, err := os.Stat(sb); err != nil {
					sb = wd.Database(workdir.SB)
				}
				if groups[sb] == nil {
					o := options(t)
					groups[sb] = &o
					o.SB = sb
				}
				groups[sb].SB = sb
				groups[sb].Nodes = append(groups[sb].Nodes, nodeOf(wd, node))
			}
			for _, o := range groups {
				s := start(t, *o)
				for _, n := range o.Nodes {
					recorded, same, missing, extra := compare(t, s, dirs[n.Name], n.Name)
					t.Logf("%s: %d of %d; remarks: %q", n.Name, same, recorded, s.Remarks())
					t.Logf("missing:\n%s\nextra:\n%s", strings.Join(missing, "\n"), strings.Join(extra, "\n"))
				}
			}
		})
	}
}
