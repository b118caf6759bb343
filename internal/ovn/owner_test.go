package ovn

import (
	"encoding/json"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/test/check/expect"
)

// TestOwnersOfKubernetes checks the words for rows of ovn-kubernetes da86b2aa; pkg/libovsdb/ops/db_object_types.go has their
// external_ids.
func TestOwnersOfKubernetes(t *testing.T) {
	for _, c := range []struct{ kind, name, direction, what, want string }{
		{"NetworkPolicy", "ns1:web", "Ingress", "", "NetworkPolicy ns1/web"},
		{"NetpolNamespace", "ns1", "Ingress", "defaultDeny", "NetworkPolicies of namespace ns1: default deny ingress"},
		{"NetpolNamespace", "ns1", "Egress", "arpAllow", "NetworkPolicies of namespace ns1: ARP and ND are allowed, egress"},
		{"NetpolDefault", "allow-hairpinning", "Ingress", "", "NetworkPolicies: allow hairpinning ingress"},
		{"NetpolNode", "node1", "", "", "NetworkPolicies: traffic from node node1"},
		{"NetpolNode", "blue_blue.net_node1", "", "", "NetworkPolicies: traffic from node node1"},
		{"EgressIP", "egressip-1_ns1/web-0", "", "", "EgressIP egressip-1 for ns1/web-0"},
		{"EgressIP", "EIP-No-Reroute-Pod-To-Pod", "", "", "traffic that takes no EgressIP: EIP-No-Reroute-Pod-To-Pod"},
		{"UDNIsolation", "advertised-network-isolation", "", "",
			"isolation of user-defined networks: advertised-network-isolation"},
		{"ClusterNetworkConnect", "red-blue", "", "", "ClusterNetworkConnect red-blue"},
	} {
		ids := map[string]string{"k8s.ovn.org/owner-type": c.kind, "k8s.ovn.org/name": c.name, "direction": c.direction,
			"type": c.what}
		if got := Owner(ids); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.name, got, c.want)
		}
	}
}

// TestPoliciesHaveTheirNames checks that a row is known by the NetworkPolicy that it was made from.
func TestPoliciesHaveTheirNames(t *testing.T) {
	row := ovsdb.ParseRow("", map[string]json.RawMessage{"name": json.RawMessage(`"a14918748166599097711"`),
		"external_ids": json.RawMessage(`["map",[["k8s.ovn.org/owner-type","NetworkPolicy"],["k8s.ovn.org/name","ns1:web"]]]`)})
	expect.Equal(t, RowNames("Port_Group", row), []string{"a14918748166599097711", "NetworkPolicy ns1/web", "ns1/web"})
}
