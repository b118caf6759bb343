package replica

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// TestCaptures replays nodes that had a real kernel datapath.
func TestCaptures(t *testing.T) {
	needTools(t, "ovn-nbctl")
	for _, name := range []string{"ovn-openstack-compute", "ovn-kubernetes-worker"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("../testdata/captures", name)
			n := replay(t, only(t, filepath.Join(dir, "sosreport-*.tar.xz")), Options{})
			live := t.TempDir()
			if out, err := exec.Command("tar", "-C", live, "-xf", filepath.Join(dir, "live-traces.tar.xz")).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			f := n.compare(t, filepath.Join(dir, "packets"), filepath.Join(live, "live"))
			f.log(t, name)
			if f.results != f.packets {
				t.Errorf("the result lines of %d packets differ", f.packets-f.results)
			}
			if f.percent(f.whole, f.packets) < 98 {
				t.Errorf("whole text is equal on %d of %d packets, want 98 %%", f.whole, f.packets)
			}
			complete(t, n)
		})
	}
}

// complete checks that the report says that everything was restored as it was.
func complete(t *testing.T, n node) {
	t.Helper()
	if !n.report.Complete() {
		t.Errorf("the report is not complete: set aside %v, lost %v, steps %v", n.report.SetAside, n.report.Lost, n.report.Steps)
	}
	for _, b := range n.report.Bridges {
		for dump, c := range b.Counts {
			if c.Restored != c.Collected || c.SetAside+c.Different+c.Placeheld > 0 {
				t.Errorf("%s %s: %+v", b.Name, dump, *c)
			}
		}
	}
}

// TestLab replays live nodes of the lab, and reads back with ovs-ofctl that
// every flow, group, meter and TLV mapping of the live one is there.
func TestLab(t *testing.T) {
	needTools(t, "ovn-northd", "ovn-controller", "ovn-nbctl")
	if testing.Short() {
		t.Skip("the lab takes seconds for each topology")
	}
	for _, topology := range []string{"openstack", "kubernetes", "ml2-ovs"} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			lab := runLab(t, topology)
			n := replay(t, only(t, filepath.Join(lab, "sosreport-*.tar.xz")), Options{})
			f := n.compare(t, filepath.Join(lab, "packets"), filepath.Join(lab, "live"))
			f.log(t, topology)
			if got := f.percent(f.equal, f.lines); got < 95 {
				t.Errorf("%.2f %% of the lines are equal, want 95 %%", got)
			}
			if topology != "ml2-ovs" {
				complete(t, n)
			}
			n.compareTruth(t, filepath.Join(lab, "truth"))
			if topology == "openstack" {
				n.checkDSCP(t)
			}
		})
	}
}

// runLab brings a topology up, captures it and takes it down.
func runLab(t *testing.T, topology string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), topology)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if said, err := exec.CommandContext(ctx, "../scripts/lab/lab", "run", topology, out).CombinedOutput(); err != nil {
		t.Fatalf("lab run %s: %v\n%s", topology, err, said)
	}
	return out
}

// compareTruth compares what ovs-ofctl said on the live node with what it says on the replica.
func (n node) compareTruth(t *testing.T, truth string) {
	t.Helper()
	versions, err := os.ReadFile(filepath.Join(truth, "versions"))
	if err != nil {
		t.Fatal(err)
	}
	bridges := 0
	for line := range strings.Lines(string(versions)) {
		f := strings.Fields(line)
		bridge, version := f[0], f[1]
		bridges++
		for _, d := range []struct{ file, command string }{{"flows", "dump-flows"}, {"groups", "dump-groups"}, {"meters", "dump-meters"}, {"tlv", "dump-tlv-map"}} {
			want, err := os.ReadFile(filepath.Join(truth, bridge+"."+d.file))
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"-O", version, d.command, bridge}
			if d.file == "flows" {
				args = append([]string{"--no-stats"}, args...)
			}
			have := n.tool(t, "ovs-ofctl", args...)
			missing, extra := difference(entries(d.file, string(want)), entries(d.file, have))
			if len(missing)+len(extra) > 0 {
				t.Errorf("%s %s: %d of the live node are missing, %d are there that it had not; first: %.300q %.300q",
					bridge, d.file, len(missing), len(extra), first(missing), first(extra))
			}
		}
	}
	if bridges == 0 {
		t.Error("the truth names no bridge")
	}
}

// entries are a dump's, in an order of their own; timeouts don't count, since a
// replica's flows have none.
func entries(kind, text string) []string {
	var list []string
	r := strings.NewReader(text)
	var found []openflow.Entry
	switch kind {
	case "flows":
		for flow, problem := range openflow.Flows(r) {
			if problem == nil {
				list = append(list, strings.ReplaceAll(flow.Text, "dec_ttl()", "dec_ttl"))
			}
		}
	case "groups":
		found, _ = openflow.Groups(r)
	case "meters":
		found, _ = openflow.Meters(r)
	case "tlv":
		found, _ = openflow.TLVMap(r)
	}
	for _, e := range found {
		list = append(list, e.Text)
	}
	sort.Strings(list)
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
		} else {
			count[s]--
		}
	}
	for _, s := range have {
		if count[s] > 0 {
			extra = append(extra, s)
			count[s]--
		}
	}
	return missing, extra
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// checkDSCP makes sure that the topology holds what it is there for: a flow
// that ovs-ofctl prints and can't read.
func (n node) checkDSCP(t *testing.T) {
	t.Helper()
	dump, err := os.ReadFile(n.wd.DumpFile("br-int", workdir.Flows))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(dump, []byte("set_field:46/0x3f->ip_dscp")) {
		t.Error("the dump of br-int has no DSCP rule that ovs-ofctl can't read back")
	}
	if c := n.report.Bridges; len(n.report.Mended) == 0 {
		t.Errorf("nothing was mended: %v", c)
	}
}
