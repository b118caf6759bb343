package openflow

import (
	"strings"
	"testing"
)

// BenchmarkCanonical measures the form of the flows of the captured nodes.
func BenchmarkCanonical(b *testing.B) {
	var flows []Flow
	for name, raw := range dumps(b) {
		if strings.Contains(name, "_OpenFlow15_dump-flows_") {
			list, _ := allFlows(strings.NewReader(string(raw)))
			flows = append(flows, list...)
		}
	}
	c := &Canonical{}
	for b.Loop() {
		for _, f := range flows {
			c.Key(f)
			c.Actions(f.Actions())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(flows)), "ns/flow")
}
