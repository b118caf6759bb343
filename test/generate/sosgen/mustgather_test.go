package sosgen

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// TestEveryMustGatherReplays replays the must-gather of a cluster of two nodes, for
// each range of OpenShift versions.
func TestEveryMustGatherReplays(t *testing.T) {
	one := recorded(t, "kubernetes")
	nodes := []*Node{one, one.Renamed("ovn-worker")}
	// The databases of 4.6-4.7 are those of 4.8-4.9, which has a conf.db as well.
	for _, o := range sweep.Named(t, OCPs(), func(o OCP) string { return o.Name }, "4.5", "4.8-4.9", "4.10-4.13", "4.14") {
		t.Run(o.Name, func(t *testing.T) {
			tree := MustGather(t, o, nodes...)
			dir := write(t, tree)
			file, err := writeSummed(filepath.Join(t.TempDir(), "must-gather.tar.gz"), Gzip(tree.Tar()))
			if err != nil {
				t.Fatal(err)
			}
			checkMustGather(t, o, nodes, dir)
			sameNode(t, collectedFrom(t, dir), file)
		})
	}
}

func checkMustGather(t *testing.T, o OCP, nodes []*Node, path string) {
	parent := shortDir(t)
	collected := collectInto(t, parent, path)
	if collected.code != 0 {
		t.Fatalf("%d: %s", collected.code, collected.err)
	}
	if !o.HasFlows() && !o.Interconnect() {
		r := start(t, parent, collected) // only the databases of the cluster
		checkCentral(t, nodes[0], r)
		return
	}
	for i, n := range nodes {
		if i > 0 && !o.Interconnect() && !sweep.Whole() {
			checkOther(t, nodes[0], filepath.Join(parent, workdir.EncodeName(nodes[0].Host)), n,
				filepath.Join(parent, workdir.EncodeName(n.Host)))
			continue
		}
		r := start(t, filepath.Join(parent, workdir.EncodeName(n.Host)), collected)
		if o.HasFlows() {
			checkBridges(t, n, r, func(b Bridge) supply {
				if b.Name == "br-int" {
					return supply{flows: "OpenFlow10"}
				}
				return supply{}
			})
		}
		if o.Interconnect() {
			checkZone(t, n, r)
			checkClientLogs(t, n, r)
		} else {
			checkCentral(t, nodes[0], r)
		}
	}
	if o.Interconnect() {
		picked := start(t, collectNode(t, path, nodes[1].Host), collected)
		checkZone(t, nodes[1], picked)
	}
}

// checkOther checks that a node of the same flows as a first one got the same dumps and databases: a replica of it is
// like the first one's.
func checkOther(t *testing.T, first *Node, firstDir string, n *Node, dir string) {
	t.Helper()
	const switchFile = "db/ovs/conf.db"
	want, have := filesOf(t, firstDir), filesOf(t, dir)
	if _, there := have[switchFile]; there {
		if file, err := os.ReadFile(filepath.Join(dir, switchFile)); err != nil || !bytes.Equal(file, n.Databases[OVS]) {
			t.Errorf("%s has another %s than its own: %v", n.Host, switchFile, err)
		}
		have[switchFile] = want[switchFile]
	}
	for _, files := range []map[string]string{want, have} {
		maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, "host/") }) // they name the node
	}
	if len(want) == 0 || !maps.Equal(want, have) {
		missing, other, extra := compare(want, have)
		t.Errorf("%s has not what %s has: missing %.300q, different %.300q, extra %.300q", n.Host, first.Host, missing, other,
			extra)
	}
}

func collectNode(t *testing.T, path, host string) string {
	t.Helper()
	dir := shortDir(t)
	if o := run(t, "collect", "-w", dir, "--node", host, path); o.code == 1 {
		t.Fatal(o.err)
	}
	return dir
}

// checkCentral compares the databases of the cluster with the live ones.
func checkCentral(t *testing.T, n *Node, r *replica) {
	t.Helper()
	for name, kind := range map[string]workdir.Kind{NB: workdir.NB, SB: workdir.SB} {
		live, err := n.Rows(name)
		if err != nil {
			t.Fatal(err)
		}
		sameRows(t, n, live, "unix:"+r.Workdir.Socket(kind), name)
	}
}

// checkClientLogs checks that the logs of clients of libovsdb were collected as they are.
func checkClientLogs(t *testing.T, n *Node, r *replica) {
	t.Helper()
	for name, want := range n.ClientLogs {
		if got, err := os.ReadFile(r.Workdir.ClientLog(name)); err != nil || string(got) != string(want) {
			t.Errorf("%s of %s: %q, %v", name, n.Host, got, err)
		}
	}
}

// checkZone checks that the databases are those of the node's zone.
func checkZone(t *testing.T, n *Node, r *replica) {
	t.Helper()
	name := strings.TrimSpace(r.tool(t, "ovn-nbctl", "--if-exists", "get", "NB_Global", ".", "options:name"))
	if strings.Trim(name, `"`) != n.Host {
		t.Errorf("the northbound database of %s names %q", n.Host, name)
	}
	if chassis := r.tool(t, "ovn-sbctl", "--bare", "--columns=hostname", "list", "Chassis"); !strings.Contains(chassis,
		n.Host) {
		t.Errorf("no chassis %s: %s", n.Host, chassis)
	}
}

// TestOpenStackMustGatherServesCentralDatabases checks that each node gets the control
// plane's databases.
func TestOpenStackMustGatherServesCentralDatabases(t *testing.T) {
	one := recorded(t, "openstack")
	nodes := []*Node{one, one.Renamed("compute1")}
	e := era("4.4-4.7.1")
	tree := OpenStackGather(t, e, Cluster, nodes...)
	parent := shortDir(t)
	collected := collectInto(t, parent, write(t, tree))
	if collected.code == 1 || strings.Contains(collected.err, "cluster/status") {
		t.Fatal(collected.err)
	}
	for _, n := range nodes {
		r := start(t, filepath.Join(parent, n.Host), collected)
		checkBridges(t, n, r, supplies(e, n))
		if n == one {
			checkCentral(t, n, r)
		}
	}
}

// TestDatabasesOfAServerWithoutALeaderAreNamed checks that collect and inspect name the databases
// whose server had lost its cluster, by cluster/status in an openstack-must-gather and in a report.
func TestDatabasesOfAServerWithoutALeaderAreNamed(t *testing.T) {
	one := recorded(t, "openstack")
	e := era("4.4-4.7.1")
	inReport := one.Renamed(one.Host)
	members := Apart(t, one.Databases[SB], SB)
	inReport.Databases[SB] = members.Follower
	report := inReport.Report(e)
	report.put("sos_commands/ovn_central/ovs-appctl_-t_.var.run.ovn.ovnsb_db.ctl_cluster.status_OVN_Southbound",
		members.Status)
	for name, tree := range map[string]Tree{"openstack-must-gather": OpenStackGather(t, e, Apart, one),
		"sos report": report.Under("sosreport-x")} {
		t.Run(name, func(t *testing.T) {
			const want = "its server knew no leader of the cluster"
			dir := write(t, tree)
			if o := collectInto(t, shortDir(t), dir); o.code == 1 || !strings.Contains(o.err, want) {
				t.Errorf("collect does not say %q: %s", want, o.err)
			}
			seen, o := inspect(t, dir)
			if !strings.Contains(o.out+o.err, want) {
				t.Errorf("inspect does not say %q: %s%s", want, o.out, o.err)
			}
			for _, node := range seen.Nodes {
				if strings.Contains(strings.Join(node.Unused, " "), "cluster.status") ||
					!slices.Contains(node.HostOutputs, workdir.HostStatusSB) {
					t.Errorf("cluster/status is not taken: unused %q, of the host %q", node.Unused, node.HostOutputs)
				}
			}
		})
	}
}

// TestReportsAndMustGatherOfOneCluster collects a folder with two sos reports and the
// must-gather of their cluster, and starts a replica of each node.
func TestReportsAndMustGatherOfOneCluster(t *testing.T) {
	one := recorded(t, "kubernetes")
	nodes := []*Node{one, one.Renamed("ovn-worker"), one.Renamed("ovn-control-plane")}
	e := newest()
	for _, o := range sweep.Last([]OCP{OCPs()[2], OCPs()[4]}) {
		t.Run(o.Name, func(t *testing.T) {
			tree := MustGather(t, o, nodes...)
			dir := write(t, tree)
			for i, n := range nodes[:2] {
				report := n.Report(e).Without(e.central + "/") // the databases are in the must-gather
				if _, err := WriteArchive(dir, fmt.Sprintf(reportName, n.Host), report, Packings()[i*3]); err != nil {
					t.Fatal(err)
				}
			}
			parent := shortDir(t)
			collected := collectInto(t, parent, dir)
			if collected.code == 1 {
				t.Fatal(collected.err)
			}
			checkTogether(t, o, e, nodes, parent, collected)
		})
	}
}

func checkTogether(t *testing.T, o OCP, e Era, nodes []*Node, parent string, collected outcome) {
	var hosts []string
	for _, n := range nodes {
		hosts = append(hosts, n.Host)
		if !strings.Contains(collected.out, n.Host) {
			t.Errorf("collect does not name %s: %s", n.Host, collected.out)
		}
	}
	var made []string
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			made = append(made, e.Name())
		}
	}
	slices.Sort(hosts)
	if !slices.Equal(made, hosts) {
		t.Errorf("workdirs %q for nodes %q", made, hosts)
	}
	replicas := map[string]*replica{}
	for _, n := range nodes {
		replicas[n.Host] = start(t, filepath.Join(parent, n.Host), collected)
	}
	// All replicas run at the same time.
	for i, n := range nodes {
		r := replicas[n.Host]
		if o.Interconnect() {
			checkZone(t, n, r)
		} else {
			checkCentral(t, nodes[0], r)
		}
		if i > 1 {
			continue // it has no sos report
		}
		checkBridges(t, n, r, supplies(e, n))
		if i > 0 {
			continue // the packets were traced on the first node
		}
		f, err := r.Compare(t.Context(), n.Packets(), n.Live())
		if err != nil {
			t.Fatal(err)
		}
		if f.Results != f.Packets {
			t.Errorf("%s: the result lines of %d packets differ: %.600s", n.Host, f.Packets-f.Results, f.Differences)
		}
	}
}
