package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/answer/cluster"
	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
)

// TestFilesOfWorkdirs reads the members of a set: the database of one workdir, the same one in
// another, and a member and an output beside them.
func TestFilesOfWorkdirs(t *testing.T) {
	folder := t.TempDir()
	status := "4e01\nName: OVN_Northbound\nCluster ID: not yet known\n"
	contents := map[string]string{"main": "main", "ctl-2": "ctl-2", "status": status + status}
	install := func(node string, files map[string]string, collection workdir.Collection) *workdir.Dir {
		wd, err := workdir.Lock(filepath.Join(folder, node))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(wd.Unlock)
		staging, err := wd.Stage()
		if err == nil {
			err = staging.Replace(workdir.NB, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		paths := map[string]string{"main": staging.Database(workdir.NB), "ctl-2": staging.Member(workdir.NB, "ctl-2"),
			"status": staging.MemberStatus(workdir.NB, "ctl-2")}
		for name, origin := range files {
			file, err := staging.Copy(t.Context(), strings.NewReader(contents[name]), paths[name])
			if err != nil {
				t.Fatal(err)
			}
			file.Origin = origin
			collection.Files = append(collection.Files, file)
		}
		if err := staging.Install(collection); err != nil {
			t.Fatal(err)
		}
		return wd
	}
	first := install("ctl-1", map[string]string{"main": "var/lib/ovn/ovnnb_db.db",
		"ctl-2": "sosreport-ctl-2.tar.xz: etc/ovn/ovnnb_db.db", "status": "x"},
		workdir.Collection{Kind: workdir.NB, Host: "ctl-1"})
	second := install("cmp-1", map[string]string{"main": "sosreport-ctl-1.tar.xz: var/lib/ovn/ovnnb_db.db"},
		workdir.Collection{Kind: workdir.NB, Host: "cmp-1"})
	found, err := cluster.Files(first, second)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, m.Name+" "+m.Place+" "+m.Status)
	}
	expect.Equal(t, got, []string{"ctl-1:/var/lib/ovn/ovnnb_db.db /var/lib/ovn/ovnnb_db.db ",
		"ctl-2:/etc/ovn/ovnnb_db.db /etc/ovn/ovnnb_db.db ", "db/ovn_nb/members/ctl-2.status  " + status,
		"db/ovn_nb/members/ctl-2.status  " + status}, "files")
}

func TestPlaceOf(t *testing.T) {
	for origin, want := range map[string]string{
		"var/lib/ovn/ovnnb_db.db":                                   "/var/lib/ovn/ovnnb_db.db",
		"/home/user/case/node1/etc/ovn/ovnsb_db.db":                 "/etc/ovn/ovnsb_db.db",
		"etc/origin/ovn/ovnnb_db.db":                                "/etc/origin/ovn/ovnnb_db.db",
		"var/snap/microovn/common/data/central/db/ovnnb_db.db":      "",
		"namespaces/openshift-ovn-kubernetes/ovnkube-master-a_nbdb": "",
		"ctl-1/ovnnb_db.db":                                         "",
		"var/lib/openvswitch/ovn/ovnnb_db.db":                       "/var/lib/openvswitch/ovn/ovnnb_db.db",
		"var/lib/config-data/ansible-generated/ovn/ovnnb_db.db":     "",
	} {
		expect.Equal(t, cluster.PlaceOf(origin), want, origin)
	}
}

// TestGivenFiles tells outputs of cluster/status from databases.
func TestGivenFiles(t *testing.T) {
	folder := t.TempDir()
	status, database := filepath.Join(folder, "status.txt"), filepath.Join(folder, "ovnnb_db.db")
	text := "4e01\nName: OVN_Southbound\nCluster ID: not yet known\nServer ID: 4e01 (4e013555-051b-4602-b368-81fb3deb479a)\n"
	for path, text := range map[string]string{status: text, database: "OVSDB CLUSTER 1 x\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := cluster.Given([]string{status, database})
	if err != nil || len(found) != 2 || found[0].Status != text || found[0].Path != "" || found[1].Path != database {
		t.Errorf("%+v %v", found, err)
	}
	if _, err := cluster.Given([]string{filepath.Join(folder, "missing")}); err == nil {
		t.Error("no error for a missing file")
	}
}
