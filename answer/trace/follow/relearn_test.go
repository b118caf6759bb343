package follow_test

import (
	"strings"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/test/daemons/ovs"
)

// TestNodeLearnsFromAPacketThatComesByATunnel has a first packet that is dropped at the other
// end of a tunnel while a flow is learned there: in a clone, from a register, for one value of
// the metadata. Its repetition begins again on the first node.
func TestNodeLearnsFromAPacketThatComesByATunnel(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	side := func(own, other, in string, flows ...string) func(s *ovs.Switch) {
		return func(s *ovs.Switch) {
			s.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip="+own, "--", "add-br", "br-int", "--",
				"add-port", "br-int", in, "--", "set", "Interface", in, "type=internal", "ofport_request=1", "--",
				"add-port", "br-int", "tun", "--", "set", "Interface", "tun", "type=geneve", "ofport_request=2", "options:key=flow",
				"options:remote_ip="+other)
			s.Ofctl("del-flows", "br-int")
			for _, f := range flows {
				s.Ofctl("add-flow", "br-int", f)
			}
		}
	}
	learns := func(metadata string) []string {
		return []string{
			"table=0,in_port=2,ip,actions=move:NXM_NX_TUN_ID[0..31]->NXM_NX_REG1[],set_field:" + metadata +
				"->metadata,ct(table=1,zone=7)",
			"table=1,actions=set_field:0x3->reg2,clone(set_field:0x5->metadata,resubmit(,2)),set_field:0x9->reg3",
			"table=2,actions=resubmit(,78),resubmit(,3)",
			"table=3,reg4=0xb,actions=output:1",
			"table=3,reg4=0,ip,actions=ct(commit,zone=7),learn(table=78,NXM_NX_REG1[],OXM_OF_METADATA[],eth_type=0x800,NXM_OF_IP_SRC[],load:0xb->NXM_NX_REG4[])",
			"table=78,priority=1,metadata=0x6,actions=drop",
		}
	}
	for _, c := range []struct {
		name  string
		flows []string
		want  string
	}{
		{"the learned flow matches", learns("0x1"), "delivered b p2"},
		{"the learned flow is for another table",
			strings.Split(strings.ReplaceAll(strings.Join(learns("0x1"), "\n"), "learn(table=78", "learn(table=79"), "\n"),
			"dropped b - no action sends"},
		{"the learned flow is for other metadata",
			strings.Split(strings.Replace(strings.Join(learns("0x1"), "\n"), "table=3,reg4=0,ip,actions=",
				"table=3,reg4=0,ip,actions=set_field:0x7->metadata,", 1), "\n"), "dropped b - no action sends"},
		{"a flow of higher priority comes first",
			append(learns("0x1"), "table=78,priority=40000,actions=set_field:0xc->reg4"), "dropped b - no flow of table 3"},
		{"a group can't be executed again", strings.Split(strings.Replace(strings.Join(learns("0x1"), "\n"),
			"actions=set_field:0x3->reg2,", "actions=check_pkt_larger(1000)->NXM_NX_REG2[0],", 1), "\n"),
			"undetermined b - the flow that an earlier packet adds to table 78 of br-int (learn) is not evaluated: action \"check_pkt_larger(1000)->NXM_NX_REG2[0]\" can't be executed again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := node(t, side("192.168.0.1", "192.168.0.2", "p1", "in_port=1,actions=set_field:0x7b->tun_id,output:2"))
			b := node(t, side("192.168.0.2", "192.168.0.1", "p2", c.flows...))
			hosts := []*host.Host{open(t, "a", a), open(t, "b", b)}
			got := ends(t, hosts, follow.Options{}, follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)})
			if !leads(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
