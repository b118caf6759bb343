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
	same(false, "5,set(eth(src=02:42:00:00:00:02)),7",
		"set(eth(src=02:42:00:00:00:03)),7,set(eth(src=02:00:00:00:00:fe)),5")
	same(false, "trunc(100),1,2", "1,trunc(100),2")
	same(true, "trunc(100),1,2", "2,trunc(100),1")
	same(true, "clone(set(tunnel(dst=1.1.1.1)),9),4", "4,clone(set(tunnel(dst=1.1.1.1)),9)")
	same(true, "clone(tnl_push(a),7),4", "4,tnl_push(a),7")
	same(false, "set(tunnel(dst=1.1.1.1)),9,set(tunnel(dst=1.1.1.2)),9",
		"set(tunnel(dst=1.1.1.1)),9,set(tunnel(dst=1.1.1.3)),9")
	const set = "set(tunnel(tun_id=0x74,src=192.168.50.21,dst=192.168.50.10,ttl=64,tp_dst=4789,flags(df|key)))"
	same(true, "push_vlan(vid=1,pcp=0),br-int,"+set+",pop_vlan,vxlan_sys_4789,qr-1,tap2",
		"tap2,"+set+",vxlan_sys_4789,push_vlan(vid=1,pcp=0),br-int,pop_vlan,qr-1")
	same(false, "br-int,"+set+",vxlan_sys_4789,qr-1",
		"br-int,set(tunnel(tun_id=0x75,src=192.168.50.21,dst=192.168.50.10,ttl=64,tp_dst=4789,flags(df|key))),vxlan_sys_4789,qr-1")
	same(true, "1,clone(ct(commit,zone=5),recirc(0x1)),2", "2,clone(ct(commit,zone=5),recirc(0x1)),1")
}

// TestFloodsRestoreAllFields compares floods that change headers for some ports and change
// them back for others.
func TestFloodsRestoreAllFields(t *testing.T) {
	const flow = "Flow: udp,in_port=1,dl_src=02:00:00:00:01:01,dl_dst=ff:ff:ff:ff:ff:ff,nw_src=10.0.1.1,nw_dst=10.0.0.1,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=1000,tp_dst=2000"
	for _, c := range []struct {
		port string // that gets the packet changed
		same bool
	}{{"set(ipv4(tos=0x20/0xfc,ttl=9)),set(udp(dst=99)),q12", true},
		{"set(ipv4(tos=0x20/0xfc,ttl=9)),set(udp(dst=98)),q12", false},
		{"set(ipv4(tos=0x24/0xfc,ttl=9)),set(udp(dst=99)),q12", false}, {"set(ipv4(ttl=9)),set(udp(dst=99)),q12", false}} {
		recorded := "p2,set(ipv4(tos=0x20/0xfc,ttl=9)),set(udp(dst=99)),q12,set(ipv4(tos=0/0xfc,ttl=64)),set(udp(dst=2000)),clone(ct(commit,zone=5),recirc(0x2)),p3"
		now := "p3,clone(ct(commit,zone=5),recirc(0x7)),p2," + c.port
		if same := Normal(recorded, true, flow) == Normal(now, true, flow); same != c.same {
			t.Errorf("%s: the same: %v, want %v", c.port, same, c.same)
		}
	}
}
