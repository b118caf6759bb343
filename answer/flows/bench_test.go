package flows

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/heap"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
	"ovs-offline/workdir"
)

// The sizes of a large node.
const (
	manyPorts        = 20000
	manyLogicalFlows = 500000
	manyFlows        = 1000000
)

// large writes the workdir of a node with a million flows, in $OVS_OFFLINE_LARGE if that
// is set, where it stays.
func large(b *testing.B) *workdir.Dir {
	b.Helper()
	folder := os.Getenv("OVS_OFFLINE_LARGE")
	if folder == "" {
		folder = filepath.Join(b.TempDir(), "wd")
	}
	wd, err := workdir.Lock(folder)
	if err != nil {
		b.Fatal(err)
	}
	wd.Unlock()
	if _, err := os.Stat(wd.DumpFile("br-int", workdir.Flows)); err == nil {
		return wd
	}
	made := ovndb.Generate(b, ovs.NBSchema, ovs.SBSchema, manyPorts, manyLogicalFlows)
	for path, to := range map[string]string{made.NB: wd.Database(workdir.NB), made.SB: wd.Database(workdir.SB)} {
		raw, err := os.ReadFile(path)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o700)
		}
		if err == nil {
			err = os.WriteFile(to, raw, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	writeDump(b, wd)
	return wd
}

// writeDump writes flows of all logical flows of a database.
func writeDump(b *testing.B, wd *workdir.Dir) {
	b.Helper()
	sb, err := file.OpenIndex(b.Context(), wd.Database(workdir.SB))
	if err != nil {
		b.Fatal(err)
	}
	defer sb.Close()
	keys := map[string]int{}
	for row := range sb.Rows("Datapath_Binding", "tunnel_key") {
		keys[row.UUID], _ = row.Int("tunnel_key")
	}
	path := wd.DumpFile("br-int", workdir.Flows)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	out := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprintln(out, "OFPST_FLOW reply (OF1.5) (xid=0x2):")
	const ingress, egress, each = 8, 42, manyFlows / manyLogicalFlows
	n := 0
	for row, err := range sb.Rows("Logical_Flow", "pipeline", "table_id", "priority", "logical_datapath") {
		if err != nil {
			b.Fatal(err)
		}
		table, _ := row.Int("table_id")
		priority, _ := row.Int("priority")
		table += map[string]int{"ingress": ingress, "egress": egress}[row.String("pipeline")]
		for range each {
			n++
			fmt.Fprintf(out, " cookie=0x%s, duration=93.628s, table=%d, n_packets=%d, n_bytes=%d, idle_age=93, priority=%d,tcp,reg0=0x80/0x80,reg15=0x%x,metadata=%#x,nw_src=10.%d.%d.0/24,tp_dst=%d actions=set_field:0x2/0x2->xreg4,resubmit(,%d)\n",
				row.UUID[:8], table, n%7, n%7*98, priority, n%40+1, keys[row.UUIDs("logical_datapath")[0]], n>>16&255, n>>8&255,
				n%65536, table+1)
		}
	}
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkMillion lists and sorts a million flows.
func BenchmarkMillion(b *testing.B) {
	wd := large(b)
	sources := []Source{{Dir: wd}}
	for name, q := range map[string]Query{
		"stream": {Limit: 10000},
		"sorted": {Sort: ByPackets, Limit: 20},
		"filter": {Filter: Filter{Match: []string{"tp_dst=443"}}},
	} {
		b.Run(name, func(b *testing.B) {
			var most float64
			var first time.Duration
			for b.Loop() {
				most = max(most, heap.Peak(func() {
					began := time.Now()
					n := 0
					if _, err := List(context.Background(), sources, q, func(Flow) error {
						if n++; n == 1 {
							first = time.Since(began)
						}
						return nil
					}); err != nil || n == 0 {
						b.Fatal(n, err)
					}
				}))
			}
			b.ReportMetric(most, "MB")
			b.ReportMetric(first.Seconds(), "s-to-first")
		})
	}
}

// BenchmarkTop adds up a million flows by rule.
func BenchmarkTop(b *testing.B) {
	wd := large(b)
	var most float64
	var first time.Duration
	for b.Loop() {
		most = max(most, heap.Peak(func() {
			began := time.Now()
			top, _, err := Count(context.Background(), []Source{{Dir: wd}}, ByRule, 10)
			first = time.Since(began)
			if err == nil {
				err = top.Examine(context.Background())
				top.Close()
			}
			if err != nil || top.Counted+top.Own.Flows != manyFlows {
				b.Fatal(top, err)
			}
		}))
	}
	b.ReportMetric(most, "MB")
	b.ReportMetric(first.Seconds(), "s-to-first")
}
