package appctl

import (
	"strings"
	"testing"

	"ovs-offline/pkg/openflow/packet"
	"ovs-offline/test/oracle/captures"
)

// FuzzParsers gives any text to all parsers.
func FuzzParsers(f *testing.F) {
	for _, pattern := range []string{"*bfd.show*", "*bond.show*", "*lacp.show*", "*route.show*", "*tnl.arp.show*",
		"*tnl.ports.show*", "*mdb.show*", "*fdb.show*", "*dpctl.show*"} {
		captures.Captured(f, pattern, 2048, func(content []byte) { f.Add(string(content)) })
	}
	for _, text := range []string{bondText, lacpText, rstpText, mdbText, dpifText,
		" Bridge   Port  VLAN  MAC                Age\n br-ex       1     0  0a:00:00:00:00:01    3\n br-tun1\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for b := range Bonds(text) {
			if len(b.Members) > len(text) {
				t.Errorf("bond %q has %d members", b.Name, len(b.Members))
			}
		}
		for l := range LACPs(text) {
			for _, m := range l.Members {
				if n := len(packet.LACPDU(m.Partner)); n != 124 {
					t.Errorf("an LACPDU of %d bytes", n)
				}
			}
		}
		for _, e := range MulticastGroups(text) {
			if e.VLAN > 4095 {
				t.Errorf("%v", e)
			}
		}
		for _, r := range Routes(text) {
			if !r.To.IsValid() {
				t.Errorf("a route without a destination: %v", r)
			}
		}
		for _, n := range Neighbours(text) {
			if strings.ContainsAny(n.Address+n.MAC, " \n-") {
				t.Errorf("neighbour %q", n)
			}
		}
		for bridge, entries := range SplitFDB(text) {
			if bridge == "" || !strings.Contains(text, bridge) || strings.Count(entries, "\n") > strings.Count(text, "\n")+1 {
				t.Errorf("bridge %q with %q", bridge, entries)
			}
		}
		for flood := range Floods(text) {
			if len(flood.Outputs) > len(text) {
				t.Error("more outputs than text")
			}
		}
		for p := range BridgePorts(text) {
			if p.Name == "" || !strings.Contains(text, p.Name) {
				t.Errorf("port %q is not in the text", p.Name)
			}
		}
		for p := range DatapathPorts(text) {
			if p.Number == "" {
				t.Errorf("port %q has no number", p.Name)
			}
		}
		for range LearnedMACs(text) {
		}
		for range BFDSessions(text) {
		}
		for range CFMMonitors(text) {
		}
		for range SpanningTrees(text) {
		}
		TunnelPorts(text)
		Features(text)
		SettableFeatures(text)
	})
}
