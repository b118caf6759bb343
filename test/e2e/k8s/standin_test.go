package k8s

import (
	"math/rand/v2"
	"os"
	"sync"
	"testing"
)

// faultsBehindStandIn breaks the connection between kubelet and container runtime, and
// kills commands, after a random number of bytes.
func faultsBehindStandIn(t *testing.T, workers []*worker, truth content) {
	for _, w := range workers {
		s, end, err := w.node.StandIn()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(end)
		w.hops[toRuntime], w.hops[theCommand] = s.Runtime, s.Command
		defer delete(w.hops, toRuntime)
		defer delete(w.hops, theCommand)
	}
	references(t, workers)
	counts := newTally(t)
	var all sync.WaitGroup
	for i, w := range workers {
		chance := rand.New(rand.NewPCG(uint64(i), 3))
		all.Go(func() {
			for {
				row, wanted := counts.deal(w.way, standInFaults(), standInRuns)
				if !wanted {
					return
				}
				r := w.run(t, w.draw(row, chance))
				counts.add(w, r, w.judge(truth, r))
				os.RemoveAll(r.dir)
			}
		})
	}
	all.Wait()
	t.Log("behind a stand-in: ", counts)
}
