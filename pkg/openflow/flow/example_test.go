package flow_test

import (
	"fmt"
	"log"

	"ovs-offline/pkg/openflow/flow"
)

func ExampleParse() {
	packet, err := flow.Parse("tcp,in_port=1,dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,tp_src=1024,tp_dst=80")
	if err != nil {
		log.Fatal(err)
	}
	src, dst, _ := packet.Addresses()
	fmt.Println(src, dst, packet.Get("tp_dst"))
	packet.Set("nw_ttl", "63")
	fmt.Println(packet.Input())
	// Output:
	// 10.0.0.1 10.0.0.2 80
	// tcp,in_port=1,dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=63,tcp_src=1024,tcp_dst=80
}
