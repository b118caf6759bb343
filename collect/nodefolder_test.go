package collect

import (
	"maps"
	"path"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestFoldersOfNodesAreNodes checks that each of two folders with the same outputs is a node:
// the outputs of one were dropped without a word. The node has the name that its OVS database
// has, or the name of the node of its pod, or else the folder's.
func TestFoldersOfNodesAreNodes(t *testing.T) {
	pods := "mg/namespaces/openshift-ovn-kubernetes/pods/"
	for name, c := range map[string]struct {
		nodes map[string]string // the folder of each node's outputs
		files map[string]string // further files
	}{
		"folders":              {map[string]string{"a": "case/a", "b": "case/b"}, nil},
		"folders with folders": {map[string]string{"a": "case/a/dumps-of-a", "b": "case/b/dumps-of-b"}, nil},
		"with databases": {map[string]string{"n1": "case/a", "n2": "case/b"},
			map[string]string{"case/a/conf.db": conf("n1"), "case/b/conf.db": conf("n2")}},
		"with one database": {map[string]string{"a": "case/a", "n2": "case/b"},
			map[string]string{"case/b/conf.db": conf("n2")}},
		"of pods": {map[string]string{"n1": "mg/network_logs/ovs/pod-1", "n2": "mg/network_logs/ovs/pod-2"},
			map[string]string{"mg/version": "openshift/must-gather\n4.20.1\n", pods + "pod-1/pod-1.yaml": pod("pod-1", "n1"),
				pods + "pod-2/pod-2.yaml": pod("pod-2", "n2")}},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]string{}
			maps.Copy(all, c.files)
			for host, folder := range c.nodes {
				all[folder+"/ovs-ofctl_-O_OpenFlow15_dump-flows_br-int"] = flowText
				all[folder+"/ovs-appctl_dpif.show"] = "system@ovs-system: hit:1 missed:0\n" + host
			}
			got, found, _, err := takeFiles(t, Options{}, folder(t, all))
			if err != nil || len(found.Lost) > 0 || len(got) != 2 {
				t.Fatalf("%v %+v %v", got, found, err)
			}
			for host, folder := range c.nodes {
				var outputs []string
				for _, collection := range got[host].Collections {
					for _, file := range collection.Files {
						if strings.HasPrefix(path.Base(file.Origin), "ovs-") {
							outputs = append(outputs, path.Base(path.Dir(file.Origin)))
						}
					}
				}
				expect.Equal(t, outputs, []string{path.Base(folder), path.Base(folder)}, host, got[host])
			}
		})
	}
}

// TestFoldersBelowADatabaseAreOfItsNode checks that a node keeps its dumps, if somebody put dumps
// of two times into folders beside its database, and that it is said that one of two is not used.
func TestFoldersBelowADatabaseAreOfItsNode(t *testing.T) {
	got, found, _, err := takeFiles(t, Options{}, folder(t, map[string]string{"case/conf.db": conf("n1"),
		"case/before/ovs-ofctl_dump-flows_br-int": flowText, "case/after/ovs-ofctl_dump-flows_br-int": flowText}))
	if err != nil || len(got) != 1 {
		t.Fatalf("%v %+v %v", got, found, err)
	}
	collection := got["n1"].Collections[0]
	expect.Equal(t, collection.Bridges, []string{"br-int"})
	if remarks := strings.Join(collection.Remarks, "\n"); !strings.Contains(remarks,
		"before/ovs-ofctl_dump-flows_br-int are output of the same command: only one is used") {
		t.Errorf("remarks %q", remarks)
	}
}
