package compare_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ovs-offline/answer/compare"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
)

// TestUpgradeIsComparedByMeaning compares one topology of the lab on two releases of OVN. All
// rows, numbers and tables are others; the network is the same.
func TestUpgradeIsComparedByMeaning(t *testing.T) {
	roots := os.Getenv("OVS_OFFLINE_ROOTS")
	if roots == "" {
		t.Skip("OVS_OFFLINE_ROOTS names no folder with root file systems of other releases: make test-versions makes them")
	}
	ovs.Need(t, "ovn-northd", "ovn-controller", "ip", "xz", "unshare")
	sides := []*compare.Side{openRun(t), openRun(t, "--root", filepath.Join(roots, "trixie"))}
	c, err := compare.Compare(t.Context(), sides[0], sides[1])
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, f := range c.Findings {
		kinds[f.Kind]++
	}
	delete(kinds, "learned MAC address") // two runs of the lab need not learn the same
	// Each northbound database makes up MAC addresses of its own, which are settings of OVN.
	if len(kinds) != 2 || kinds["version"] != 2 || kinds["OVN settings"] != 1 || len(c.Missing) > 0 {
		t.Errorf("differences by kind: %v", kinds)
		show(t, c)
	}
	if f := c.Findings[0]; f.Name != "version of OVN" || f.Flows == nil || f.Flows.Added == 0 {
		t.Errorf("%s: flows %v", f.Line(), f.Flows)
	}
}

// openRun runs a topology of the lab, with the daemons of a root file system if arguments
// name one, and opens its report.
func openRun(t *testing.T, arguments ...string) *compare.Side {
	t.Helper()
	out := ovs.Dir(t)
	lab := exec.CommandContext(t.Context(), "../../scripts/lab/lab", append(arguments, "run", "openstack", out)...)
	if text, err := lab.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	report := files.Only(t, filepath.Join(out, "sosreport-*.tar.xz"))
	side, err := compare.Open(t.Context(), report, compare.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(side.Close)
	return side
}
