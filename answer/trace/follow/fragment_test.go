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

// fragments returns the two fragments of a UDP datagram, of 834 and 634 bytes, in hexadecimal
// digits.
func fragments() (first, later string) {
	const macs = "0a00000000020a0000000001" + "0800"
	first = macs + "45000334" + "00072000" + "401143b0" + "0a0000010a000002" + "1388003505780000" +
		strings.Repeat("00", 792)
	later = macs + "4500026c" + "00070064" + "40116414" + "0a0000010a000002" + strings.Repeat("00", 600)
	return first, later
}

// TestFragmentsGoTheWayOfTheirDatagram asks about fragments that conntrack tracks. The live
// switch here has the datapath of userspace, which goes on with the fragments: no flow on ports matches
// them. That of Linux 6.1
// sent both fragments to p2 with a limit of 900 bytes, and to p3 with one of 800: it goes on with
// the datagram of 1434 bytes, as large as its largest fragment.
func TestFragmentsGoTheWayOfTheirDatagram(t *testing.T) {
	first, later := fragments()
	for limit, out := range map[int]string{900: "2", 800: "3"} {
		counted := ""
		path := node(t, func(s *ovs.Switch) {
			s.Vsctl("add-br", "br-int")
			for i := range 4 {
				p := fmt.Sprintf("p%d", i+1)
				s.Vsctl("add-port", "br-int", p, "--", "set", "Interface", p, "type=internal",
					fmt.Sprintf("ofport_request=%d", i+1))
			}
			s.Ofctl("del-flows", "br-int")
			for _, f := range []string{"table=0,in_port=1,ip,actions=ct(commit,zone=5,table=1)",
				fmt.Sprintf("table=1,priority=10,udp,tp_dst=53,actions=check_pkt_larger(%d)->NXM_NX_REG0[0],resubmit(,2)", limit),
				"table=1,priority=9,ip,nw_frag=later,actions=output:4", "table=1,priority=9,ip,nw_frag=first,actions=output:4",
				"table=2,reg0=0,actions=output:2", "table=2,reg0=1,actions=output:3"} {
				s.Ofctl("-O", "OpenFlow15", "add-flow", "br-int", f)
			}
			s.Appctl("dpctl/ipf-set-min-frag", "v4", "400") // it takes no smaller ones
			for _, digits := range []string{first, later} {
				s.Appctl("netdev-dummy/receive", "p1", digits)
			}
			isDone := func() bool {
				s.Appctl("revalidator/purge")
				counted = s.Ofctl("-O", "OpenFlow15", "dump-flows", "br-int")
				return strings.Contains(flowWith(counted, "nw_frag=later"), "n_packets=1,") &&
					strings.Contains(flowWith(counted, "nw_frag=first"), "n_packets=1,")
			}
			ovs.Await(t, fmt.Sprintf("both fragments in the flows of limit %d", limit), isDone, func() string { return counted })
		})
		hosts := []*host.Host{open(t, "a", path)}
		for _, c := range []struct {
			userspace bool
			digits    string
			want      string
		}{{true, first, "p4"}, {true, later, "p4"}, {false, first, "p" + out}, {false, later, "p" + out}} {
			hosts[0].Conntrack.Userspace = c.userspace
			f, err := sets.Frame(c.digits)
			if err != nil {
				t.Fatal(err)
			}
			whole, _ := sets.Frame(first)
			start := follow.Start{Node: "a", InPort: "p1", Packet: f.Packet, Size: f.Size, First: &whole.Packet,
				FirstSize: whole.Size}
			if got := ends(t, hosts, follow.Options{}, start); !leads(got, "delivered a "+c.want) {
				t.Errorf("limit %d, userspace %v, %s: %q, want %s", limit, c.userspace, f.Packet.Get("nw_frag"), got, c.want)
			}
			if start.First = nil; c.digits == later {
				if got := ends(t, hosts, follow.Options{}, start); !leads(got, "undetermined a - conntrack reassembles fragments") {
					t.Errorf("without the first fragment: %q", got)
				}
			}
		}
	}
}

// flowWith returns the line of a dump with a text.
func flowWith(dump, text string) string {
	for line := range strings.Lines(dump) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}
