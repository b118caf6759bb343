package odp

import "testing"

func TestFloodsAreComparedByOutput(t *testing.T) {
	const flow = "Flow: arp,in_port=1,dl_vlan=20,dl_vlan_pcp=0,dl_src=02:00:00:00:00:fe,dl_dst=ff:ff:ff:ff:ff:ff,arp_spa=10.0.0.1,arp_op=1"
	same := func(want bool, a, b string) {
		t.Helper()
		if x, y := FloodOutputs(a, flow), FloodOutputs(b, flow); (x == y) != want {
			t.Errorf("%s\n%s\nthe same: %v, want %v:\n%s\n%s", a, b, x == y, want, x, y)
		}
	}
	same(true, "1,2,pop_vlan,3", "2,1,pop_vlan,3")
	same(true, "pop_vlan,3,push_vlan(vid=20,pcp=0),1", "1,pop_vlan,3")
	same(false, "pop_vlan,3,push_vlan(vid=21,pcp=0),1", "1,pop_vlan,3")
	same(false, "1,pop_vlan,2", "2,pop_vlan,1")
	same(false, "1,2", "1,2,2")
	same(true, "5,set(eth(src=02:42:00:00:00:02,dst=02:00:00:00:00:fe)),7",
		"set(eth(src=02:42:00:00:00:02,dst=02:00:00:00:00:fe)),7,set(eth(src=02:00:00:00:00:fe,dst=ff:ff:ff:ff:ff:ff)),5")
	same(false, "5,set(eth(src=02:42:00:00:00:02)),7", "set(eth(src=02:42:00:00:00:03)),7,set(eth(src=02:00:00:00:00:fe)),5")
	same(false, "trunc(100),1,2", "1,trunc(100),2")
	same(true, "trunc(100),1,2", "2,trunc(100),1")
	same(true, "clone(set(tunnel(dst=1.1.1.1)),9),4", "4,clone(set(tunnel(dst=1.1.1.1)),9)")
	same(true, "clone(tnl_push(a),7),4", "4,tnl_push(a),7")
	same(false, "set(tunnel(dst=1.1.1.1)),9,set(tunnel(dst=1.1.1.2)),9", "set(tunnel(dst=1.1.1.1)),9,set(tunnel(dst=1.1.1.3)),9")
}
