package whatif

import (
	"testing"

	"ovs-offline/answer/trace/answer"
)

// TestPacketsInTheWordsOfOVN writes packets as ovn-trace takes them.
func TestPacketsInTheWordsOfOVN(t *testing.T) {
	for packet, want := range map[string]string{
		"tcp,vlan_tci=0x0000,dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0," +
			"nw_ecn=0,nw_ttl=64,nw_frag=no,tcp_src=33000,tcp_dst=22,tcp_flags=syn": `inport == "p" && ` +
			`eth.src == 0a:00:00:00:00:01 && eth.dst == 0a:00:00:00:00:02 && ip4.src == 10.0.0.1 && ` +
			`ip4.dst == 10.0.0.2 && ip.ttl == 64 && tcp.src == 33000 && tcp.dst == 22`,
		"icmp,nw_src=10.0.0.1,nw_dst=10.0.0.2,icmp_type=8,icmp_code=0": `inport == "p" && ip4.src == 10.0.0.1 && ` +
			`ip4.dst == 10.0.0.2 && icmp4.type == 8 && icmp4.code == 0`,
		"icmp6,ipv6_src=fd00::1,ipv6_dst=fd00::2,ipv6_label=0x00000,icmpv6_type=128,icmpv6_code=0": `inport == "p" && ` +
			`ip6.src == fd00::1 && ip6.dst == fd00::2 && icmp6.type == 128 && icmp6.code == 0`,
	} {
		traced := &answer.Answer{Path: []answer.Hop{{Location: answer.Location{LogicalPort: "p"}, Packet: packet}}}
		if got := logicalPacket(traced); got != want {
			t.Errorf("%s\nis %s\nnot %s", packet, got, want)
		}
	}
	if got := logicalPacket(&answer.Answer{Path: []answer.Hop{{Packet: "icmp"}}}); got != "" {
		t.Errorf("a packet from outside is %s", got)
	}
}
