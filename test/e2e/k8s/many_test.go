package k8s

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ovs-offline/test/e2e/k8s/cluster"
)

// latency delays each chunk from the API server, as a VPN does.
const latency = 40 * time.Millisecond

// tenAtOnce collects ten nodes from an API server behind a slow connection, and checks that the
// nodes are collected at the same time, each as if it were alone.
func tenAtOnce(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	far, err := cluster.Listen(c.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Stop()
	far.Break(&cluster.Fault{Kind: cluster.Slow, Late: latency})
	deployAll(t, c, nodes, smallNode(t, someFlows(2000, 2)), func(_ *testing.T, b *builder) []cluster.Pod {
		pods := []cluster.Pod{b.pod("ovn-kubernetes", "ovnkube-node-"+b.node.Name, "app=ovnkube-node",
			boxes{"ovnkube-node": b.lab.ovs()})}
		if b.node == nodes[0] {
			pods = append(pods, b.pod("ovn-kubernetes", "ovnkube-db-0", "name=ovnkube-db",
				boxes{"nb-ovsdb": b.lab.ovn(), "sb-ovsdb": b.lab.ovn()}))
		}
		return pods
	})
	dir := t.TempDir()
	begin := time.Now()
	r := collectAs(t, c, cluster.Admin, far.Address, "-w", filepath.Join(dir, "all"), "--all")
	if r.code != 0 {
		t.Fatalf("exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	execs, err := c.Execs(begin)
	if err != nil {
		t.Fatal(err)
	}
	checkExecs(t, execs)
	for _, n := range nodes[:5] {
		name := n.Name
		if r := collectAs(t, c, cluster.Admin, far.Address, "-w", filepath.Join(dir, name), name); r.code != 0 {
			t.Fatalf("%s: exit %d\n%s\n%s", name, r.code, r.out, r.complaints)
		}
		alone, err := read(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		among, err := read(filepath.Join(dir, "all", name))
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range alone {
			if strings.HasSuffix(file, ".dump") && among[file] != text || among[file] == "" && text != "" {
				t.Errorf("%s: %s differs when ten nodes are collected", name, file)
			}
		}
	}
}

// checkExecs checks that nodes were collected at the same time, and that shared
// databases were read once.
func checkExecs(t *testing.T, execs []cluster.Exec) {
	t.Helper()
	most, databases := 0, map[string]int{}
	for _, e := range execs {
		if strings.Contains(e.Container, "/ovnkube-db-0/") {
			databases[e.Container]++
		}
		at := map[string]bool{}
		for _, other := range execs {
			if !other.Begin.After(e.Begin) && other.End.After(e.Begin) {
				at[other.Container] = true
			}
		}
		most = max(most, len(at))
	}
	if most < 2 {
		t.Errorf("no two of %d commands ran at the same time", len(execs))
	}
	for container, n := range databases {
		if n > 2 {
			t.Errorf("%s was read %d times for ten nodes", container, n)
		}
	}
	if len(databases) == 0 {
		t.Error("the databases were not read")
	}
}

// TestFailingNodeDoesNotAffectOthers collects two nodes, of which one fails.
func TestFailingNodeDoesNotAffectOthers(t *testing.T) {
	c, n := sharedNode(t)
	deploy(t, c, n, openshift())
	addNode(t, c, "bad", n.FromServer.Address)
	b := &builder{c: c, node: n, shell: "bash", lab: liveNode(t, "kubernetes"), t: t}
	p := openshift().pods(t, b)[0]
	p.Name, p.Node = "ovnkube-node-bad", "bad"
	if err := c.CreatePod(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.RemovePods(background, p) })
	dir := t.TempDir()
	r := collect(t, c, "-w", dir, n.Name, "bad")
	if r.code != 3 || !strings.Contains(r.out+r.complaints, p.Name+" is Pending") {
		t.Errorf("exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	if have, err := read(filepath.Join(dir, n.Name)); len(have) == 0 || err != nil {
		t.Errorf("the good node: %d files, %v", len(have), err)
	}
}

// TestCompletionListsNodes runs the completion of node names.
func TestCompletionListsNodes(t *testing.T) {
	c := sharedCluster(t)
	for _, name := range []string{"complete-1", "complete-2", "complete-3"} {
		addNode(t, c, name, "127.0.0.1:1")
	}
	args := collectArgs(t, c, cluster.Admin, "", "complete-2", "complete-")
	r := ovsOfflineRun(t, append([]string{"__complete"}, args...)...)
	if r.code != 0 || r.out != "complete-1\ncomplete-3\n:4\n" {
		t.Errorf("exit %d: %q\n%s", r.code, r.out, r.complaints)
	}
}
