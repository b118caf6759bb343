package rules

import (
	"runtime"
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

// The sizes of a large cluster.
const (
	manyPorts = 20000
	manyFlows = 500000
)

// BenchmarkRules opens the databases of a large cluster, names 2,000 of its flows, and
// finds the flows that a node lacks in a stage.
func BenchmarkRules(b *testing.B) {
	large := ovndb.Generate(b, ovs.NBSchema, ovs.SBSchema, manyPorts, manyFlows)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var r *Rules
	all := b
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			r = New(open(all, large.NB), open(all, large.SB))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6/float64(b.N), "MB")
	})
	layout := Layout{Ingress: 8, IngressEnd: 36, Egress: 42, EgressEnd: 63}
	var flows []Flow
	for _, uuid := range large.Flows {
		row, _, err := r.sb.Row(logicalFlow, uuid)
		if err != nil {
			b.Fatal(err)
		}
		f := Flow{Cookie: cookieOf(b, uuid), Table: layout.Ingress + number(row, "table_id"),
			Priority: number(row, "priority"), Layout: layout}
		if row.String("pipeline") == "egress" {
			f.Table += layout.Egress - layout.Ingress
		}
		flows = append(flows, f)
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			clear(r.cache)
			for _, f := range flows {
				if _, ok, err := r.Find(f); err != nil || !ok {
					b.Fatal(ok, err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(flows)), "us/flow")
	})
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			for _, f := range flows {
				if _, _, err := r.Find(f); err != nil {
					b.Fatal(err)
				}
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(flows)), "ns/flow")
	})
}
