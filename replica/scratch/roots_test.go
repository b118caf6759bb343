package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// TestOtherReleasesComputeFlows runs the programs of other releases, in the root file
// systems of scripts/roots, on the capture of a node: these install other flows than the
// node had, but an ovn-controller and an ovn-northd of each release start and report.
func TestOtherReleasesComputeFlows(t *testing.T) {
	fidelity.NeedScratch(t)
	roots := os.Getenv("OVS_OFFLINE_ROOTS")
	if roots == "" {
		t.Skip("OVS_OFFLINE_ROOTS names no folder with root file systems of other releases: make test-versions makes them")
	}
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	for _, release := range sweep.Last([]string{"trixie", "sid"}) {
		for _, northd := range []bool{false, true} {
			root := filepath.Join(roots, release)
			_, controller := process.FindIn(root, "ovn-controller")
			_, daemon := process.FindIn(root, "ovn-northd")
			if err := errors.Join(controller, daemon); err != nil {
				t.Log(err)
				continue
			}
			o := options(t)
			o.Runtime = process.New(process.Options{Root: root, Folders: o.Dir.RuntimeFolders()})
			o.NB, o.SB, o.Northd, o.Nodes = wd.Database(workdir.NB), wd.Database(workdir.SB), northd,
				[]Recorded{nodeOf(wd, "node")}
			s := start(t, o)
			d, err := s.Dump(t.Context(), "node", openflow.OpenFlow15)
			if err != nil {
				t.Fatal(err)
			}
			n := strings.Count(d.Flows, "actions=")
			t.Logf("%s, northd %v: %d flows", release, northd, n)
			if n < 800 {
				t.Errorf("%s, northd %v: %d flows", release, northd, n)
			}
		}
	}
}
