package k8s_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"ovs-offline/collect/k8s"
	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// logged records which commands run in which containers, and breaks the streams of some
// pods.
type logged struct {
	k8s.Executor
	mu     sync.Mutex
	asked  []string // the container, and the first argument after our own
	broken string   // part of the names of the pods that don't answer
}

func (l *logged) Exec(ctx context.Context, target k8s.Target, argv []string, stdin io.Reader, stdout,
	stderr io.Writer) error {
	l.mu.Lock()
	l.asked = append(l.asked, target.Container+" "+strings.Join(argv[8:min(9, len(argv))], ""))
	l.mu.Unlock()
	if l.broken != "" && strings.Contains(target.Pod, l.broken) {
		return errors.New("unable to upgrade connection: dial tcp 10.0.0.3:10250: connect: connection refused")
	}
	return l.Executor.Exec(ctx, target, argv, stdin, stdout, stderr)
}

func (l *logged) count(what string) (n int) {
	for _, a := range l.asked {
		if a == what {
			n++
		}
	}
	return n
}

// central returns nodes of ovn-kubernetes with a central database of two members.
func central(names ...string) []runtime.Object {
	all := []runtime.Object{
		pod(ovnk, "ovnkube-db-0", "master", "name=ovnkube-db", "nb-ovsdb", "sb-ovsdb"),
		pod(ovnk, "ovnkube-db-1", "master", "name=ovnkube-db", "nb-ovsdb", "sb-ovsdb"),
	}
	for _, name := range names {
		all = append(all, node(name), pod(ovnk, "ovnkube-node-"+name, name, "app=ovnkube-node", "ovnkube-node"))
	}
	return all
}

// TestNodesAreCollectedInParallel checks that nodes are collected in parallel and the
// central databases once, and that the failure of one node or one member does not
// affect the others.
func TestNodesAreCollectedInParallel(t *testing.T) {
	_, local := live(t, shared)
	// TestAtMostTenNodesAtOnce has as many nodes as it takes.
	var names []string
	for i := range sweep.Count(10, 4) {
		names = append(names, fmt.Sprintf("worker-%d", i))
	}
	exec := &logged{Executor: local, broken: "worker-3"}
	parent := filepath.Join(t.TempDir(), "nodes")
	var mu sync.Mutex
	ended := map[string]string{}
	opts := k8s.Options{All: true, Report: func(node, what string, _ int64) {
		mu.Lock()
		defer mu.Unlock()
		ended[node] = what
	}}
	results, err := k8s.Collect(t.Context(), cluster(exec, central(names...)...), parent, impatient(opts))
	if err != nil || len(results) != len(names) {
		t.Fatal(err, results)
	}
	for _, r := range results {
		if r.Node == "worker-3" {
			if r.Err == nil || !strings.Contains(r.Err.Error(),
				"node worker-3: ovn-kubernetes/ovnkube-node-worker-3/ovnkube-node") ||
				!strings.Contains(r.Err.Error(), "connection refused") || ended[r.Node] != "failed" {
				t.Errorf("%v", r.Err)
			}
			continue
		}
		if r.Err != nil || ended[r.Node] != "collected" || len(r.Collections) != 4 {
			t.Fatalf("%+v", r)
		}
		for _, c := range r.Collections {
			if c.Image != "registry.example/ovnkube-db-0/sb-ovsdb" {
				t.Errorf("%s of %s: image %q", c.Kind, r.Node, c.Image)
			}
		}
		checkNothingLost(t, r)
		checkFiles(t, r.Workdir)
	}
	if n := exec.count("nb-ovsdb OVN_Northbound"); n != 1 {
		t.Errorf("the NB database was taken %d times", n)
	}
	if perNode := len(exec.asked) - 2; perNode > 3*len(names) { // three for each node, and three tries for the broken one
		t.Errorf("%d commands were run for %d nodes", perNode, len(names))
	}
	if !slices.Contains(exec.asked, "sb-ovsdb OVN_Southbound") {
		t.Errorf("asked %q", exec.asked)
	}
	left, err := os.ReadDir(parent)
	if err != nil || len(left) != len(names) { // one workdir for each node; that of the failed node holds only a lock
		t.Errorf("%v %v", left, err)
	}
	if there, err := workdir.Find(filepath.Join(parent, "worker-3")); err != nil {
		t.Error(err)
	} else if m, err := there.Manifest(); err != nil || len(m.Collections) > 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

// checkFiles compares the files of a workdir with its manifest.
func checkFiles(t *testing.T, path string) {
	t.Helper()
	wd, err := workdir.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wd.Manifest()
	if err != nil || len(m.Collections) != 4 {
		t.Fatal(m, err)
	}
	for _, c := range m.Collections {
		for _, f := range c.Files {
			info, err := os.Stat(filepath.Join(path, f.Path))
			if err != nil || info.Size() != f.Size || f.Origin == "" {
				t.Errorf("%s: %v, %v", f.Path, info, err)
			}
		}
	}
}

// TestNextMemberReplacesFailedOne checks that the next member of the databases' cluster
// is used if one doesn't answer, and that without any member OVS is still collected,
// and the missing databases are named.
func TestNextMemberReplacesFailedOne(t *testing.T) {
	_, local := live(t, shared)
	for broken, lost := range map[string]int{"ovnkube-db-0": 0, "ovnkube-db-1": 0, "ovnkube-db": 2} {
		exec := &logged{Executor: local, broken: broken}
		r := collectOne(t, cluster(exec, central("worker")...), filepath.Join(t.TempDir(), "wd"),
			impatient(k8s.Options{Nodes: []string{"worker"}}))
		if len(r.Collections) != 4-lost || len(r.Collections[0].Lost) != lost || len(r.Collections[0].Bridges) != 2 {
			t.Errorf("without %s: %d collections, lost %q", broken, len(r.Collections), r.Collections[0].Lost)
		}
		if got := r.Collections[0].LostDatabases; len(got[workdir.NB])+len(got[workdir.SB]) != lost {
			t.Errorf("without %s: lost of databases: %q", broken, got)
		}
		for _, l := range r.Collections[0].Lost {
			if !strings.Contains(l, "database: ovn-kubernetes/ovnkube-db-") || !strings.Contains(l, "connection refused") {
				t.Error(l)
			}
		}
	}
}

// barrier counts parallel requests, and answers none until there are enough.
type barrier struct {
	mu        sync.Mutex
	now, most int
	enough    int
	met       chan bool
}

func (c *barrier) Exec(ctx context.Context, _ k8s.Target, _ []string, _ io.Reader, _, _ io.Writer) error {
	c.mu.Lock()
	if c.now++; c.now == c.enough && c.most < c.enough {
		close(c.met)
	}
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	select {
	case <-c.met:
	case <-ctx.Done():
	}
	c.mu.Lock()
	c.now--
	c.mu.Unlock()
	return errors.New("go away")
}

// TestAtMostTenNodesAtOnce checks that ten nodes are collected at the same time, and
// never more.
func TestAtMostTenNodesAtOnce(t *testing.T) {
	var names []string
	for i := range 25 {
		names = append(names, fmt.Sprintf("worker-%d", i))
	}
	exec := &barrier{enough: 10, met: make(chan bool)}
	results, err := k8s.Collect(t.Context(), cluster(exec, central(names...)...), t.TempDir(),
		impatient(k8s.Options{All: true}))
	if err != nil || len(results) != len(names) || exec.most != 10 {
		t.Errorf("%d of %d at once, %v", exec.most, len(results), err)
	}
}
