package fidelity

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/cmd"
	"ovs-offline/replica"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/workdir"
)

// program is the name under which this test program behaves as ovs-offline. The
// wrappers of the tools run it by that name.
const program = "ovs-offline"

func runAsProgram() {
	if filepath.Base(os.Args[0]) == program {
		os.Exit(cmd.Main(os.Args[1:], cmd.System()))
	}
}

// execPrefix returns replica.Options.Exec for a workdir.
func execPrefix(t *testing.T, wd *workdir.Dir) []string {
	t.Helper()
	return []string{asProgram(t), "--workdir=" + wd.Path(), "exec", "--"}
}

// asProgram returns the path of this test program under the name of ovs-offline.
func asProgram(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(t.TempDir(), program)
	if err := os.WriteFile(self, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	return self
}

// TestCaptureInContainers replays a node on each container engine and compares the
// traces with the live ones.
func TestCaptureInContainers(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, e engines.Runtime) {
		if e.Label == engines.PodmanRootless {
			sweep.Only(t, "the same test on docker, in which the same image runs,")
		}
		needTools(t)
		r, err := Capture(context.Background(), "../../../testdata/captures/ovn-openstack-compute", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := ReplayIn(context.Background(), r.Report, wd, e.For(t, wd), replica.Options{Exec: execPrefix(t, wd)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		f := compare(t, n, r)
		if f.Results != f.Packets || Percent(f.Whole, f.Packets) < 98 {
			t.Errorf("of %d packets, %d have the result lines of the live node, and %d its whole text", f.Packets, f.Results,
				f.Whole)
		}
		checkComplete(t, n)
	})
}
