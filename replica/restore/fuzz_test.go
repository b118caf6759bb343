package restore

import (
	"strings"
	"testing"

	"ovs-offline/test/captures"
)

// FuzzRecorded gives any text to the readers of what commands said on the node.
func FuzzRecorded(f *testing.F) {
	for _, pattern := range []string{"*bfd.show*", "*bond.show*", "*lacp.show*", "*route.show*", "*tnl.arp.show*", "*tnl.ports.show*", "*mdb.show*",
		"*list_interface", "*list_bridge"} {
		captures.Captured(f, pattern, 2048, func(content []byte) { f.Add(string(content)) })
	}
	f.Add("---- b0 ----\nbond_mode: balance-tcp\nlacp_status: negotiated\nactive-backup primary: <none>\nactive member mac: 0a:00:00:00:00:01(p1)\n\nmember p1: enabled\n  active member\n  may_enable: true\n  hash 12: 3 kB load\n")
	f.Add("---- b0 ----\n  status: active negotiated\nmember: p1: current attached\n  port_id: 1\n  actor sys_id: aa:55:aa:55:00:01\n  partner state: activity timeout aggregation\n")
	f.Add("---- br0 ----\n  Root ID:\n  stp-priority    32768\n  stp-max-age     20s\n  Interface  Role       State      Cost     Pri.Nbr\n  p1         Root       Forwarding 2        128.1\n")
	f.Add(" port  VLAN  GROUP                Age\n    1     0  224.1.2.3            12\n    2  4095  querier              1\n")
	f.Fuzz(func(t *testing.T, text string) {
		told, aggregates := newBonds(nil), newAggregates(nil)
		for line := range strings.Lines(text) {
			told.read(line)
			aggregates.read(line)
		}
		for _, b := range told.byName {
			if len(b.members) > len(text) {
				t.Errorf("bond %q has %d members", b.name, len(b.members))
			}
		}
		for _, a := range aggregates.list {
			for _, m := range a.members {
				if n := len(lacpdu(m.partner)); n == 0 || n > 128 {
					t.Errorf("a PDU of %d bytes", n)
				}
			}
		}
		for _, g := range mdb(text) {
			if g.vlan > 4095 {
				t.Errorf("%v", g)
			}
		}
		for _, r := range routes(text) {
			if !r.to.IsValid() {
				t.Errorf("a route to nowhere: %v", r)
			}
		}
		for _, n := range neighbours(text) {
			if len(n) != 3 || strings.ContainsAny(n[0]+n[1], " \n-") {
				t.Errorf("neighbour %q", n)
			}
		}
		tunnelFacts("port ", text)
		for _, rapid := range []bool{false, true} {
			tree := tree{rapid: rapid, bridge: &Bridge{}}
			tree.readShow(text)
			tree.readLists(map[string]string{"p1": text}, pairs(text))
		}
	})
}
