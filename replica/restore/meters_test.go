package restore_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/ofmeter"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime/process"
)

// TestManyMeters: meters come back in the order in which they were made, since
// datapath actions name them by it, and only those that the switch refuses or
// that other words tell of cost a run of ovs-ofctl.
func TestManyMeters(t *testing.T) {
	const many, bad = 3000, 5
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "add-port", "br0", "vm")
	node.likeKernel("br0")
	kinds := []string{
		"kbps bands=type=drop rate=%d",
		"pktps burst stats bands=type=drop rate=%d burst_size=5",
		"kbps stats bands=type=drop rate=%d type=drop rate=4000000000",
		"pktps burst bands=type=drop rate=%d burst_size=7",
	}
	var meters []ofmeter.Message
	for i := range many {
		m, ok := ofmeter.Parse(fmt.Sprintf("meter=%d "+kinds[i%len(kinds)], many-i, i+1))
		if !ok {
			t.Fatalf("meter %d is none", i)
		}
		meters = append(meters, m)
	}
	socket := filepath.Join(node.dir, "br0.mgmt")
	for i, version := range []string{"OpenFlow13", "OpenFlow14", "OpenFlow15"} {
		refused, err := ofmeter.Add(t.Context(), socket, version, meters[i*many/3:(i+1)*many/3])
		if err != nil || len(refused) > 0 {
			t.Fatalf("%s: %v: %v", version, refused, err)
		}
	}
	node.ofctl("-O", "OpenFlow15", "add-meter", "br0", "meter=controller pktps bands=type=drop rate=100")
	var packets []string
	for _, i := range []int{1, 2, many / 2, many} {
		node.ofctl("-O", "OpenFlow15", "add-flow", "br0", fmt.Sprintf("in_port=vm,dl_vlan=%d,actions=meter:%d,output:LOCAL", i, i))
		packets = append(packets, fmt.Sprintf("br0 in_port=vm,dl_vlan=%d", i))
	}
	report := node.report()
	dump := node.ofctl("-O", "OpenFlow15", "dump-meters", "br0")
	var refused strings.Builder
	for i := range bad {
		fmt.Fprintf(&refused, "meter=%d kbps bands=\ntype=dscp_remark rate=1 prec_level=1\n", 100_000+i)
	}
	write(t, report, "ovs-ofctl_-O_OpenFlow15_dump-meters_br0", dump+refused.String())
	rt := &counted{Runtime: process.New(process.Options{})}
	r := replayBy(t, report, rt)
	sorted := func(text string) []string {
		return slices.Sorted(strings.SplitSeq(strings.ReplaceAll(text, "\ntype=", "type="), "\n"))
	}
	if live, have := sorted(dump), sorted(r.ofctl("-O", "OpenFlow15", "dump-meters", "br0")); !slices.Equal(live, have) {
		t.Errorf("%d lines of meters became %d", len(live), len(have))
	}
	for _, d := range differences(node, r.liveNode, packets...) {
		t.Error(d)
	}
	if counts := *r.report.Bridges[0].Counts[workdir.Meters]; counts.Restored != many+1 || counts.SetAside != bad || counts.Different > 0 {
		t.Errorf("%+v: %+v", counts, r.report.SetAside)
	}
	if n := rt.sent.Load(); n > 4*bad {
		t.Errorf("ovs-ofctl ran %d times", n)
	}
}
