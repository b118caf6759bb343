package tables

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow"
)

// ovnDump returns a dump of flows like OVN's.
func ovnDump(count int) string {
	var b strings.Builder
	b.WriteString("OFPST_FLOW reply (OF1.5) (xid=0x2):\n")
	for i := range count {
		fmt.Fprintf(&b, " cookie=%#x, duration=1071.217s, table=%d, n_packets=%d, n_bytes=%d, idle_age=1071, priority=%d,icmp6,metadata=%#x,nw_ttl=255,icmp_type=135,icmp_code=0 "+
			"actions=push:NXM_NX_REG0[],push:NXM_OF_ETH_SRC[],set_field:%#x->reg15,set_field:0x8/0x8->xreg4,dec_ttl(),pop:NXM_OF_ETH_SRC[],resubmit(,%d)\n",
			0x9f000000+i, i%40+8, i%7, i%7*98, 100+i%50, i%90, i%4096, i%40+9)
	}
	return b.String()
}

// BenchmarkFlows measures the cost of a flow in this package on its way from a
// dump to ovs-ofctl, from ovs-ofctl into the comparison, and into the facts.
func BenchmarkFlows(b *testing.B) {
	const count = 20000
	dump := ovnDump(count)
	l := &loader{table: &table{version: openflow.OpenFlow15}, loaded: newTally()}
	b.Run("to the switch", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.read(strings.NewReader(dump), func(batch) bool { return true })
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/flow")
	})
	b.Run("facts", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "dump")
		if err := os.WriteFile(path, []byte(dump), 0o600); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := readDumped(b.Context(), path); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/flow")
	})
	b.Run("back", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			have := tally{seed: l.loaded.seed}
			for flow := range openflow.Flows(strings.NewReader(dump)) {
				have.add(flow.Text)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/flow")
	})
}
