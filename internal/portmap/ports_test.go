package portmap

import (
	"testing"

	"ovs-offline/test/check/expect"
)

func TestTranslatePorts(t *testing.T) {
	ports := Ports{"6081": "5", "5": "6081", "100": "2"}
	for line, want := range map[string]string{
		"Datapath actions: 6081":       "Datapath actions: 5",
		"Datapath actions: 5,100,7":    "Datapath actions: 6081,2,7",
		"Datapath actions: drop":       "Datapath actions: drop",
		"    output:6081":              "    output:6081", // an OpenFlow port
		"Flow: udp,in_port=5,tp_dst=5": "Flow: udp,in_port=5,tp_dst=5",
		"Datapath actions: set(tunnel(tun_id=0x5,dst=10.0.0.1,ttl=64,tp_dst=6081,flags(df|csum|key))),6081":       "Datapath actions: set(tunnel(tun_id=0x5,dst=10.0.0.1,ttl=64,tp_dst=6081,flags(df|csum|key))),5",
		"Datapath actions: clone(ct(commit,zone=5),100),check_pkt_len(size=100,gt(6081),le(set(eth(src=1)),100))": "Datapath actions: clone(ct(commit,zone=5),2),check_pkt_len(size=100,gt(5),le(set(eth(src=1)),2))",
		"recirc_id(0),in_port(5),eth(), packets:5, bytes:100, used:5s, actions:push_vlan(vid=5,pcp=0),100":        "recirc_id(0),in_port(6081),eth(), packets:5, bytes:100, used:5s, actions:push_vlan(vid=5,pcp=0),2",
		"in_port(eth0),actions:eth1": "in_port(eth0),actions:eth1",
	} {
		expect.Equal(t, ports.Translate(line), want, line)
	}
}
