package appctl_test

import (
	"fmt"
	"log"
	"strings"

	"ovs-offline/pkg/openflow/appctl"
)

func ExampleMegaflows() {
	const dump = "recirc_id(0),in_port(2),eth(),eth_type(0x0800),ipv4(frag=no), packets:7, bytes:686, used:2.3s, actions:3\n"
	for megaflow, err := range appctl.Megaflows(strings.NewReader(dump)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(megaflow.Packets, megaflow.Used, megaflow.Actions)
	}
	// Output: 7 2.3s 3
}
