package names

import (
	"fmt"
	"runtime"
	"testing"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

// BenchmarkNames loads the names of a large cluster, for questions and for a completion,
// which reads the northbound database only, and finds endpoints.
func BenchmarkNames(b *testing.B) {
	large := ovndb.Generate(b, ovs.NBSchema, ovs.SBSchema, 20000, 500000)
	index := func(path string) *file.Index {
		x, err := file.OpenIndex(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(x.Close)
		return x
	}
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / 1e6
	}
	var n *Names
	b.Run("completion", func(b *testing.B) {
		for b.Loop() {
			if found := load(b, &snapshot.Deployment{NB: index(large.NB)}).Complete("ns17/", 100); len(found) != 80 &&
				len(found) != 100 {
				b.Fatal(len(found))
			}
		}
	})
	sb := index(large.SB)
	nb := index(large.NB)
	before := heap()
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			n = load(b, &snapshot.Deployment{NB: nb, SB: sb})
		}
		b.ReportMetric(heap()-before, "MB")
	})
	b.Run("question", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			node := i % 500
			name := fmt.Sprintf("ns%d/pod-%d-%d", node%200, node, i%40)
			e, err := n.Find(name, Filter{})
			if err != nil {
				b.Fatal(err)
			}
			e.Node = "worker" // the set of a benchmark has no nodes
			to, err := n.Find(fmt.Sprintf("ns%d_pod-%d-%d", (499-node)%200, 499-node, i%40), Filter{})
			if err != nil {
				b.Fatal(err)
			}
			if p, err := n.First(Question{From: e, To: to, Protocol: "tcp"}); err != nil || p.Unresolved.IsValid() {
				b.Fatal(p, err)
			}
		}
		b.ReportMetric(heap()-before, "MB")
	})
	b.Run("unknown", func(b *testing.B) {
		for b.Loop() {
			if _, err := n.Find("ns1/pdo-1-1", Filter{}); err == nil {
				b.Fatal("found")
			}
		}
	})
}
