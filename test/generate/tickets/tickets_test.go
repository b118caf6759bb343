package tickets

import (
	"testing"
)

// node is a small node.
func node() *Node {
	return &Node{Name: "n1", Version: "OpenFlow13", Peer: "br1", Outputs: []Output{
		{SwitchShow, "", "ovs-vsctl show", "ed379305-0dbf-4c3f-bca5-396ba0aaea58\n    Bridge br0\n        Port p1\n            Interface p1\n    Bridge br1\n"},
		{Show, "br0", "ovs-ofctl -O OpenFlow13 show br0", "OFPT_FEATURES_REPLY (OF1.3) (xid=0x2): dpid:0000000000000001\n 1(p1): addr:aa:55:aa:55:00:01\n"},
		{Flows, "br0", "ovs-ofctl -O OpenFlow13 dump-flows br0", "OFPST_FLOW reply (OF1.3) (xid=0x2):\n cookie=0x0, duration=1.0s, table=0, n_packets=0, n_bytes=0, priority=2,in_port=1 actions=resubmit(,1)\n" +
			" cookie=0x0, duration=1.0s, table=1, n_packets=1, n_bytes=9, priority=2,arp actions=output:2\n cookie=0x0, duration=1.0s, table=1, n_packets=0, n_bytes=0, priority=1,ip,dl_dst=00:00:00:00:00:01 actions=drop\n" +
			" cookie=0x0, duration=1.0s, table=1, n_packets=2, n_bytes=0, priority=0 actions=NORMAL\n"},
		{Groups, "br0", "ovs-ofctl -O OpenFlow13 dump-groups br0", "OFPST_GROUP_DESC reply (OF1.3) (xid=0x2):\n group_id=1,type=all,bucket=actions=output:1\n"},
	}, Named: []Output{{Flows, "br0", "ovs-ofctl -O OpenFlow13 --names dump-flows br0", " cookie=0x0, duration=1.0s, table=0, n_packets=0, n_bytes=0, in_port=p1 actions=drop\n"}}}
}

// TestFormsAreDifferentTexts makes each form twice of the same node.
func TestFormsAreDifferentTexts(t *testing.T) {
	forms := Forms()
	if len(forms) < 25 {
		t.Errorf("%d forms, want 25", len(forms))
	}
	names, texts := map[string]bool{}, map[string]string{}
	for _, f := range forms {
		name := f.Kind + "/" + f.Name
		if names[name] || f.Kind == "" || f.Shows == "" {
			t.Errorf("%s is not named or described once", name)
		}
		names[name] = true
		text := f.Write(node())
		if text != f.Write(node()) {
			t.Errorf("%s: two texts of one node differ", name)
		}
		if other := texts[text]; other != "" {
			t.Errorf("%s is the same as %s", name, other)
		}
		texts[text] = name
	}
}
