package follow_test

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

// TestPacketsWithTwoTags sends a TCP packet with two VLAN tags through a live switch, and asks
// a replica of it. A switch reads both tags and what follows them where vlan-limit is 0, and
// only the outer one by default.
func TestPacketsWithTwoTags(t *testing.T) {
	const digits = "0a00000000020a0000000001" + "8100000181000002" +
		"08004500002800000000400600000a0000010a00000203e800500000000000000000500200000000" + "0000"
	for limit, want := range map[string]string{"0": "dropped a - no action", "1": "delivered a p2 it leaves"} {
		dropped := ""
		path := node(t, func(s *ovs.Switch) {
			s.Vsctl("set", "Open_vSwitch", ".", "other_config:vlan-limit="+limit, "--", "add-br", "br-int")
			for i := range 2 {
				p := fmt.Sprintf("p%d", i+1)
				s.Vsctl("add-port", "br-int", p, "--", "set", "Interface", p, "type=internal",
					fmt.Sprintf("ofport_request=%d", i+1))
			}
			s.Ofctl("del-flows", "br-int")
			s.Ofctl("add-flow", "br-int", "priority=10,tcp,actions=drop")
			s.Ofctl("add-flow", "br-int", "priority=0,actions=output:2")
			s.Appctl("netdev-dummy/receive", "p1", digits)
			s.Appctl("revalidator/purge")
			dropped = s.Ofctl("dump-flows", "br-int", "tcp")
		})
		if live := strings.Contains(dropped, "n_packets=1,"); live != strings.HasPrefix(want, "dropped") {
			t.Fatalf("vlan-limit %s: the live switch has %s", limit, dropped)
		}
		f, err := sets.Frame(digits)
		if err != nil {
			t.Fatal(err)
		}
		hop, _, err := follow.New([]*host.Host{open(t, "a", path)}, follow.Options{}).Packet(t.Context(),
			follow.Start{Node: "a", InPort: "p1", Packet: f.Packet, Size: f.Size})
		if err != nil || !leads(endsOf(hop), want) {
			t.Fatalf("vlan-limit %s: %v %q, want %q", limit, err, endsOf(hop), want)
		}
		for _, b := range hop.Branches {
			if b.Packet.Get("dl_vlan") != "1" || b.Packet.Get("dl_vlan1") != "2" || b.Packet.Get("tp_dst") != "80" {
				t.Errorf("vlan-limit %s: the packet became %s", limit, b.Packet)
			}
		}
	}
}
