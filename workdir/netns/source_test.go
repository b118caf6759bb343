package netns

import (
	"net/netip"
	"testing"

	"ovs-offline/internal/iproute"
)

// TestSourceOf has the devices and routes of a node of OVN-Kubernetes.
func TestSourceOf(t *testing.T) {
	links := iproute.Links(`1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536
    inet 127.0.0.1/8 scope host lo
2: breth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500
    inet 172.18.0.2/24 brd 172.18.0.255 scope global breth0
    inet 169.254.169.2/29 brd 169.254.169.7 scope global breth0
3: ovn-k8s-mp0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400
    inet 10.244.1.2/24 brd 10.244.1.255 scope global ovn-k8s-mp0
`)
	routes := iproute.AllRoutes(`default via 172.18.0.1 dev breth0
10.96.0.0/16 via 169.254.169.4 dev breth0 src 169.254.169.2 mtu 1400
10.96.0.0/16 via 10.244.1.1 dev ovn-k8s-mp0 table 7
10.244.0.0/16 via 10.244.1.1 dev ovn-k8s-mp0
172.18.0.0/24 dev breth0 proto kernel scope link src 172.18.0.2
local 172.18.0.2 dev breth0 table local proto kernel scope host src 172.18.0.2
`)
	n := Namespace{Links: links, Routes: routes}
	for to, want := range map[string]string{"10.96.3.4": "169.254.169.2", "10.244.2.6": "10.244.1.2",
		"172.18.0.3": "172.18.0.2", "172.18.0.2": "172.18.0.2", "8.8.8.8": "172.18.0.2"} {
		if got, ok := n.SourceOf(netip.MustParseAddr(to)); !ok || got.String() != want {
			t.Errorf("to %s: %v, want %s", to, got, want)
		}
	}
	if got, ok := n.SourceOf(netip.MustParseAddr("2001:db8::1")); ok {
		t.Errorf("without a route: %v", got)
	}
}
