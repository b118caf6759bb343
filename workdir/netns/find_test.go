package netns_test

import (
	"testing"

	"ovs-offline/internal/iproute"
	"ovs-offline/workdir/netns"
)

// TestPeers joins the ends of pairs between namespaces by what ip prints of them.
func TestPeers(t *testing.T) {
	all := []netns.Namespace{
		{Name: netns.Own, Links: iproute.Links("3: veth0@veth1: <UP> mtu 1500\n4: veth1@veth0: <UP> mtu 1500\n5: eth0.7@eth0: <UP> mtu 1500\n")},
		{Name: "qrouter-a", Links: iproute.Links("3: rfp-aaaaaaaa-a@if3: <UP> mtu 1500\n8: rfp-lonely-1@if99: <UP> mtu 1500\n")},
		{Name: "qrouter-b", Links: iproute.Links("3: rfp-bbbbbbbb-b@if4: <UP> mtu 1500\n")},
		{Name: "fip-n", Links: iproute.Links("3: fpr-aaaaaaaa-a@if3: <UP> mtu 1500\n4: fpr-bbbbbbbb-b@if3: <UP> mtu 1500\n9: fg-1: <UP> mtu 1500\n")},
	}
	for _, c := range []struct{ namespace, device, other, peer string }{
		{"qrouter-a", "rfp-aaaaaaaa-a", "fip-n", "fpr-aaaaaaaa-a"},
		{"fip-n", "fpr-bbbbbbbb-b", "qrouter-b", "rfp-bbbbbbbb-b"},
		{"", "veth0", "", "veth1"},
		{"qrouter-a", "rfp-lonely-1", "", ""},
		{"fip-n", "fg-1", "", ""},
		{"", "eth0.7", "", ""},
	} {
		other, peer, ok := netns.Peer(all, c.namespace, c.device)
		if other != c.other || peer != c.peer || ok != (c.peer != "") {
			t.Errorf("%s of %q: %s of %q, %v; want %s of %q", c.device, c.namespace, peer, other, ok, c.peer, c.other)
		}
	}
}
