package slow

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/answer/rule"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/heap"
	"ovs-offline/workdir"
)

// million is the number of flows, and of connections.
const million = 1_000_000

// write writes lines to a recorded output.
func write(b *testing.B, path string, line func(i int) string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	out := bufio.NewWriterSize(file, 1<<20)
	for i := range million {
		fmt.Fprintln(out, line(i))
	}
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkMillion reads a million flows of the datapath, each of another connection, and a million
// connections.
func BenchmarkMillion(b *testing.B) {
	wd, err := workdir.Find(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	write(b, wd.Recorded(workdir.RecordedDatapathFlows), func(i int) string {
		return fmt.Sprintf("ufid:%08x-4744-4e8f-90db-aa4d80604237, skb_priority(0/0),skb_mark(0/0),ct_state(0/0),ct_zone(0/0),ct_mark(0/0),ct_label(0/0),recirc_id(0),dp_hash(0/0),in_port(p%d),packet_type(ns=0,id=0),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),ipv4(src=10.%d.%d.1,dst=10.1.0.6/255.255.0.0,proto=17,tos=0/0,ttl=64/0,frag=no),udp(src=%d,dst=%d), packets:%d, bytes:126, used:0.121s, dp:ovs, actions:ct(commit,zone=%d),recirc(0x1)",
			i, i%40, i>>8&255, i&255, i%60000, i%1000, i%7, i%40)
	})
	write(b, wd.Recorded(workdir.RecordedConntrack), func(i int) string {
		return fmt.Sprintf("tcp,orig=(src=10.%d.%d.1,dst=10.2.0.1,sport=%d,dport=443),reply=(src=10.2.0.1,dst=10.%d.%d.1,sport=443,dport=%d),zone=%d,labels=0x1,protoinfo=(state=ESTABLISHED)",
			i>>8&255, i&255, i%60000, i>>8&255, i&255, i%60000, i%50)
	})
	of := rule.Of([]*snapshot.Deployment{{Nodes: []snapshot.Member{{Dir: wd}}}}, rule.Programs{})
	b.Run("flows", func(b *testing.B) {
		b.ReportMetric(heap.Peak(func() {
			for b.Loop() {
				if survey, _, err := readDatapath(b.Context(), of.Nodes()[0]); err != nil || survey.Flows != million {
					b.Fatal(survey, err)
				}
			}
		}), "MB")
	})
	b.Run("connections", func(b *testing.B) {
		b.ReportMetric(heap.Peak(func() {
			for b.Loop() {
				if c, err := readConntrack(b.Context(), of.Nodes()[0], namesOf(b.Context(), of.Deployments[0])); err != nil ||
					c.Entries != million {
					b.Fatal(c, err)
				}
			}
		}), "MB")
	})
}
