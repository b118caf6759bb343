package k8s

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"ovs-offline/test/e2e/k8s/cluster"
)

// TestTenNodes runs the tests that need ten nodes, each with a kubelet and a containerd.
func TestTenNodes(t *testing.T) {
	c := sharedCluster(t)
	nodes := make([]*cluster.Node, 10)
	var all errgroup.Group
	for i := range nodes {
		all.Go(func() (err error) {
			nodes[i], err = c.StartNode(t.Context(), fmt.Sprintf("many-%d", i))
			return err
		})
	}
	t.Cleanup(func() {
		forEach(nodes, func(n *cluster.Node) {
			if n != nil {
				n.Stop()
			}
		})
	})
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Run("at once", func(t *testing.T) { tenAtOnce(t, c, nodes) })
	t.Run("faults", func(t *testing.T) { withFaults(t, c, nodes) })
}

// withFaults runs the tests with faults. The workers share a live node whose dumps are
// larger than a pipe, so that commands wait for a lost connection. The last node has one
// whose dumps are larger than all buffers of connections.
func withFaults(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	grant(t, c, overSPDY, "list pods", "create pods/exec")
	last := len(nodes) - 1
	workers := make([]*worker, last)
	for i, b := range deployAll(t, c, nodes[:last], smallNode(t, someFlows(300, 20)), openshift().pods) {
		workers[i] = newWorker(t, c, b, i)
	}
	truth := references(t, workers)
	var all sync.WaitGroup
	defer all.Wait()
	alone := newWorker(t, c, deployAll(t, c, nodes[last:], smallNode(t, someFlows(300, 400)), openshift().pods)[0], 0)
	references(t, []*worker{alone})
	all.Go(func() { lostWithoutNotice(t, alone) })
	t.Run("restarts lose nothing", func(t *testing.T) { restartsLoseNothing(t, workers, truth) })
	t.Run("faults are never silent", func(t *testing.T) { faultsAreNeverSilent(t, c, workers, truth) })
	t.Run("faults behind a stand-in", func(t *testing.T) { faultsBehindStandIn(t, workers, truth) })
}

// forEach calls a function for all elements at the same time.
func forEach[E any](list []E, do func(E)) {
	var all sync.WaitGroup
	for _, e := range list {
		all.Go(func() { do(e) })
	}
	all.Wait()
}

// deployAll adds pods to all nodes, which are removed when the test ends.
func deployAll(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node, l *lab,
	pods func(*testing.T, *builder) []cluster.Pod) []*builder {
	t.Helper()
	builders := make([]*builder, len(nodes))
	for i, n := range nodes {
		shell := []string{"bash", "bash", "dash", "dash"}[i%4] // each with WebSocket and SPDY
		builders[i] = &builder{c: c, node: n, shell: shell, lab: l, t: t}
		builders[i].pods = pods(t, builders[i])
	}
	t.Cleanup(func() { forEach(builders, func(b *builder) { c.RemovePods(background, b.pods...) }) })
	var all errgroup.Group
	for _, b := range builders {
		all.Go(func() error { return c.AddPods(t.Context(), b.pods...) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	return builders
}

// references collects all nodes at the same time without faults. The workers share a live
// node, so that what is true of one is true of all. Files that differ between two
// collections must exist, with any content.
func references(t *testing.T, workers []*worker) content {
	t.Helper()
	all := make([]content, len(workers))
	var failed errgroup.Group
	for i, w := range workers {
		failed.Go(func() (err error) {
			all[i], err = w.reference(t)
			return err
		})
	}
	if err := failed.Wait(); err != nil {
		t.Fatal(err)
	}
	// A stream that stalled on a busy machine was transferred again.
	least := slices.MinFunc(workers, func(v, w *worker) int { return cmp.Compare(v.total, w.total) })
	for _, w := range workers {
		w.total, w.longest = least.total, least.longest
	}
	truth := all[0]
	for _, other := range all[1:] {
		for name, text := range truth {
			if other[name] != text {
				truth[name] = volatile
			}
		}
	}
	return truth
}
