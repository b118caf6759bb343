package rules

import (
	"fmt"
	"os"
	"testing"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
	"ovs-offline/workdir"
	"ovs-offline/workdir/services"
)

func rowID(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-000000000001", n) }

// kubeOVNRows are rows as the controller of kube-ovn 1.14.10 wrote them.
func kubeOVNRows() ovndb.Rows {
	acl := func(priority int, direction, match, action string, ids ...string) ovndb.Row {
		return ovndb.Row{"priority": priority, "direction": direction, "match": match, "action": action, "tier": 2,
			"external_ids": ovndb.Map(ids...)}
	}
	group := func(name string, acl int, ids ...string) ovndb.Row {
		return ovndb.Row{"name": name, "acls": ovndb.UUID(rowID(acl)), "external_ids": ovndb.Map(ids...)}
	}
	vendor := ovndb.Map("vendor", "kube-ovn")
	return ovndb.Rows{
		"Logical_Router": {
			rowID(1): {"name": "ovn-cluster", "external_ids": vendor,
				"policies": ovndb.Set(ovndb.UUID(rowID(51)), ovndb.UUID(rowID(52)), ovndb.UUID(rowID(53)), ovndb.UUID(rowID(54)))},
			rowID(2): {"name": "blue", "external_ids": vendor, "policies": ovndb.UUID(rowID(55))},
			rowID(3): {"name": "edge", "external_ids": vendor, "load_balancer": ovndb.UUID(rowID(63)),
				"nat": ovndb.Set(ovndb.UUID(rowID(71)), ovndb.UUID(rowID(72)))},
		},
		"Logical_Switch": {
			rowID(5): {"name": "vault", "external_ids": vendor, "acls": ovndb.Set(ovndb.UUID(rowID(31)), ovndb.UUID(rowID(32)))},
			rowID(6): {"name": "blue-a", "external_ids": vendor},
			rowID(7): {"name": "shop", "external_ids": vendor, "acls": ovndb.UUID(rowID(33))},
		},
		"Logical_Switch_Port": {
			rowID(10): {"name": "e1.edge", "external_ids": ovndb.Map("associated_sg_default-securitygroup", "false", "ls",
				"edge-a", "pod", "edge/e1", "vendor", "kube-ovn")},
			rowID(11): {"name": "node-node1", "external_ids": ovndb.Map("ls", "join", "vendor", "kube-ovn")},
			rowID(12): {"name": "blue-a-blue", "type": "router",
				"external_ids": ovndb.Map("ls", "blue-a", "vendor", "kube-ovn")},
			rowID(13): {"name": "localnet.external", "type": "localnet",
				"external_ids": ovndb.Map("ipv4_network", "172.19.0.0/24", "ls", "external", "vendor", "kube-ovn")},
		},
		"Logical_Router_Port": {
			rowID(15): {"name": "blue-blue-a", "external_ids": ovndb.Map("lr", "blue", "vendor", "kube-ovn")},
			rowID(16): {"name": "blue-edge", "external_ids": ovndb.Map("lr", "blue", "vendor", "kube-ovn")},
		},
		"Port_Group": {
			rowID(20): group("db.for.front.shop", 40, "np", "shop/db-for-front"),
			rowID(21): group("node.node1", 41, "node", "node1", "np", "node/node1"),
			rowID(22): {"name": "shop.node2", "external_ids": ovndb.Map("node", "node2", "np", "shop/node2", "subnet", "shop",
				"vendor", "kube-ovn")},
			rowID(23): {"name": "ovn.sg.web", "acls": ovndb.Set(ovndb.UUID(rowID(42)), ovndb.UUID(rowID(43)),
				ovndb.UUID(rowID(44))), "external_ids": ovndb.Map("sg", "web", "type", "security_group")},
			rowID(30): group("default", 46, "banp", "default"),
			rowID(24): group("ovn.sg.kubeovn_deny_all", 45, "sg", "kubeovn_deny_all", "type", "security_group"),
		},
		"Address_Set": {
			rowID(26): {"name": "closed.front.egress.except.IPv4.0", "external_ids": ovndb.Map("np", "front/closed/egress")},
			rowID(27): {"name": "closed.green.ingress.allow.IPv6.all", "external_ids": ovndb.Map("np", "green/closed/ingress")},
			rowID(29): {"name": "no.guard.ingress.0.no.guard.IPv4", "external_ids": ovndb.Map("anp", "no-guard/ingress")},
			rowID(28): {"name": "ovn.sg.web.associated.v4", "external_ids": ovndb.Map("sg", "web")},
		},
		"ACL": {
			rowID(31): acl(1000, "to-lport", "ip", "drop", "parent", "vault"),
			rowID(32): acl(1001, "to-lport", "ip4.src == 10.18.0.0/24 && ip4.dst == 10.18.0.0/24", "allow-related", "parent",
				"vault"),
			rowID(33): acl(1010, "to-lport", "udp.dst == 8080", "drop", "parent", "shop", "subnet", "shop"),
			rowID(40): acl(2000, "to-lport", "outport == @db.for.front.shop && ip", "drop", "parent", "db.for.front.shop"),
			rowID(41): acl(3000, "to-lport", "ip4.src == 172.18.0.2 && ip4.dst == $node.node1_ip4", "allow-related", "parent",
				"node.node1"),
			rowID(42): acl(2290, "from-lport", "inport == @ovn.sg.web && ip4 && ip4.dst == 0.0.0.0/0", "allow-related", "parent",
				"ovn.sg.web"),
			rowID(43): acl(2004, "to-lport", "outport == @ovn.sg.web && ip4 && ip4.src == $ovn.sg.web.associated.v4",
				"allow-related", "parent", "ovn.sg.web"),
			rowID(44): acl(2005, "from-lport", "inport == @ovn.sg.web && arp", "allow-related", "parent", "ovn.sg.web"),
			rowID(46): acl(1800, "from-lport", "inport == @default && ip && ip4.dst == $default.egress.0.no.vault.IPv4", "drop",
				"parent", "default"),
			rowID(45): acl(2003, "from-lport", "inport == @ovn.sg.kubeovn_deny_all && ip", "drop", "parent",
				"ovn.sg.kubeovn_deny_all"),
		},
		"Logical_Router_Policy": {
			rowID(51): {"priority": 29000, "match": "ip4.src == $shop.node2_ip4", "action": "reroute", "nexthops": "100.64.0.3",
				"external_ids": ovndb.Map("node", "node2", "subnet", "shop", "vendor", "kube-ovn")},
			rowID(52): {"priority": 30000, "match": "ip4.dst == 172.18.0.2", "action": "reroute", "nexthops": "100.64.0.2",
				"external_ids": ovndb.Map("address-family", "4", "node", "node1", "vendor", "kube-ovn")},
			rowID(53): {"priority": 31000, "match": "ip4.dst == 10.17.0.0/24", "action": "allow",
				"external_ids": ovndb.Map("subnet", "shop", "vendor", "kube-ovn")},
			rowID(54): {"priority": 29000, "match": "ip4.src == 10.19.0.0/24", "action": "reroute", "nexthops": "100.64.0.3",
				"external_ids": ovndb.Map("node2", "100.64.0.3", "subnet", "middle", "vendor", "kube-ovn")},
			rowID(55): {"priority": 32000, "match": "ip4.src == 10.31.0.0/24", "action": "drop", "nexthops": "",
				"external_ids": vendor},
		},
		"Load_Balancer": {
			rowID(61): {"name": "cluster-tcp-loadbalancer", "protocol": "tcp",
				"vips": ovndb.Map("10.96.161.24:5432", "10.17.0.11:8080", "10.96.222.47:80", "10.16.0.2:8080", "10.96.222.47:443",
					"10.16.0.2:8443")},
			rowID(62): {"name": "vpc-blue-tcp-sess-load", "protocol": "tcp"},
			rowID(63): {"name": "edge-dnat", "protocol": "tcp", "vips": ovndb.Map("172.19.0.52:80", "10.40.0.3:8080")},
		},
		"NAT": {
			rowID(71): {"type": "snat", "external_ip": "172.19.0.50", "logical_ip": "10.40.0.0/24"},
			rowID(72): {"type": "dnat_and_snat", "external_ip": "172.19.0.51", "logical_ip": "10.40.0.2",
				"logical_port": "e1.edge", "external_mac": "be:f6:68:d0:d4:93"},
		},
		"DHCP_Options": {rowID(80): {"cidr": "10.32.0.0/24",
			"external_ids": ovndb.Map("ls", "green-a", "protocol", "IPv4", "vendor", "kube-ovn")}},
	}
}

// kubeOVNRules returns the names of those rows, with the services of their cluster.
func kubeOVNRules(t *testing.T) *Northbound {
	t.Helper()
	nb := ovndb.Create(t, ovs.NBSchema)
	nb.Add(kubeOVNRows())
	file := nb.Close()
	text, err := services.Marshal([]services.Service{
		{Namespace: "shop", Name: "db", Addresses: []string{"10.96.161.24"},
			Ports: []services.Port{{Protocol: "tcp", Port: 5432}}},
		{Namespace: "front", Name: "web", Addresses: []string{"10.96.222.47"},
			Ports: []services.Port{{Protocol: "tcp", Port: 80}}},
		{Namespace: "front", Name: "tls", Addresses: []string{"10.96.222.47"},
			Ports: []services.Port{{Protocol: "tcp", Port: 443}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(workdir.ServicesBeside(file), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return newNorthbound(open(t, file))
}

// TestWordsOfKubeOVN names each kind of row.
func TestWordsOfKubeOVN(t *testing.T) {
	n := kubeOVNRules(t)
	for _, c := range []struct {
		table string
		row   int
		want  string
	}{
		{"Logical_Router", 2, "VPC blue"},
		{"Logical_Switch", 5, "subnet vault"},
		{"Logical_Switch_Port", 10, "pod edge/e1 (port e1.edge)"},
		{"Logical_Switch_Port", 11, "port node/node1 (node-node1)"},
		{"Logical_Switch_Port", 12, "subnet blue-a to VPC blue (port blue-a-blue)"},
		{"Logical_Switch_Port", 13, "subnet external to its physical network (port localnet.external)"},
		{"Logical_Router_Port", 15, "VPC blue to subnet blue-a (router port blue-blue-a)"},
		{"Logical_Router_Port", 16, "VPC blue to VPC edge (router port blue-edge)"},
		{"Port_Group", 20, "port group of NetworkPolicy shop/db-for-front (db.for.front.shop)"},
		{"Port_Group", 21, "port group of node node1 (node.node1)"},
		{"Port_Group", 22, "port group of subnet shop, pods on node2 (shop.node2)"},
		{"Port_Group", 23, "port group of security group web (ovn.sg.web)"},
		{"Address_Set", 26, "address set of NetworkPolicy front/closed, egress rule 0, IPv4, exceptions (closed.front.egress.except.IPv4.0)"},
		{"Address_Set", 27, "address set of NetworkPolicy green/closed, ingress, IPv6 (closed.green.ingress.allow.IPv6.all)"},
		{"Address_Set", 28, "address set of security group web, IPv4 (ovn.sg.web.associated.v4)"},
		{"Address_Set", 29, "address set of AdminNetworkPolicy no-guard, ingress, IPv4 (no.guard.ingress.0.no.guard.IPv4)"},
		{"Port_Group", 30, "port group of BaselineAdminNetworkPolicy default (default)"},
		{"ACL", 46, "BaselineAdminNetworkPolicy default (ACL priority 1800, drop, tier 2)"},
		{"ACL", 31, "private subnet vault (ACL priority 1000, drop, tier 2)"},
		{"ACL", 33, "subnet shop (ACL priority 1010, drop, tier 2)"},
		{"ACL", 40, "NetworkPolicy shop/db-for-front (ACL priority 2000, drop, tier 2)"},
		{"ACL", 41, "node node1 and its pods (ACL priority 3000, allow-related, tier 2)"},
		{"ACL", 42, "security group web, rule priority 10 (ACL priority 2290, allow-related, tier 2)"},
		{"ACL", 43, "security group web, traffic between members (ACL priority 2004, allow-related, tier 2)"},
		{"ACL", 44, "security group web, ARP, DHCP and neighbours (ACL priority 2005, allow-related, tier 2)"},
		{"ACL", 45, "security groups: default deny (ACL priority 2003, drop, tier 2)"},
		{"Logical_Router_Policy", 51, "subnet shop, pods on node2 (policy route priority 29000: ip4.src == $shop.node2_ip4, reroute to 100.64.0.3)"},
		{"Logical_Router_Policy", 52, "node node1 (policy route priority 30000: ip4.dst == 172.18.0.2, reroute to 100.64.0.2)"},
		{"Logical_Router_Policy", 53, "subnet shop (policy route priority 31000: ip4.dst == 10.17.0.0/24, allow)"},
		{"Logical_Router_Policy", 54, "subnet middle (policy route priority 29000: ip4.src == 10.19.0.0/24, reroute to 100.64.0.3)"},
		{"Logical_Router_Policy", 55, "policy route priority 32000: ip4.src == 10.31.0.0/24, drop"},
		{"Load_Balancer", 61, "services of VPC ovn-cluster (load balancer cluster-tcp-loadbalancer)"},
		{"Load_Balancer", 62, "services of VPC blue (load balancer vpc-blue-tcp-sess-load)"},
		{"Load_Balancer", 63, "OvnDnatRule edge-dnat (load balancer edge-dnat)"},
		{"NAT", 71, "EIP 172.19.0.50, SNAT for 10.40.0.0/24"},
		{"NAT", 72, "EIP 172.19.0.51, FIP for edge/e1 (10.40.0.2)"},
		{"DHCP_Options", 80, "DHCP options of subnet green-a"},
	} {
		if got, err := n.DescribeNorthbound(c.table, rowID(c.row)); err != nil || got != c.want {
			t.Errorf("%s: %s %v\nwant %s", c.table, got, err, c.want)
		}
	}
}

// TestServiceOfALogicalFlow names the service of a logical flow, whose load balancer has those of a
// whole VPC.
func TestServiceOfALogicalFlow(t *testing.T) {
	n := kubeOVNRules(t)
	row, _, err := n.nb.Row("Load_Balancer", rowID(61))
	if err != nil {
		t.Fatal(err)
	}
	for match, want := range map[string]string{
		"ct.new && ip4.dst == 10.96.161.24 && reg1[16..23] == 6 && reg1[0..15] == 5432": "Service shop/db (load balancer cluster-tcp-loadbalancer)",
		"ct.new && ip4.dst == 10.96.222.47 && reg1[16..23] == 6 && reg1[0..15] == 443":  "Service front/tls (load balancer cluster-tcp-loadbalancer)",
		"reg0[2] == 1 && ip4.dst == 10.96.161.24 && tcp.dst == 5432":                    "Service shop/db (load balancer cluster-tcp-loadbalancer)",
		"ip && ip4.dst == 10.96.222.47":                                                 "services of VPC ovn-cluster (load balancer cluster-tcp-loadbalancer)",
		"ip":                                                                            "services of VPC ovn-cluster (load balancer cluster-tcp-loadbalancer)",
	} {
		if got := n.explain("Load_Balancer", row, Rule{Match: match}).Words; got != want {
			t.Errorf("%s: %s\nwant %s", match, got, want)
		}
	}
}

// TestACLInPlaceOfAnother finds the ACL of a logical flow whose hint names a row that is gone.
func TestACLInPlaceOfAnother(t *testing.T) {
	n := kubeOVNRules(t)
	vault := ovn.Datapath{Name: "vault", Northbound: rowID(5)}
	for _, c := range []struct {
		what string
		rule Rule
		want string
	}{
		{"of a subnet", Rule{Pipeline: "egress", Stage: "ls_out_acl_eval", Priority: 2000,
			Match: "reg8[30..31] == 2 && reg0[9] == 1 && (ip)", Datapath: vault},
			"private subnet vault (ACL priority 1000, drop, tier 2)"},
		{"of another subnet", Rule{Pipeline: "egress", Stage: "ls_out_acl_eval", Priority: 2000,
			Match: "reg8[30..31] == 2 && reg0[9] == 1 && (ip)", Datapath: ovn.Datapath{Name: "shop", Northbound: rowID(7)}}, ""},
		{"of a port group", Rule{Pipeline: "egress", Stage: "ls_out_acl_eval", Priority: 3000,
			Match: "reg8[30..31] == 2 && reg0[9] == 1 && (outport == @db.for.front.shop && ip)"},
			"NetworkPolicy shop/db-for-front (ACL priority 2000, drop, tier 2)"},
		{"another direction", Rule{Pipeline: "ingress", Stage: "ls_in_acl_eval", Priority: 2000,
			Match: "reg8[30..31] == 2 && reg0[9] == 1 && (ip)", Datapath: vault}, ""},
		{"another tier", Rule{Pipeline: "egress", Stage: "ls_out_acl_eval", Priority: 2000,
			Match: "reg8[30..31] == 1 && reg0[9] == 0 && (ip)", Datapath: vault}, ""},
		{"of no ACL", Rule{Pipeline: "egress", Stage: "ls_out_acl_eval", Priority: 65532, Match: "ct.inv", Datapath: vault},
			""},
	} {
		if cause, err := n.cause("fbe24cda", c.rule); err != nil || cause.Words != c.want {
			t.Errorf("%s: %q %v, want %q", c.what, cause.Words, err, c.want)
		}
	}
}

// TestNetworksOfKubeOVN names datapaths.
func TestNetworksOfKubeOVN(t *testing.T) {
	n := kubeOVNRules(t)
	for want, d := range map[string]ovn.Datapath{"VPC blue": {Name: "blue", Router: true}, "subnet vault": {Name: "vault"},
		"": {Name: "blue"}} {
		if got := n.called(d); got != want {
			t.Errorf("%+v: %q, want %q", d, got, want)
		}
	}
	for _, row := range []ovsdb.Row{{}} {
		if got := n.network("Logical_Switch", row); got != "" {
			t.Errorf("a switch of another: %q", got)
		}
	}
}
