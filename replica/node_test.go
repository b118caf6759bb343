package replica

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/collect/sos"
	"ovs-offline/internal/trace"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/restore"
	"ovs-offline/replica/runtime/process"
)

func TestMain(m *testing.M) {
	process.Main()
	os.Exit(m.Run())
}

// needTools skips a test where the daemons are not installed.
func needTools(t *testing.T, programs ...string) {
	t.Helper()
	if err := process.Missing(append(programs, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl")...); err != nil {
		t.Skip(err)
	}
}

// node is a replica under test and where its live traces are.
type node struct {
	wd     *workdir.Dir
	report *restore.Report
}

// replay collects a report and starts a replica of it, which ends with the test.
func replay(t *testing.T, report string, opts Options) node {
	t.Helper()
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	ctx := context.Background()
	if _, err := sos.Collect(ctx, wd, report, sos.Half{OVS: true, OVN: true}, collect.Options{}); err != nil {
		t.Fatal(err)
	}
	rt := process.New(process.Options{})
	t.Cleanup(func() {
		if err := Stop(ctx, wd, rt); err != nil {
			t.Error(err)
		}
	})
	r, err := Start(ctx, wd, rt, opts)
	if err != nil {
		t.Fatal(err)
	}
	return node{wd: wd, report: r}
}

// tool runs one of the replica's wrappers, as a person's script would, and
// returns what it printed, errors included.
func (n node) tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(n.wd.Bin(), name), args...).CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return string(out)
}

// figures sums up comparisons.
type figures struct {
	packets, whole, results, actions, equal, lines int
	differences                                    []string
}

func (f figures) percent(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// compare runs the recorded packets on the replica.
func (n node) compare(t *testing.T, packets, live string) figures {
	t.Helper()
	list := readPackets(t, packets)
	names, err := filepath.Glob(filepath.Join(live, "[0-9]*"))
	if err != nil || len(names) != len(list) {
		t.Fatalf("%d packets, %d live traces (%v)", len(list), len(names), err)
	}
	var f figures
	for i, p := range list {
		want, err := os.ReadFile(names[i])
		if err != nil {
			t.Fatal(err)
		}
		c := trace.Compare(string(want), n.tool(t, "ovs-appctl", p.Args()...))
		f.packets++
		f.equal += c.Equal
		f.lines += c.Lines
		if c.Whole {
			f.whole++
		} else {
			f.differences = append(f.differences, filepath.Base(names[i])+": "+p.Bridge+" "+p.Flow+" "+strings.Join(p.Options, " ")+"\n"+c.First)
		}
		if c.Results {
			f.results++
		}
		if c.Actions {
			f.actions++
		}
	}
	if f.packets == 0 {
		t.Fatal("no packets")
	}
	return f
}

func readPackets(t *testing.T, path string) []trace.Packet {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := trace.ReadPackets(f)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (f figures) log(t *testing.T, name string) {
	t.Helper()
	t.Logf("%-24s %3d packets: whole text %5.1f %%, result lines %5.1f %%, datapath actions %5.1f %%, lines %6.2f %%", name, f.packets,
		f.percent(f.whole, f.packets), f.percent(f.results, f.packets), f.percent(f.actions, f.packets), f.percent(f.equal, f.lines))
	for _, d := range f.differences {
		t.Logf("differs: %.600s", d)
	}
}

// only returns the one file that a pattern matches.
func only(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v %v", pattern, found, err)
	}
	return found[0]
}
