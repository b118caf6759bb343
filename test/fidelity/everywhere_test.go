package fidelity

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/cmd"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/test/engines"
)

// program is the name by which this test program is ovs-offline, as the tools'
// wrappers run it.
const program = "ovs-offline"

func beProgram() {
	if filepath.Base(os.Args[0]) == program {
		os.Exit(cmd.Main(os.Args[1:], cmd.System()))
	}
}

// TestCaptureEverywhere replays a node in containers: its traces are the live
// node's, as they are on local processes.
func TestCaptureEverywhere(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, e engines.Runtime) {
		needTools(t)
		r, err := Capture(context.Background(), "../../testdata/captures/ovn-openstack-compute", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		raw, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		self := filepath.Join(dir, program)
		if err := os.WriteFile(self, raw, 0o755); err != nil {
			t.Fatal(err)
		}
		wd, err := workdir.Lock(filepath.Join(dir, "wd"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := ReplayIn(context.Background(), r.Report, wd, e.For(t, wd), replica.Options{Exec: []string{self, "--workdir=" + wd.Path(), "exec", "--"}})
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
			t.Errorf("of %d packets the results of %d are the live node's, and the whole text of %d", f.Packets, f.Results, f.Whole)
		}
		checkComplete(t, n)
	})
}
