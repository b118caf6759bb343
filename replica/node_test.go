package replica

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/workdir"
)

func TestMain(m *testing.M) {
	os.Exit(engines.Main(m))
}

// needTools skips a test where the daemons are not installed.
func needTools(t *testing.T, programs ...string) {
	t.Helper()
	ovs.Need(t, append(programs, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl")...)
}

// node is a replica under test.
type node struct {
	wd     *workdir.Dir
	report *report.Report
}

// replay collects a report and starts a replica of it, which ends with the test.
func replay(t *testing.T, report string, opts Options) node {
	t.Helper()
	return startCollected(t, collected.Locked(t, report), opts)
}

// startCollected starts a replica of what was collected, until the test ends.
func startCollected(t *testing.T, wd *workdir.Dir, opts Options) node {
	t.Helper()
	ctx := context.Background()
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

// tool runs one of the replica's wrappers, as a script of a user would, and returns its
// output, including errors.
func (n node) tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(n.wd.Bin(), name), args...).CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return string(out)
}

// complete checks that everything was restored according to the report.
func complete(t *testing.T, n node) {
	t.Helper()
	if !n.report.Complete() {
		t.Errorf("the report is not complete: set aside %v, lost %v, steps %v", n.report.Rejected, n.report.Lost,
			n.report.Steps)
	}
}
