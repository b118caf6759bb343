package collect

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// clusterFiles returns the files of three members of a cluster, of a server that has not joined it, and
// what a server printed.
func clusterFiles(t *testing.T) (files []string, joining, status string) {
	t.Helper()
	c := ovs.StartCluster(t, 3, "OVN_Northbound", ovs.NBSchema)
	leader := c.Leader()
	leader.Transact(`{"op":"insert","table":"NB_Global","row":{}},{"op":"insert","table":"Logical_Switch","row":{"name":"sw1"}}`)
	status = leader.Status()
	added := c.Add()
	added.Join(leader.Address)
	for _, m := range c.Members {
		if m != added {
			c.Wait(m.Name+" has the switch", func() bool { return strings.Contains(m.Content("Logical_Switch"), "sw1") })
			m.Stop()
		}
		text, err := os.ReadFile(m.File)
		if err != nil {
			t.Fatal(err)
		}
		if m == added {
			return files, string(text), status
		}
		files = append(files, string(text))
	}
	return files, joining, status
}

// databases returns the paths of the files in the folder db of a workdir, without the UUIDs in them.
func databases(t *testing.T, wd string) (list []string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(tree(t, wd))) {
		if info, err := os.Stat(filepath.Join(wd, path)); err == nil && info.Mode().IsRegular() &&
			strings.HasPrefix(path, "db/") {
			list = append(list, path)
		}
	}
	return list
}

// TestFilesOfAllMembersAreKept collects a folder with the files of the members of a cluster: a replica
// serves one, and the others are beside it, byte by byte.
func TestFilesOfAllMembersAreKept(t *testing.T) {
	members, joining, status := clusterFiles(t)
	dir := folder(t, map[string]string{"mg/ovnkube-master-a_nbdb": members[0], "mg/ovnkube-master-b_nbdb": members[1],
		"mg/ovnkube-master-c_nbdb": members[2],
		"mg/ovnkube-master-d_nbdb": joining, "mg/status.txt": status})
	got, _, _, err := takeFiles(t, Options{}, dir)
	if err != nil || len(got) != 1 {
		t.Fatal(err, got)
	}
	for _, node := range got {
		files := databases(t, node.Path)
		if len(files) != 5 {
			t.Fatalf("files: %q", files)
		}
		kept := map[string]bool{}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(node.Path, file))
			if err != nil {
				t.Fatal(err)
			}
			kept[string(text)] = true
			if !strings.HasPrefix(file, "db/ovn_nb/members/") && file != "db/ovn_nb/ovnnb_db.db" {
				t.Errorf("path %s", file)
			}
		}
		for i, want := range append(slices.Clone(members), joining, status) {
			if !kept[want] {
				t.Errorf("file %d is not kept", i)
			}
		}
		expect.Equal(t, len(node.Collections[0].Files), 5, "files in the manifest", node.Collections[0].Files)
		wd := lock(t, node.Path)
		others, statuses, err := wd.Members(workdir.NB)
		if err != nil || len(others) != 3 || len(statuses) != 1 ||
			!strings.Contains(strings.Join(others, " "), "/ovnkube-master-d.db") {
			t.Errorf("members: %q %q %v", others, statuses, err)
		}
	}
}

// TestMembersInReportsStayWithTheirNodes collects the reports of three controllers: each has its own
// file. If one of them is chosen, it gets the files of the others.
func TestMembersInReportsStayWithTheirNodes(t *testing.T) {
	members, _, _ := clusterFiles(t)
	reports := map[string]string{}
	for i, host := range []string{"ctl-1", "ctl-2", "ctl-3"} {
		files := reportFiles(host)
		files["sosreport-"+host+"-2026-01-02-abcdefg/var/lib/ovn/ovnnb_db.db"] = members[i]
		reports[host+".tar.gz"] = packed(t, files)
	}
	dir := folder(t, reports)
	got, _, _, err := takeFiles(t, Options{}, dir)
	if err != nil || len(got) != 3 {
		t.Fatal(err, got)
	}
	for host, node := range got {
		if files := databases(t, node.Path); !slices.Equal(files, []string{"db/ovn_nb/ovnnb_db.db", "db/ovs/conf.db"}) {
			t.Errorf("%s: %q", host, files)
		}
	}
	got, _, _, err = takeFiles(t, Options{Nodes: []string{"ctl-2"}}, dir)
	if err != nil || len(got) != 1 {
		t.Fatal(err, got)
	}
	files := databases(t, got["ctl-2"].Path)
	if want := []string{"db/ovn_nb/members/ctl-1.db", "db/ovn_nb/members/ctl-3.db", "db/ovn_nb/ovnnb_db.db",
		"db/ovs/conf.db"}; !slices.Equal(files, want) {
		t.Errorf("with one node: %q", files)
	}
}
