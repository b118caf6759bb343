package follow

import (
	"fmt"
	"testing"

	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/pass"
)

// TestLearnedFlowMattersWhereItMayMatch has passes as ovs-vswitchd prints them: a learn
// action of OVN for a backend that reaches itself through its service, and one of ML2/OVS
// for the port behind which a MAC address is.
func TestLearnedFlowMattersWhereItMayMatch(t *testing.T) {
	const (
		hairpin = "tcp,in_port=3,dl_src=0a:58:0a:f4:03:06,dl_dst=0a:58:0a:f4:03:01,nw_src=10.244.3.6,nw_dst=10.244.3.6,nw_ttl=64,tp_src=40000,tp_dst=8080"
		learns  = "68. tcp,nw_src=10.244.3.6, priority 100, cookie 0x22e96faf\n    learn(table=69,delete_learned,cookie=0x22e96faf,OXM_OF_METADATA[],eth_type=0x800,NXM_OF_IP_SRC[],ip_dst=169.254.169.5,nw_proto=6,NXM_OF_TCP_SRC[]=NXM_OF_TCP_DST[],load:0x1->NXM_NX_REG10[7])\n     >> suppressing side effects, so learn action ignored\n"
		reply   = "tcp,in_port=3,nw_src=10.244.3.6,nw_dst=169.254.169.5,nw_ttl=64,tp_src=8080,tp_dst=40000"
		misses  = "69. No match.\n        drop\n"

		tunnel = "icmp,in_port=2,dl_src=fa:16:3e:00:00:01,dl_dst=fa:16:3e:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2"
		port   = "0. in_port=2, priority 1, cookie 0x8d\n    goto_table:10\n10. priority 1, cookie 0x8d\n    learn(table=20,hard_timeout=300,priority=1,cookie=0x8d,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:0->NXM_OF_VLAN_TCI[],load:NXM_NX_TUN_ID[]->NXM_NX_TUN_ID[],output:OXM_OF_IN_PORT[])\n     >> suppressing side effects, so learn action ignored\n    output:1\n"
		back   = "icmp,in_port=1,dl_src=fa:16:3e:00:00:02,dl_dst=fa:16:3e:00:00:01,nw_src=10.0.0.2,nw_dst=10.0.0.1"
	)
	tests := []struct {
		name                       string
		first, does, then, lookups string
		matters                    bool
	}{
		{"the reply of a backend that reaches itself", hairpin, learns, reply, misses, true},
		{"another destination", hairpin, learns, "tcp,in_port=3,nw_src=10.244.3.6,nw_dst=10.244.1.5,tp_src=8080,tp_dst=40000",
			misses, false},
		{"a destination that the pass sets", hairpin, learns,
			"tcp,in_port=3,nw_src=10.244.3.6,nw_dst=10.244.1.5,tp_src=8080,tp_dst=40000",
			"8. priority 0\n    set_field:169.254.169.5->ip_dst\n" + misses, true},
		{"another port", hairpin, learns, "tcp,in_port=3,nw_src=10.244.3.6,nw_dst=169.254.169.5,tp_src=8443,tp_dst=40000",
			misses, false},
		{"another protocol", hairpin, learns, "udp,in_port=3,nw_src=10.244.3.6,nw_dst=169.254.169.5,tp_src=8080,tp_dst=40000",
			misses, false},
		{"another table", hairpin, learns, reply, "68. No match.\n        drop\n", false},
		{"the same flow with its priority", hairpin, learns, reply,
			"69. tcp,nw_src=10.244.3.6,nw_dst=169.254.169.5,tp_src=8080, priority 32768, cookie 0x22e96faf\n    load:0x1->NXM_NX_REG10[7]\n", false},
		{"a flow of higher priority", hairpin, learns, reply, "69. tcp, priority 40000, cookie 0x1\n    drop\n", false},

		{"a packet to the address", tunnel, port, back, "20. No match.\n        drop\n", true},
		{"a packet to another address", tunnel, port,
			"icmp,in_port=1,dl_dst=fa:16:3e:00:00:09,nw_src=10.0.0.2,nw_dst=10.0.0.9", "20. No match.\n        drop\n", false},
		{"a flow of the agent's comes first", tunnel, port, back,
			"20. dl_dst=fa:16:3e:00:00:01, priority 2, cookie 0x8d\n    output:3\n", false},
		{"the port, learned earlier", tunnel, port, back,
			"20. dl_dst=fa:16:3e:00:00:01, priority 1, cookie 0x8d\n    output:2\n", false},
		{"another port, learned earlier", tunnel, port, back,
			"20. dl_dst=fa:16:3e:00:00:01, priority 1, cookie 0x8d\n    output:3\n", true},
		{"a flood to all tunnels", tunnel, port, back,
			"20. priority 0, cookie 0x8d\n    resubmit(,22)\n22. dl_vlan=1, priority 1, cookie 0x8d\n    output:2\n    output:3\n", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			first := &query{host: &host.Host{Name: "node"}, pass: printed(t, test.first, test.does)}
			learned := learnedIn(first, len(first.pass.Stages))
			later := printed(t, test.then, test.lookups)
			matters := false
			for i := range later.Stages {
				matters = matters || learned[0].mayDecide(later, i)
			}
			if len(learned) != 1 || matters != test.matters {
				t.Errorf("learned %+v, which matters: %v", learned, matters)
			}
		})
	}
}

// printed returns a pass on one bridge.
func printed(t *testing.T, packet, stages string) *pass.Pass {
	t.Helper()
	passes, err := pass.Parse(fmt.Sprintf("Flow: %s\n\nbridge(\"br-int\")\n----------------\n%s\nFinal flow: unchanged\nMegaflow: eth\nDatapath actions: drop\n", packet, stages))
	if err != nil {
		t.Fatal(err)
	}
	return passes[0]
}

// TestFlowIsLearnedOnce keeps the memory of a capture file with many equal connections small.
func TestFlowIsLearnedOnce(t *testing.T) {
	var s *State
	for range 3 {
		for _, l := range learnedIn(&query{host: &host.Host{Name: "node"},
			pass: printed(t, "tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2",
				"68. tcp, priority 1\n    learn(table=69,NXM_OF_IP_SRC[])\n")}, 1) {
			s = s.learn(l)
		}
	}
	if s.learnedFlows() == nil || s.learnedFlows().before != nil {
		t.Errorf("learned %+v, want one flow", s.learnedFlows())
	}
}
