package follow_test

import (
	"sync"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/fidelity"
)

// BenchmarkQuestions follows a new connection through the security groups of a compute
// node of OpenStack, eight questions at a time.
func BenchmarkQuestions(b *testing.B) {
	ovs.Need(b, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl")
	report := captures.Report(b, "captures/ovn-openstack-compute")
	n := fidelity.Replayed(b, report)
	tracer := follow.New([]*host.Host{reopen(b, "compute1", n.Workdir)}, follow.Options{})
	start := follow.Start{Node: "compute1", InPort: "tapvm1aaaaa-aa",
		Packet: packet(b, "tcp,dl_dst=fa:16:3e:10:00:06,dl_src=fa:16:3e:10:00:05,nw_src=192.168.10.5,nw_dst=192.168.10.6,nw_ttl=64,tp_src=40000,tp_dst=22,tcp_flags=syn")}
	hop, _, err := tracer.Packet(b.Context(), start)
	if err != nil || !leads(endsOf(hop), "copied", "delivered") && !leads(endsOf(hop), "copied", "copied", "delivered") {
		b.Fatal(endsOf(hop), err)
	}
	questions := make(chan int)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range questions {
				if _, _, err := tracer.Packet(b.Context(), start); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		questions <- n
	}
	close(questions)
	workers.Wait()
}
