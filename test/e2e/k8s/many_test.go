package k8s

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ovs-offline/test/e2e/k8s/cluster"
)

// latency delays each chunk from the API server, as a VPN does.
const latency = 40 * time.Millisecond

// TestTenNodesAtOnceAreFaster collects ten nodes at once, and five of them one after
// the other, from an API server behind a slow connection.
func TestTenNodesAtOnceAreFaster(t *testing.T) {
	c := sharedCluster(t)
	far, err := cluster.Listen(c.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Stop()
	far.Break(&cluster.Fault{Kind: cluster.Slow, Late: latency})
	const nodes = 10
	l := smallNode(t, someFlows(2000, 2))
	for i := range nodes {
		b := &builder{node: fmt.Sprintf("many-%d", i), shell: "bash", lab: l, t: t}
		addNode(t, c, b.node, "")
		addPod(t, c, b.pod("ovn-kubernetes", "ovnkube-node-"+b.node, "app=ovnkube-node", boxes{"ovnkube-node": b.lab.ovs()}))
		if i == 0 {
			addPod(t, c, b.pod("ovn-kubernetes", "ovnkube-db-0", "name=ovnkube-db", boxes{"nb-ovsdb": b.lab.ovn(), "sb-ovsdb": b.lab.ovn()}))
		}
	}
	dir := t.TempDir()
	c.Kubelet.Execs()
	begin := time.Now()
	r := collectAs(t, c, cluster.Admin, far.Address, "-w", filepath.Join(dir, "all"), "--all")
	together := time.Since(begin)
	if r.code != 0 {
		t.Fatalf("exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	checkExecs(t, c.Kubelet.Execs())
	begin = time.Now()
	for i := range nodes / 2 {
		name := fmt.Sprintf("many-%d", i)
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
	apart := time.Since(begin)
	t.Logf("ten nodes at once: %.1f s; five one after the other: %.1f s", together.Seconds(), apart.Seconds())
	if together >= apart {
		t.Errorf("ten nodes at once took %s, five one after the other %s", together, apart)
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
	c := sharedCluster(t)
	good := deploy(t, c, openshift(), "good", "")
	b := &builder{node: "bad", shell: "bash", lab: good.lab, t: t}
	addNode(t, c, "bad", "")
	p := openshift().pods(t, b)[0]
	p.Waiting = "CrashLoopBackOff"
	addPod(t, c, p)
	dir := t.TempDir()
	r := collect(t, c, "-w", dir, "good", "bad")
	if r.code != 3 || !strings.Contains(r.out+r.complaints, "CrashLoopBackOff") {
		t.Errorf("exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	if have, err := read(filepath.Join(dir, "good")); len(have) == 0 || err != nil {
		t.Errorf("the good node: %d files, %v", len(have), err)
	}
}

// TestCompletionListsNodes runs the completion of node names.
func TestCompletionListsNodes(t *testing.T) {
	c := sharedCluster(t)
	for _, name := range []string{"complete-1", "complete-2", "complete-3"} {
		addNode(t, c, name, "")
	}
	args := collectArgs(t, c, cluster.Admin, "", "complete-2", "complete-")
	r := ovsOfflineRun(t, append([]string{"__complete"}, args...)...)
	if r.code != 0 || r.out != "complete-1\ncomplete-3\n:4\n" {
		t.Errorf("exit %d: %q\n%s", r.code, r.out, r.complaints)
	}
}
