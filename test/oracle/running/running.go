// Package running shares the nodes of the lab's sets among all tests of a run: each set is collected once, and its replicas are
// started once, by the first test that asks for them.
package running

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ovs-offline/replica"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// Nodes are the nodes of a set, collected as they were, each with a running replica. Tests only read them: one that stops
// or changes a node takes a workdir of its own, of Set.Workdirs.
type Nodes struct {
	*sets.Set
	Folder   string                       // the set's folder, as `start` of a set takes it
	Paths    map[string]string            // the workdirs, by node
	Replicas map[string]*fidelity.Replica // by node
}

// Of returns the running nodes of a set, which scripts/testrun ends with the run. Without it, they are the test's own,
// and end with the test. So are those with network namespaces, in which a question leaves connections.
func Of(tb testing.TB, s *sets.Set) *Nodes {
	tb.Helper()
	n := &Nodes{Set: s}
	run := os.Getenv(ovs.RunVariable)
	if run == "" || !s.IsShared() || !slices.Contains(sets.Names(), s.Name) {
		n.Folder = ovs.Dir(tb)
		n.start(tb)
		for _, r := range n.Replicas {
			tb.Cleanup(func() {
				if err := r.Close(context.Background()); err != nil { // the test's own context has ended by then
					tb.Error(err)
				}
			})
		}
		return n
	}
	n.Folder = filepath.Join(run, "running", s.Name)
	err := sets.Once(n.Folder, func() error {
		n.start(tb)
		for _, r := range n.Replicas {
			r.Workdir.Unlock()
		}
		return nil
	})
	if err == nil {
		err = n.adopt()
	}
	if err != nil {
		tb.Fatalf("set %s: %v", s.Name, err)
	}
	return n
}

// start collects the nodes and starts their replicas.
func (n *Nodes) start(tb testing.TB) {
	tb.Helper()
	paths, err := n.Workdirs(tb.Context(), n.Folder, sets.Native)
	if err != nil {
		tb.Fatal(err)
	}
	n.Paths, n.Replicas = paths, map[string]*fidelity.Replica{}
	for node, path := range paths {
		if n.Replicas[node], err = fidelity.Adopt(tb.Context(), path, replica.Options{}); err != nil {
			tb.Fatalf("node %s: %v", node, err)
		}
	}
}

// adopt finds the nodes that run already.
func (n *Nodes) adopt() error {
	n.Paths, n.Replicas = map[string]string{}, map[string]*fidelity.Replica{}
	var problems error
	for _, node := range n.Set.Nodes {
		path := filepath.Join(n.Folder, node)
		wd, err := workdir.Find(path)
		problems = errors.Join(problems, err)
		n.Paths[node], n.Replicas[node] = path, fidelity.Running(wd)
	}
	return problems
}
