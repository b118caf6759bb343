package packet_test

import (
	"fmt"

	"ovs-offline/pkg/openflow/packet"
)

func ExampleIGMPQuery() {
	frame := packet.IGMPQuery(packet.MAC{0x0a, 0, 0, 0, 0, 1}, 0)
	fmt.Printf("% x\n", frame[:14])
	// Output: 01 00 5e 00 00 01 0a 00 00 00 00 01 08 00
}
