package fidelity

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/internal/command"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

const lab = "../../../scripts/lab/lab"

// recordings is the folder of the nodes that these tests record, where no run of all tests has one.
var recordings string

func TestMain(m *testing.M) {
	runAsProgram()
	dir, err := os.MkdirTemp("", "recordings-")
	if err != nil {
		panic(err)
	}
	recordings = dir
	code := engines.Main(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// needTools skips a test where programs are not installed.
func needTools(t *testing.T, programs ...string) {
	t.Helper()
	ovs.Need(t, append(programs, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-nbctl")...)
}

// run starts a replica of a recording. It ends with the test.
func run(t *testing.T, r Recording, opts replica.Options) *Replica {
	t.Helper()
	n, err := Replay(context.Background(), r.Report, filepath.Join(t.TempDir(), "wd"), opts)
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

func compare(t *testing.T, n *Replica, r Recording) Figures {
	t.Helper()
	f, err := n.Compare(context.Background(), r.Packets, r.Live)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-22s %s", "", Header)
	t.Logf("%-22s %s", r.Name, f)
	for _, d := range f.Differences {
		t.Logf("differs: %.800s", d)
	}
	return f
}

// TestCapturesReplayLikeLiveNode replays captures of nodes with a kernel datapath.
func TestCapturesReplayLikeLiveNode(t *testing.T) {
	needTools(t)
	for _, name := range []string{"ovn-openstack-compute", "ovn-kubernetes-worker"} {
		t.Run(name, func(t *testing.T) {
			r, err := Capture(context.Background(), "../../../testdata/captures/"+name, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			n := run(t, r, replica.Options{})
			f := compare(t, n, r)
			if f.Results != f.Packets {
				t.Errorf("the result lines of %d packets differ", f.Packets-f.Results)
			}
			if Percent(f.Whole, f.Packets) < 98 {
				t.Errorf("whole text is equal on %d of %d packets, want 98 %%", f.Whole, f.Packets)
			}
			checkComplete(t, n)
		})
	}
}

// checkComplete checks that the report lists everything as restored.
func checkComplete(t *testing.T, n *Replica) {
	t.Helper()
	if !n.Report.Complete() {
		t.Errorf("the report is not complete: rejected %v, lost %v, steps %v", n.Report.Rejected, n.Report.Lost,
			n.Report.Steps)
	}
	for _, b := range n.Report.Bridges {
		for dump, c := range b.Counts {
			if c.Restored != c.Collected || c.Rejected+c.Different+c.Placeholders > 0 {
				t.Errorf("%s %s: %+v", b.Name, dump, *c)
			}
		}
	}
}

// recordLab returns the recording of a topology.
func recordLab(t *testing.T, topology string) Recording {
	t.Helper()
	needTools(t, "ovn-northd", "ovn-controller", "ip")
	if !process.New(process.Options{}).HasLoopback(t.Context()) {
		t.Skip("the collectors of a live node can only be restored where daemons have a network namespace of their own")
	}
	r, err := Recorded(sets.Node(t, lab, topology, recordings))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLabNodesReplayLikeLiveNode replays live nodes of the lab. It compares the
// traces, and every flow, group, meter and TLV mapping, with the live node's. A node of
// Kubernetes is left to the sweep: TestCapturesReplayLikeLiveNode has one, and the flows, groups and mappings of
// OVN's are those of openstack.
func TestLabNodesReplayLikeLiveNode(t *testing.T) {
	for _, topology := range sweep.Rows([]string{"openstack", "kubernetes", "ml2-ovs"},
		func(name string) bool { return name != "kubernetes" }) {
		t.Run(topology, func(t *testing.T) {
			t.Parallel() // recording a node is mostly waiting
			r := recordLab(t, topology)
			n := run(t, r, replica.Options{})
			f := compare(t, n, r)
			if f.Results+f.Balanced != f.Packets {
				t.Errorf("the result lines of %d packets differ in more than the member that a balancing bond chose",
					f.Packets-f.Results-f.Balanced)
			}
			if got := Percent(f.Equal, f.Lines); got < 95 {
				t.Errorf("%.2f %% of the lines are equal, want 95 %%", got)
			}
			checkComplete(t, n)
			checkTruth(t, n, filepath.Join(filepath.Dir(r.Packets), "truth"))
			if topology == "openstack" {
				checkDSCP(t, n)
			}
		})
	}
}

// TestOtherVersionsReplayCompletely replays nodes that ran another version of Open
// vSwitch than the installed one. Everything is restored, and the report names both
// versions.
func TestOtherVersionsReplayCompletely(t *testing.T) {
	needTools(t)
	// ofproto/trace of 2.15 has no port names, so its traces cannot be compared.
	for version, find := range map[string]func(context.Context, string, string) (Recording, error){"3.5.0": Capture,
		"2.15.0": untraced} {
		t.Run(version, func(t *testing.T) {
			folder, dir := "../../../testdata/versions/ovs-"+version, t.TempDir()
			r, err := find(t.Context(), folder, dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := command.Run(t.Context(),
				command.Command{Argv: []string{"tar", "-C", dir, "-xf", filepath.Join(folder, "truth.tar.xz")}}); err != nil {
				t.Fatal(err)
			}
			n := run(t, r, replica.Options{})
			expect.Equal(t, n.Report.Recorded.OVS, version, "the report names the recorded version")
			if n.Report.Running.OVS == version {
				t.Skip("this version is the installed one")
			}
			named := "recorded with Open vSwitch " + version + ", running " + n.Report.Running.OVS
			if !strings.Contains(strings.Join(n.Report.Remarks, "\n"), named) {
				t.Errorf("no remark holds %q: %q", named, n.Report.Remarks)
			}
			checkComplete(t, n)
			checkTruth(t, n, filepath.Join(dir, "truth"))
			if r.Live == "" {
				return
			}
			if f := compare(t, n, r); Percent(f.Actions, f.Packets) < 98 {
				t.Errorf("the datapath actions of %d of %d packets are equal", f.Actions, f.Packets)
			}
		})
	}
}

// untraced returns a recording without traces.
func untraced(_ context.Context, folder, _ string) (Recording, error) {
	report, err := only(filepath.Join(folder, "sosreport-*.tar.xz"))
	return Recording{Report: report}, err
}

// checkTruth compares the dumps of ovs-ofctl on the live node with those on the replica.
func checkTruth(t *testing.T, n *Replica, truth string) {
	t.Helper()
	differ, err := Truth(truth, func(args ...string) (string,
		error) {
		return n.Tool(context.Background(), "ovs-ofctl", args...)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differ {
		t.Error(d)
	}
}

// checkDSCP checks that the topology holds a flow that ovs-ofctl prints in a form
// that it cannot read.
func checkDSCP(t *testing.T, n *Replica) {
	t.Helper()
	dump, err := os.ReadFile(n.Workdir.DumpFile("br-int", workdir.Flows))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(dump, []byte("set_field:46/0x3f->ip_dscp")) {
		t.Error("the dump of br-int has no DSCP rule that ovs-ofctl cannot read")
	}
	if len(n.Report.Rewritten) == 0 {
		t.Error("the report lists no rewritten flow")
	}
}
