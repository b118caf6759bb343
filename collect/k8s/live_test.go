package k8s_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/collect/k8s"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/parity"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/restore"
	"ovs-offline/replica/runtime/process"
)

// TestParity collects live nodes, and compares what their replicas answer with
// what the nodes did: packet by packet, and every flow, group, meter and TLV
// mapping with what ovs-ofctl said there.
func TestParity(t *testing.T) {
	for _, topology := range []string{"kubernetes", "openstack"} {
		t.Run(topology, func(t *testing.T) {
			if isolated, why := process.New(process.Options{}).Isolated(t.Context()); !isolated {
				t.Skip("controllers and collectors of a live node can't be restored where daemons are not isolated: ", why)
			}
			dir, exec := live(t, topology)
			at := filepath.Join(t.TempDir(), "wd")
			r := collectOne(t, cluster(exec, interconnect("worker")...), at, k8s.Options{Nodes: []string{"worker"}})
			checkNothingLost(t, r)
			oracle := filepath.Join(t.TempDir(), "oracle")
			labRun(t, "oracle", dir, oracle)
			n := adopt(t, at)
			f, err := n.Compare(t.Context(), filepath.Join(oracle, "packets"), filepath.Join(oracle, "live"))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s\n%s", parity.Header, f)
			for _, d := range f.Differences {
				t.Logf("differs: %.800s", d)
			}
			if f.Results+f.Balanced != f.Packets {
				t.Errorf("the result lines of %d packets differ", f.Packets-f.Results-f.Balanced)
			}
			if !n.Report.Complete() {
				t.Errorf("not all was restored: set aside %v, lost %v, steps %v", n.Report.SetAside, n.Report.Lost, n.Report.Steps)
			}
			checkTruth(t, n, filepath.Join(oracle, "truth"))
			for _, s := range n.Report.Steps {
				if s.Status != restore.Restored && s.Status != restore.Idle {
					t.Logf("%s: %s: %q", s.Step, s.Status, s.Details)
				}
			}
		})
	}
}

func adopt(t *testing.T, dir string) *parity.Node {
	t.Helper()
	n, err := parity.Adopt(t.Context(), dir, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return n
}

func checkNothingLost(t *testing.T, r k8s.Result) {
	t.Helper()
	for _, c := range r.Collections {
		if len(c.Lost) > 0 {
			t.Errorf("%s: lost %q", c.Kind, c.Lost)
		}
		for _, f := range c.Files {
			if len(f.Remarks) > 0 {
				t.Errorf("%s: %q", f.Path, f.Remarks)
			}
		}
	}
}

// checkTruth compares what ovs-ofctl said on the live node with what it says on
// the replica.
func checkTruth(t *testing.T, n *parity.Node, truth string) {
	t.Helper()
	versions, err := os.ReadFile(filepath.Join(truth, "versions"))
	if err != nil || len(versions) == 0 {
		t.Fatal("no truth: ", err)
	}
	for line := range strings.Lines(string(versions)) {
		bridge, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, d := range []struct {
			dump    workdir.Dump
			command string
		}{{workdir.Flows, "dump-flows"}, {workdir.Groups, "dump-groups"}, {workdir.Meters, "dump-meters"}, {workdir.TLV, "dump-tlv-map"}} {
			want, err := os.ReadFile(filepath.Join(truth, bridge+"."+string(d.dump)))
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"-O", version, d.command, bridge}
			if d.dump == workdir.Flows {
				args = append([]string{"--no-stats"}, args...)
			}
			have, err := n.Tool(t.Context(), "ovs-ofctl", args...)
			if err != nil {
				t.Fatal(err)
			}
			missing, extra := difference(entries(d.dump, string(want)), entries(d.dump, have))
			if len(missing)+len(extra) > 0 {
				t.Errorf("%s %s: missing %.400q, extra %.400q", bridge, d.dump, missing, extra)
			}
		}
	}
}

// entries are a dump's; timeouts don't count, since a replica's flows have none.
func entries(dump workdir.Dump, text string) []string {
	var list []string
	var found []openflow.Entry
	r := strings.NewReader(text)
	switch dump {
	case workdir.Flows:
		for flow, problem := range openflow.Flows(r) {
			if problem == nil {
				list = append(list, strings.ReplaceAll(flow.Text, "dec_ttl()", "dec_ttl"))
			}
		}
	case workdir.Groups:
		found, _ = openflow.Groups(r)
	case workdir.Meters:
		found, _ = openflow.Meters(r)
	case workdir.TLV:
		found, _ = openflow.TLVMap(r)
	}
	for _, e := range found {
		list = append(list, e.Text)
	}
	return list
}

func difference(want, have []string) (missing, extra []string) {
	count := map[string]int{}
	for _, s := range have {
		count[s]++
	}
	for _, s := range want {
		if count[s] == 0 {
			missing = append(missing, s)
		}
		count[s]--
	}
	for s, n := range count {
		if n > 0 {
			extra = append(extra, s)
		}
	}
	return missing, extra
}
