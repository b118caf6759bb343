package drift

import (
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/replica/image"
	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
)

// TestNodesOfReleasesHaveNoDrift compares live nodes of the lab, of which nothing was altered,
// on OVN of this host and of the root file systems that scripts/roots makes. Some of the
// lab's services have a backend in common, and session affinity: which of their flows a node
// has, OVN leaves open.
func TestNodesOfReleasesHaveNoDrift(t *testing.T) {
	need(t, "23.03")
	roots := os.Getenv("OVS_OFFLINE_ROOTS")
	if roots == "" {
		t.Skip("OVS_OFFLINE_ROOTS names no folder with root file systems of other releases: make test-versions makes them")
	}
	t.Setenv("XDG_DATA_HOME", ovs.Dir(t))
	for _, name := range sweep.Last([]string{"", "trixie", "sid"}) {
		root := ""
		if name != "" {
			root = filepath.Join(roots, name)
			addImage(t, root)
		}
		for _, topology := range sweep.Last([]string{"openstack", "kubernetes"}) {
			t.Run(name+topology, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), topology)
				if _, err := fidelity.LabIn(t.Context(), root, "../../scripts/lab/lab", topology, dir); err != nil {
					t.Fatal(err)
				}
				report := files.Only(t, filepath.Join(dir, "sosreport-*.tar.xz"))
				r := check(t, collected.Report(t, report), Options{Northd: true})
				if r.Verdict != None || r.Compared.Flows < 2000 || r.Same != r.Compared.Flows+r.Compared.Groups+r.Compared.Meters ||
					r.Northd.Same != r.Northd.Compared {
					t.Errorf("%s %v %+v", r.Summary(), lists(r), r.Northd)
				}
				t.Logf("%s; %s", r.Summary(), r.Northd.Summary())
				for _, d := range r.Either {
					t.Logf("either is correct: %s", d.String())
				}
			})
		}
	}
}

func addImage(t *testing.T, root string) {
	t.Helper()
	images, err := image.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Add(t.Context(), root, image.AddOptions{}); err != nil {
		t.Fatal(err)
	}
}
