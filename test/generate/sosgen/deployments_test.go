package sosgen

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

const (
	systemID = "4c4c4544-0000-4000-8000-0000000000" // and two digits, in the lab's cloud
	tunnels  = "192.168.24."                        // and the same digits
)

// compute returns another chassis of the lab's cloud, whose report holds no OVN
// databases.
func compute(n *Node, host, digits string) *Node {
	other := n.Renamed(host, systemID+"12", systemID+digits, tunnels+"12", tunnels+digits)
	delete(other.Databases, NB)
	delete(other.Databases, SB)
	return other
}

var anyUUID = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// redeployed returns the node of another cloud that has the same host names.
func redeployed(n *Node) *Node {
	other := n.Renamed(n.Host, systemID, "5d5d4544-0000-4000-8000-0000000000", tunnels, "10.99.24.")
	for name, file := range other.Databases {
		if name == OVS {
			continue
		}
		other.Databases[name] = Rewritten(file, func(record []byte) []byte {
			return anyUUID.ReplaceAllFunc(record, func(uuid []byte) []byte {
				if strings.HasPrefix(string(uuid), "5d5d4544") {
					return uuid // of a chassis
				}
				return append([]byte("7"), uuid[1:]...)
			})
		})
	}
	return other
}

// upload is an archive of a node's report.
type upload struct {
	node *Node
	date string
	from *Node  // whose OVN databases the node is to get; nil for none
	dir  string // the name of the node's folder, "" for the host's name
}

// writeUploads writes reports into one folder. The names of the archives are in a
// random order in a sweep, and else in the reverse one: the databases come last.
func writeUploads(t *testing.T, uploads []upload) string {
	t.Helper()
	dir := t.TempDir()
	order := rand.Perm(len(uploads))
	if !sweep.Whole() {
		for i := range order {
			order[i] = len(uploads) - 1 - i
		}
	}
	for i, u := range uploads {
		top := fmt.Sprintf("sosreport-%s-%s-abcdefg", u.node.Host, u.date)
		file := filepath.Join(dir, fmt.Sprintf("%d-%d.tar", order[i], i))
		if err := os.WriteFile(file, u.node.Report(newest()).Under(top).Tar(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// checkUploads collects the reports, in a sweep in several orders of their names, and checks
// that each node has the databases of its own deployment, byte for byte.
func checkUploads(t *testing.T, code int, uploads ...upload) (o outcome, parent string) {
	t.Helper()
	for range sweep.Count(3, 1) {
		parent = shortDir(t)
		o = collectInto(t, parent, writeUploads(t, uploads))
		if o.code != code {
			t.Fatalf("collect exits with %d: %s%s", o.code, o.out, o.err)
		}
		for i, u := range uploads {
			checkDatabases(t, folderOf(t, parent, u, i), u.from)
		}
	}
	return o, parent
}

// folderOf returns the folder of an upload, which its archive may name.
func folderOf(t *testing.T, parent string, u upload, i int) string {
	t.Helper()
	if u.dir != "archive" {
		return filepath.Join(parent, u.node.Host+u.dir)
	}
	found, err := filepath.Glob(filepath.Join(parent, fmt.Sprintf("%s-*-%d", u.node.Host, i)))
	if err != nil || len(found) != 1 {
		t.Fatalf("folders of upload %d: %q", i, found)
	}
	return found[0]
}

func checkDatabases(t *testing.T, dir string, from *Node) {
	t.Helper()
	wd, err := workdir.Find(dir)
	if err != nil || !wd.Exists() {
		t.Fatalf("%s: %v", dir, err)
	}
	for name, kind := range map[string]workdir.Kind{NB: workdir.NB, SB: workdir.SB} {
		have, err := os.ReadFile(wd.Database(kind))
		switch {
		case from == nil && err == nil:
			t.Errorf("%s has the %s of another deployment", dir, name)
		case from != nil && err != nil:
			t.Errorf("%s has no %s: %v", dir, name, err)
		case from != nil && string(have) != string(from.Databases[name]):
			t.Errorf("%s has another %s than that of its deployment", dir, name)
		}
	}
}

// TestThreeNodesShareTheDatabasesOfOne collects three nodes, of which one holds the
// databases.
func TestThreeNodesShareTheDatabasesOfOne(t *testing.T) {
	central := recorded(t, "openstack")
	day := "2026-01-02"
	o, parent := checkUploads(t, 0, upload{central, day, central, ""},
		upload{compute(central, "compute1", "11"), day, central, ""},
		upload{compute(central, "compute3", "13"), day, central, ""})
	if n := strings.Count(o.out, "OVN NB, SB: from "+central.Host+" ("); n != 3 {
		t.Errorf("%d nodes have a line about their databases: %s", n, o.out)
	}
	// The databases work.
	r := start(t, filepath.Join(parent, "compute1"), o)
	if out := r.tool(t, "ovn-sbctl", "--bare", "--columns=hostname", "find", "Chassis",
		"name="+systemID+"11"); strings.TrimSpace(out) != "compute1" {
		t.Errorf("the chassis of compute1: %q", out)
	}
}

// TestDeploymentsWithEqualHostNames collects two clouds with the same host names.
func TestDeploymentsWithEqualHostNames(t *testing.T) {
	a := recorded(t, "openstack")
	b := redeployed(a)
	a1 := compute(a, "compute1", "11")
	b1 := a1.Renamed("compute1", systemID, "5d5d4544-0000-4000-8000-0000000000", tunnels, "10.99.24.")
	day := "2026-01-02"
	checkUploads(t, 0, upload{a, day, a, "archive"}, upload{b, day, b, "archive"}, upload{a1, day, a, "archive"},
		upload{b1, day, b, "archive"})
	// Without the controller of one, its node gets no database.
	o, _ := checkUploads(t, 3, upload{a, day, a, ""}, upload{a1, day, a, "archive"}, upload{b1, day, nil, "archive"})
	if want := "has no chassis 5d5d4544-0000-4000-8000-000000000011"; !strings.Contains(o.err, want) {
		t.Errorf("no %q: %s", want, o.err)
	}
}

// changed returns the node with databases to which a later transaction was added.
func changed(t *testing.T, n *Node, databases ...string) *Node {
	t.Helper()
	other := n.Renamed(n.Host)
	for _, name := range databases {
		file := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(file, n.Databases[name], 0o600); err != nil {
			t.Fatal(err)
		}
		ovs.Run(t, "ovsdb-tool", "transact", file, fmt.Sprintf(
			`[%q, {"op": "mutate", "table": %q, "where": [], "mutations": [["external_ids", "insert", ["map", [["made", "later"]]]]]}]`, name, globalTable(name)))
		other.Databases[name] = []byte(files.Read(t, file))
		if string(other.Databases[name]) == string(n.Databases[name]) {
			t.Fatalf("%s did not change", name)
		}
	}
	return other
}

// TestTwoUploadsOfOneNode collects the reports of two nodes from two times: each has
// the databases of its time. If the times are not known, none are given.
func TestTwoUploadsOfOneNode(t *testing.T) {
	before := recorded(t, "openstack")
	after := changed(t, before, NB, SB)
	node := compute(before, "compute1", "11")
	checkUploads(t, 0, upload{before, "2026-01-02", before, "-2026-01-02"},
		upload{after, "2026-01-05", after, "-2026-01-05"},
		upload{node, "2026-01-02", before, "-2026-01-02"}, upload{node, "2026-01-05", after, "-2026-01-05"})
	day := "2026-01-02"
	o, _ := checkUploads(t, 3, upload{before, day, before, "archive"}, upload{after, day, after, "archive"},
		upload{node, day, nil, ""})
	for _, candidate := range []string{"-0.tar)", "-1.tar)"} {
		if !strings.Contains(o.err, candidate) {
			t.Errorf("the refusal does not name %s: %s", candidate, o.err)
		}
	}
	// Only one of the databases changed.
	after = changed(t, before, NB)
	dir := writeUploads(t, []upload{{node: before, date: day}, {node: after, date: day}, {node: node, date: day}})
	parent := shortDir(t)
	if o := collectInto(t, parent, dir); o.code != 3 || !strings.Contains(o.err, "OVN NB: the databases of") {
		t.Errorf("collect exits with %d: %s%s", o.code, o.out, o.err)
	}
	if _, err := os.Stat(filepath.Join(parent, "compute1/db/ovn_nb")); err == nil {
		t.Error("compute1 has one of two northbound databases")
	}
}

// TestNodeWithoutOVNGetsNoDatabases collects an ML2/OVS node beside the controller of
// an OVN deployment.
func TestNodeWithoutOVNGetsNoDatabases(t *testing.T) {
	central, agent := recorded(t, "openstack"), recorded(t, "ml2-ovs")
	day := "2026-01-02"
	o, _ := checkUploads(t, 0, upload{central, day, central, ""}, upload{agent, day, nil, ""})
	if !strings.Contains(o.out, "OVN NB, SB: none: ") {
		t.Errorf("collect does not say that the node gets no databases: %s", o.out)
	}
}

// TestDeletedChassisGetsNoDatabases collects a node whose chassis was deleted.
func TestDeletedChassisGetsNoDatabases(t *testing.T) {
	central := recorded(t, "openstack")
	day := "2026-01-02"
	o, _ := checkUploads(t, 3, upload{central, day, central, ""}, upload{compute(central, "compute9", "19"), day, nil, ""})
	if want := "no chassis " + systemID + "19"; !strings.Contains(o.err, want) {
		t.Errorf("no %q: %s", want, o.err)
	}
}

// TestMembersOfAClusterAreOneDeployment collects two controllers that are members of
// one cluster, and a compute node, which gets the database of a member.
func TestMembersOfAClusterAreOneDeployment(t *testing.T) {
	n := recorded(t, "openstack")
	leader, follower := n.Renamed(n.Host), n.Renamed("control2")
	for _, name := range []string{NB, SB} {
		members := Cluster(t, n.Databases[name], name)
		leader.Databases[name], follower.Databases[name] = members.Leader, members.Follower
	}
	dir := writeUploads(t, []upload{{node: leader, date: "2026-01-02"}, {node: follower, date: "2026-01-02"},
		{node: compute(n, "compute1", "11"), date: "2026-01-02"}})
	parent := shortDir(t)
	if o := collectInto(t, parent, dir); o.code != 0 {
		t.Fatalf("collect exits with %d: %s%s", o.code, o.out, o.err)
	}
	for _, kind := range []string{"ovn_nb/ovnnb_db.db", "ovn_sb/ovnsb_db.db"} {
		have := files.Read(t, filepath.Join(parent, "compute1/db", kind))
		if !slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(leader.Databases)),
			slices.Collect(maps.Values(follower.Databases))), func(file []byte) bool { return string(file) == have }) {
			t.Errorf("%s is of no member", kind)
		}
	}
}
