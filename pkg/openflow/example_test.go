package openflow_test

import (
	"fmt"
	"strings"

	"ovs-offline/pkg/openflow"
)

const dump = `NXST_FLOW reply (xid=0x4):
 cookie=0x0, duration=3.1s, table=0, n_packets=7, n_bytes=686, priority=100,in_port=1 actions=resubmit(,8)
 cookie=0x5, duration=3.1s, table=8, n_packets=0, n_bytes=0, idle_age=3, priority=50,ip,nw_dst=10.0.0.0/8 actions=output:2
`

func ExampleFlows() {
	for flow, problem := range openflow.Flows(strings.NewReader(dump)) {
		if problem != nil {
			fmt.Println(problem)
			continue
		}
		key := flow.Key()
		fmt.Printf("table %d, priority %d: %s -> %s, %d packets\n", key.Table, key.Priority, key.Match, flow.Actions(), flow.Packets)
	}
	// Output:
	// table 0, priority 100: in_port=1 -> resubmit(,8), 7 packets
	// table 8, priority 50: ip,nw_dst=10.0.0.0/8 -> output:2, 0 packets
}

func ExampleRewrite() {
	text, changes := openflow.Rewrite("table=0,priority=1,igmp actions=NORMAL")
	fmt.Println(text)
	fmt.Println(changes)
	// Output:
	// table=0,priority=1,ip,nw_proto=2 actions=NORMAL
	// [igmp, which ovs-ofctl prints and cannot read]
}
