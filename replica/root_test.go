package replica

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica/choose"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/workdir"
)

// TestReplicasOfDifferentImages runs one replica with this host's tools and two with
// images, side by side. Each keeps its own tools.
func TestReplicasOfDifferentImages(t *testing.T) {
	needTools(t)
	ctx := context.Background()
	image, _ := engines.HostImage(t)
	other := filepath.Join(t.TempDir(), "other")
	if out, err := exec.Command("cp", "-a", image.Root, other).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var all []started
	for _, root := range []string{"", image.Root, other} {
		if root != "" {
			if err := os.WriteFile(filepath.Join(root, "which"), []byte(root), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		wd := collected.Locked(t, compute(t))
		rt := choose.For(wd, "test").Local(root)
		t.Cleanup(func() {
			if err := Stop(ctx, wd, rt); err != nil {
				t.Error(err)
			}
		})
		report, err := Start(ctx, wd, rt, Options{})
		if err != nil {
			t.Fatal(err)
		}
		complete(t, node{wd: wd, report: report})
		all = append(all, started{wd, rt, report})
	}
	for _, s := range all {
		root := s.rt.Root()
		if state, err := ReadState(s.wd); err != nil || state.Root != root {
			t.Errorf("replica.json has the root %q, not %q (%v)", state.Root, root, err)
		}
		expect.Equal(t, process.RunningRoot(s.wd.VarRuns()), root, "the daemons run in")
		// Another command knows the workdir only.
		rt, err := choose.For(s.wd, "test").Named(ctx, choose.Process)
		if err != nil {
			t.Fatal(err)
		}
		if root != "" {
			if out, err := rt.Tool(ctx, s.wd.VarRun(workdir.OVS), nil, "cat", "/which"); err != nil || string(out) != root {
				t.Errorf("tools run in %q (%v), not in %s", out, err, root)
			}
		}
		if out := s.trace(t, "br-int", "in_port=3,icmp"); !strings.Contains(out, "Datapath actions: ") {
			t.Errorf("a trace answers %s", out)
		}
		if err := Stop(ctx, s.wd, rt); err != nil {
			t.Fatal(err)
		}
		if running := process.RunningRoot(s.wd.VarRuns()); running != "" {
			t.Errorf("after stop the daemons run in %q", running)
		}
	}
}

// TestStopWithoutTheImage removes the image of a running replica: the daemons run on,
// and stop works.
func TestStopWithoutTheImage(t *testing.T) {
	needTools(t)
	ctx := context.Background()
	image, _ := engines.HostImage(t)
	wd := collected.Locked(t, compute(t))
	before := tree(t, wd.Path())
	runtimes := choose.For(wd, "test")
	if _, err := Start(ctx, wd, runtimes.Local(image.Root), Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(image.Root); err != nil {
		t.Fatal(err)
	}
	rt, err := runtimes.Named(ctx, choose.Process)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Tool(ctx, wd.VarRun(workdir.OVS), nil, "ovs-vsctl", "show"); err == nil ||
		!strings.Contains(err.Error(), image.Root) {
		t.Errorf("a tool of the removed image: %v", err)
	}
	if err := Stop(ctx, wd, runtimes.All(ctx)...); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, wd.Path()); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("stop left %v, before start there was %v", after, before)
	}
}
