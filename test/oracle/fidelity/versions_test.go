package fidelity

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ovs-offline/test/check/sweep"
)

// TestNodesOfEachVersion records nodes on each release, and replays them with the release's
// own programs, with those of the releases before and after it, and with this host's. Its
// own programs give the node's answers; where others do not, the report names the loss. Outside of a sweep, it
// records one topology on each release.
func TestNodesOfEachVersion(t *testing.T) {
	all := releases(t)
	m := &matrix{releases: all, cells: map[[3]string]cell{}, versions: map[string]string{}}
	t.Cleanup(func() { t.Log(m) })
	for at, node := range all {
		for _, topology := range sweep.Rows(node.topologies, func(name string) bool { return name == node.kept }) {
			t.Run(node.name+"/"+topology, func(t *testing.T) {
				t.Parallel()
				r := node.record(t, topology)
				m.name(node, r)
				for other, runs := range all {
					if !sweep.Whole() && node.root == "" && runs.root == "" {
						continue // TestLabNodesReplayLikeLiveNode does that
					}
					isNear := other >= at-1 && other <= at+1 || runs.root == ""
					printsNames := len(runs.topologies) > 1
					if isNear && (printsNames || r.Numbers) {
						t.Run("on "+runs.name, func(t *testing.T) { m.add(node, runs, topology, compareReleases(t, node, runs, r)) })
					}
				}
			})
		}
	}
}

// compareReleases replays a recording of one release with the programs of another.
func compareReleases(t *testing.T, node, runs release, r Recording) cell {
	t.Helper()
	n := runs.replay(t, r)
	f, err := n.CompareRecording(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-22s %s", r.Name, Header)
	t.Logf("%-22s %s", r.Name+" "+r.OVS+" on "+n.Report.Running.OVS, f)
	for _, d := range f.Differences[:min(3, len(f.Differences))] {
		t.Logf("differs: %.800s", d)
	}
	l := compareLogical(t, n, r)
	if node.name == runs.name {
		checkOwnVersion(t, n, r, f)
		if l.whole != l.packets {
			t.Errorf("the whole text of ovn-trace is the node's for %d of %d packets", l.whole, l.packets)
		}
	} else {
		checkOtherVersion(t, n, r)
		if l.outputs < l.packets && n.Report.TraceWarning("the database") == "" {
			t.Errorf("ovn-trace has other outputs for %d of %d packets, and the report has no warning of it",
				l.packets-l.outputs, l.packets)
		}
	}
	return cell{f, l}
}

// checkOwnVersion checks a replica that runs the node's own version.
func checkOwnVersion(t *testing.T, n *Replica, r Recording, f Figures) {
	t.Helper()
	if f.Actions+f.Balanced < f.Packets || Percent(f.Results+f.Balanced, f.Packets) < 99 {
		t.Errorf("of %d packets, %d have the node's datapath actions, and %d its result lines", f.Packets, f.Actions,
			f.Results)
	}
	checkComplete(t, n)
	checkTruth(t, n, filepath.Join(filepath.Dir(r.Packets), "truth"))
}

// checkOtherVersion checks that the report of a replica names the versions, and does not
// say that all is restored where an entry differs from the node's.
func checkOtherVersion(t *testing.T, n *Replica, r Recording) {
	t.Helper()
	named := "recorded with Open vSwitch " + r.OVS + ", running " + n.Report.Running.OVS
	if !strings.Contains(strings.Join(n.Report.Remarks, "\n"), named) {
		t.Errorf("no remark holds %q: %q", named, n.Report.Remarks)
	}
	differ, err := Truth(filepath.Join(filepath.Dir(r.Packets), "truth"), func(args ...string) (string, error) {
		return n.Tool(t.Context(), "ovs-ofctl", args...)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(differ) > 0 && n.Report.Complete() {
		t.Errorf("the report says that all is restored, but: %q", differ)
	}
	for _, d := range differ {
		t.Logf("differs: %.300s", d)
	}
	for _, item := range n.Report.Rejected {
		t.Logf("rejected: %s: %.300s", item.File, item.Reason)
	}
}

// logical holds how alike the answers of ovn-trace are.
type logical struct {
	packets, whole, outputs int // number of packets, and of those with the same text, and with the same outputs
}

// compareLogical traces the packets that the node's own ovn-trace traced.
func compareLogical(t *testing.T, n *Replica, r Recording) logical {
	t.Helper()
	var l logical
	dir := filepath.Dir(r.Packets)
	list, err := os.ReadFile(filepath.Join(dir, "logical-packets"))
	if err != nil {
		return l // a node without OVN
	}
	for line := range strings.Lines(string(list)) {
		l.packets++
		datapath, flow, _ := strings.Cut(strings.TrimSpace(line), "|")
		want, err := os.ReadFile(filepath.Join(dir, "logical", fmt.Sprintf("%03d", l.packets)))
		if err != nil {
			t.Fatal(err)
		}
		have, err := n.Tool(t.Context(), "ovn-trace", datapath, flow)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(outputs(string(want)), outputs(have)) {
			l.outputs++
		}
		if have == string(want) {
			l.whole++
		} else if r.OVN == n.Report.Running.OVN {
			t.Logf("%s\nnode:\n%s\nreplica:\n%s", flow, want, have)
		}
	}
	t.Logf("%-22s ovn-trace: the same outputs for %d of %d packets (%.1f %%), the same text for %d",
		r.Name+" "+r.OVN+" on "+n.Report.Running.OVN,
		l.outputs, l.packets, Percent(l.outputs, l.packets), l.whole)
	return l
}

// outputs returns the lines of ovn-trace's output that show where a packet leaves.
func outputs(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, "/* output to ") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// cell holds how alike a node and its replica are.
type cell struct {
	Figures
	logical
}

// String returns the percentages of packets with equal result lines, equal datapath actions,
// and equal outputs of ovn-trace. The choice of a balancing bond does not count.
func (c cell) String() string {
	text := fmt.Sprintf("%.0f %%, %.0f %%", Percent(c.Results+c.Balanced, c.Packets),
		Percent(c.Actions+c.Balanced, c.Packets))
	if c.packets > 0 {
		text += fmt.Sprintf(", %.0f %%", Percent(c.outputs, c.packets))
	}
	return text
}

// matrix holds the cells by topology, node and the release that runs the replica.
type matrix struct {
	sync.Mutex
	releases []release
	versions map[string]string
	cells    map[[3]string]cell
}

// name records the versions of a release, which a node shows.
func (m *matrix) name(node release, r Recording) {
	m.Lock()
	defer m.Unlock()
	if r.OVN != "" || m.versions[node.name] == "" {
		m.versions[node.name] = strings.TrimSuffix(r.OVS+" / "+r.OVN, " / ")
	}
}

func (m *matrix) add(node, runs release, topology string, c cell) {
	m.Lock()
	defer m.Unlock()
	m.cells[[3]string{topology, node.name, runs.name}] = c
}

// String returns the matrix in the form of docs/fidelity.md.
func (m *matrix) String() string {
	m.Lock()
	defer m.Unlock()
	var b strings.Builder
	b.WriteString("\n| node | recorded with |")
	for _, runs := range m.releases {
		fmt.Fprintf(&b, " on %s |", m.versions[runs.name])
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(m.releases)) + "\n")
	for _, topology := range []string{"openstack", "kubernetes", "ml2-ovs"} {
		for _, node := range m.releases {
			row := fmt.Sprintf("| %s | %s |", topology, m.versions[node.name])
			cells := 0
			for _, runs := range m.releases {
				text := "-"
				if c, ok := m.cells[[3]string{topology, node.name, runs.name}]; ok {
					text = c.String()
					cells++
				}
				row += " " + text + " |"
			}
			if cells > 0 {
				b.WriteString(row + "\n")
			}
		}
	}
	return b.String()
}

// TestOldOVNIsNeverSilentlyWrong replays a node of each newer release by the command line
// with this host's older OVN only: start ends with 3 and names the stages whose logical
// flows ovn-trace leaves out, and ovn-trace warns each time.
func TestOldOVNIsNeverSilentlyWrong(t *testing.T) {
	all := releases(t)
	for _, node := range all[slices.IndexFunc(all, func(r release) bool { return r.root == "" })+1:] {
		t.Run(node.name, func(t *testing.T) {
			t.Parallel()
			r := node.record(t, "kubernetes")
			dir := filepath.Join(t.TempDir(), "wd")
			run := func(argv ...string) (string, int) { return runProgram(t, dir, argv...) }
			if out, code := run("collect-sos", r.Report); code != 0 {
				t.Fatalf("collect-sos ended with %d: %s", code, out)
			}
			out, code := run("start", "--runtime=process")
			t.Cleanup(func() { run("stop") })
			t.Logf("start ended with %d:\n%s", code, out)
			if code != 3 || !strings.Contains(out, "logical flows that ovn-trace") || !strings.Contains(out, "lr_in_") {
				t.Error("want 3, and the stages")
			}
			list, err := os.ReadFile(filepath.Join(filepath.Dir(r.Packets), "logical-packets"))
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(list), "\n")
			datapath, flow, _ := strings.Cut(first, "|")
			if out, _ := run("exec", "ovn-trace", datapath, flow); !strings.Contains(out,
				"an answer of ovn-trace may be wrong") {
				t.Errorf("ovn-trace does not warn: %s", out)
			}
		})
	}
}

// runProgram runs ovs-offline on a workdir, without images of the user, and returns all that
// it prints, and its exit code.
func runProgram(t *testing.T, dir string, argv ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(asProgram(t), append([]string{"--workdir=" + dir}, argv...)...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+filepath.Join(dir, "no-images"), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
