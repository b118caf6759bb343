package trace

import (
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/test/daemons/ovs"
)

// TestDropHasTheWordsOfTheSwitch asks about a tagged packet to an access port, of which only a
// remark of ovs-vswitchd says why it is dropped.
func TestDropHasTheWordsOfTheSwitch(t *testing.T) {
	live := ovs.Start(t)
	live.Vsctl("add-br", "br0", "--", "set", "Bridge", "br0", "datapath_type=system", "--", "add-port", "br0", "p1",
		"tag=5", "--", "set", "Interface", "p1", "ofport_request=1", "--", "add-port", "br0", "p2")
	s := captured(t, live, nil, nil)
	a, err := s.Flow(t.Context(), "", "br0 in_port=1,dl_vlan=9,ip,dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2", 0)
	if err != nil {
		t.Fatal(err)
	}
	if a.Verdict != answer.Unreachable || a.Drop == nil ||
		!strings.Contains(a.Drop.Rule, "VLAN 9 tagged packet received on port p1") {
		t.Errorf("%s", text(a))
	}
}

// TestFailedStartIsInDoubt has a node that listens to VXLAN, which no port of its database does:
// all answers by way of the node may be wrong.
func TestFailedStartIsInDoubt(t *testing.T) {
	live := ovs.Start(t)
	live.Vsctl("add-br", "br-phy", "--", "set", "Bridge", "br-phy", "datapath_type=system", "--", "add-br", "br0", "--",
		"set", "Bridge", "br0", "datapath_type=system", "--",
		"add-port", "br0", "p1", "--", "set", "Interface", "p1", "ofport_request=1", "--", "add-port", "br0", "tun", "--",
		"set", "Interface", "tun", "type=geneve", "options:remote_ip=10.1.0.9")
	s := captured(t, live, nil, map[string]string{
		"recorded/bridges/br-phy/dpif.show-dp-features": "Tunnel push pop: Yes\n",
		"recorded/ovs.route.show":                       "Cached: 10.1.0.0/24 dev br-phy SRC 10.1.0.2\n",
		"recorded/tnl.ports.show":                       "vxlan_sys_4789 (4789) : eth(dst=52:54:00:00:00:01),eth_type(0x0800),ipv4(dst=10.1.0.2,proto=17,frag=no),udp(dst=4789)\n",
	})
	a, err := s.Flow(t.Context(), "", "br0 in_port=1,ip,dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2", 0)
	if err != nil {
		t.Fatal(err)
	}
	const doubt = "its start could not restore native tunnels: the replica has no port vxlan_sys_4789"
	if !a.IsIncomplete() || !strings.Contains(text(a), doubt) || strings.Contains(text(a), "100 %") {
		t.Errorf("exit as if nothing were missing: %v\n%s", !a.IsIncomplete(), text(a))
	}
}
