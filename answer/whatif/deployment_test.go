package whatif

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/release"
	"ovs-offline/snapshot"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// TestZonesAreComputedOneAtATime asks about nodes of OVN interconnection, each of which has
// databases of its own.
func TestZonesAreComputedOneAtATime(t *testing.T) {
	fidelity.NeedScratch(t)
	recorded := sets.Recorded(t, "../../scripts/lab/lab", "kubernetes-ic")
	folder := ovs.Dir(t)
	if _, err := recorded.Workdirs(t.Context(), folder, sets.Native); err != nil {
		t.Fatal(err)
	}
	all, err := snapshot.Open(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Of(t.Context(), all); !errors.Is(err, ErrNodes) ||
		!strings.Contains(err.Error(), "name nodes of one of them") {
		t.Errorf("all nodes: %v", err)
	}
	one, err := snapshot.Open(folder, []string{"worker2"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Of(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Answer(t.Context(), Question{Deployment: d, Runtime: choose.Process, Runtimes: choose.Finder("test"),
		Change: Change{{"ls-add", "new"}, {"lsp-add", "new", "port"}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Nodes) != 1 || r.Nodes[0].Node != "worker2" || r.Nodes[0].Same < 1000 {
		t.Errorf("%+v", r.Nodes)
	}
}

// TestWithoutTheReleaseNothingIsComputed asks about a node whose package and databases name
// a release that is not there.
func TestWithoutTheReleaseNothingIsComputed(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-controller", "ovn-nbctl", "xz")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	folder, err := workdir.Lock(filepath.Join(ovs.Dir(t), "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Unlock()
	_, _, err = release.Programs(t.Context(), wd, folder, versions.Pair{OVS: "3.1.0", OVN: "19.7.1"},
		release.Options{Runtime: choose.Process, Runtimes: choose.Finder("test")})
	if !errors.Is(err, release.ErrMissing) || !strings.Contains(err.Error(), "the node ran OVN 19.7.1") ||
		!strings.Contains(err.Error(), "ovs-offline image add") {
		t.Error(err)
	}
}

func TestMissingDatabasesAreNamed(t *testing.T) {
	ovs.Need(t, "xz")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	for k, want := range map[workdir.Kind]string{workdir.NB: "the OVN NB database was not collected",
		workdir.SB: "the OVN SB database was not collected", workdir.OVS: "no node has an OVS database"} {
		if err := os.Rename(wd.Database(k), wd.Database(k)+".away"); err != nil {
			t.Fatal(err)
		}
		if _, err := Of(t.Context(), snapshot.Of(wd)); !errors.Is(err, ErrUndetermined) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", k, err)
		}
		if err := os.Rename(wd.Database(k)+".away", wd.Database(k)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNewPortIsBound removes a port, and adds one for the interface that it had:
// ovn-controller binds it, northd learns that it is up, and both are part of the answer.
func TestNewPortIsBound(t *testing.T) {
	fidelity.NeedScratch(t)
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	toInterface := func(list []Difference, text func(Entry) string) bool {
		return slices.ContainsFunc(list, func(d Difference) bool {
			return slices.ContainsFunc(d.Entries, func(e Entry) bool {
				return strings.Contains(text(e), "table=65,") && strings.HasSuffix(text(e), "actions=output:3")
			})
		})
	}
	onNode(t, wd, Options{}, func(s *Session) {
		r := apply(t, s, "lsp-del", "p-vm1").Nodes[0]
		if !toInterface(r.Removed, func(e Entry) string { return e.Before }) {
			t.Errorf("without the port: %s", r.Summary())
		}
		r = apply(t, s, "lsp-add", "neutron-b2b2b2b2-0002", "p-vm1", "--", "lsp-set-addresses", "p-vm1",
			"fa:16:3e:00:00:99 192.168.10.99").Nodes[0]
		answered := slices.ContainsFunc(r.Added,
			func(d Difference) bool { return slices.Contains(d.Stages, "ls_in_arp_rsp") }) // for ports that are up
		if !toInterface(r.Added, func(e Entry) string { return e.After }) || !answered {
			t.Errorf("with a new port: %s: %+v", r.Summary(), r.Added)
		}
	})
}
