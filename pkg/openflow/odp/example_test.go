package odp_test

import (
	"fmt"

	"ovs-offline/pkg/openflow/odp"
)

func ExampleParse() {
	for _, action := range odp.Parse("set(ipv4(ttl=63)),ct(commit,zone=5,nat(src=10.0.0.9)),recirc(0x3)") {
		fmt.Printf("%T\n", action)
	}
	// Output:
	// odp.HeaderChange
	// odp.Track
	// odp.Recirculate
}
