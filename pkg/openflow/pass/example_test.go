package pass_test

import (
	"fmt"
	"log"

	"ovs-offline/pkg/openflow/pass"
)

func ExampleParse() {
	passes, err := pass.Parse(`Flow: icmp,in_port=1,vlan_tci=0x0000,dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,icmp_type=8,icmp_code=0

bridge("br0")
-------------
 0. in_port=1, priority 100, cookie 0x7
    resubmit(,8)
 8. ip, priority 50
    output:2

Final flow: unchanged
Megaflow: recirc_id=0,eth,ip,in_port=1,nw_frag=no
Datapath actions: 3
`)
	if err != nil {
		log.Fatal(err)
	}
	for _, stage := range passes[0].Stages {
		fmt.Printf("%s table %d: %s\n", stage.Bridge, stage.Table, stage.Flow)
	}
	fmt.Println("datapath:", passes[0].ActionsText)
	// Output:
	// br0 table 0: in_port=1
	// br0 table 8: ip
	// datapath: 3
}
