package appctl

import (
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestFlowsOfOneBridgeAreRead checks the UFIDs and matches of flows as dpctl/dump-flows -m and dpif/dump-flows -m of
// Open vSwitch 3.1 print them: the second prints no comma behind the UFID.
func TestFlowsOfOneBridgeAreRead(t *testing.T) {
	const rest = "skb_priority(0/0),recirc_id(0),in_port(p1),eth_type(0x0800),ipv4(frag=no), packets:0, bytes:0, used:never, actions:p2\n"
	text := "flow-dump from the main thread:\nufid:841424ab-5031-4e3a-ab73-9442de08c98d, " + rest +
		"ufid:841424ab-5031-4e3a-ab73-9442de08c98d " + rest + rest
	var got [][2]string
	for m, err := range Megaflows(strings.NewReader(text)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, [2]string{m.UFID, m.Key})
	}
	const key = "skb_priority(0/0),recirc_id(0),in_port(p1),eth_type(0x0800),ipv4(frag=no)"
	expect.Equal(t, got, [][2]string{{"841424ab-5031-4e3a-ab73-9442de08c98d", key},
		{"841424ab-5031-4e3a-ab73-9442de08c98d", key}, {"", key}}, "flows")
}
