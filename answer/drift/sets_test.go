package drift

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// TestRemovedFlowOfALiveNodeIsNamed compares the nodes of the lab's sets: in make test, one that was altered and one
// of each set that was not. On one of them the lab has removed the flow to the port of an instance, and nothing else
// was altered.
func TestRemovedFlowOfALiveNodeIsNamed(t *testing.T) {
	need(t, "23.03")
	for name, removed := range map[string]string{"openstack": "compute2", "kubernetes-ic": ""} {
		set := sets.Recorded(t, "../../scripts/lab/lab", name)
		paths, err := set.Workdirs(t.Context(), ovs.Dir(t), sets.Native)
		if err != nil {
			t.Fatal(err)
		}
		first := set.Nodes[0]
		for _, node := range sweep.Rows(set.Nodes, func(node string) bool { return node == first || node == removed }) {
			wd, err := workdir.Find(paths[node])
			if err != nil {
				t.Fatal(err)
			}
			addDatabases(t, set, wd)
			r := check(t, wd, Options{})
			got, want := lists(r), []string(nil)
			if node == removed {
				want = []string{"missing 1 flow of port vm12 (c83e8d97-bfe0-4c64-8bbd-fc2fe98688c9), output: from logical to physical of switch grey"}
			}
			if !slices.Equal(got, want) || r.Verdict == Undetermined {
				t.Errorf("%s: %s\n%s", node, r.Summary(), strings.Join(got, "\n"))
			}
			t.Logf("%s: %s", node, r.Summary())
		}
	}
}

// addDatabases gives a node the databases that the nodes of a set share.
func addDatabases(t *testing.T, set *sets.Set, wd *workdir.Dir) {
	t.Helper()
	for kind, name := range map[workdir.Kind]string{workdir.NB: "ovnnb_db.db", workdir.SB: "ovnsb_db.db"} {
		content, err := os.ReadFile(filepath.Join(set.Dir, "databases", name))
		if err != nil {
			continue // each node has its own
		}
		if err := os.MkdirAll(filepath.Dir(wd.Database(kind)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(wd.Database(kind), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
