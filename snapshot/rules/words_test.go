package rules

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
)

// TestRulesAreInTheWordsOfTheUser lets ovn-northd make logical flows of rows with the
// external_ids that ovn-kubernetes, neutron and kube-ovn write, and finds each row by the
// cookies of its flows.
func TestRulesAreInTheWordsOfTheUser(t *testing.T) {
	c := ovs.StartCentral(t)
	c.Northd()
	c.Nbctl("--wait=sb", "ls-add", "worker-1", "--", "lr-add", "r1", "--", "set", "Logical_Router", "r1",
		"options:chassis=gw",
		"--", "lsp-add", "worker-1", "ns1_web-0", "--", "lsp-set-addresses", "ns1_web-0",
		"0a:58:0a:f4:00:03 10.244.0.3 fd00::3",
		"--", "lrp-add", "r1", "rtos-worker-1", "0a:58:0a:f4:00:01", "10.244.0.1/24", "fd00::1/64",
		"--", "lsp-add", "worker-1", "stor-worker-1", "--", "lsp-set-type", "stor-worker-1", "router",
		"--", "lsp-set-addresses", "stor-worker-1", "router", "--", "lsp-set-options", "stor-worker-1",
		"router-port=rtos-worker-1",
		"--", "lrp-add", "r1", "rtoe", "0a:58:0a:f4:00:09", "192.0.2.1/24")
	acl := func(group, ids, name string, rest ...string) {
		t.Helper()
		args := []string{"--id=@acl", "create", "ACL",
			"match=\"outport == @" + group + " && ip4.dst == 10.244.0.3 && tcp.dst == " + rest[2] + "\"",
			"direction=to-lport", "priority=" + rest[0], "action=" + rest[1]}
		if ids != "" {
			args = append(args, "external_ids="+ids)
		}
		if name != "" {
			args = append(args, "name=\""+name+"\"")
		}
		c.Nbctl(append(args, "--", "add", "Port_Group", group, "acls", "@acl")...)
	}
	for _, group := range []string{"a1", "neutron_pg_drop", "pg_5b6f7081_92a3_44b4_85c6_d7e8f9a0b101", "np.ns"} {
		c.Nbctl("pg-add", group, "ns1_web-0")
	}
	c.Nbctl("set", "Port_Group", "pg_5b6f7081_92a3_44b4_85c6_d7e8f9a0b101",
		"external_ids:neutron\\:security_group_id=5b6f7081-92a3-44b4-85c6-d7e8f9a0b101",
		"--", "set", "Port_Group", "np.ns", "external_ids:np=ns2/kubeovn")
	k8s := func(kind, name, more string) string {
		return `{"k8s.ovn.org/owner-controller"=default-network-controller,"k8s.ovn.org/owner-type"=` + kind +
			`,"k8s.ovn.org/name"="` + name + `"` + more + `}`
	}
	acl("a1", k8s("NetworkPolicy", "ns2:deny-all", ",direction=Ingress"), "NP:ns2:deny-all:Ingress", "1001",
		"allow-related", "1")
	acl("a1", k8s("NetpolNamespace", "ns2", ",direction=Ingress,type=defaultDeny"), "NP:ns2:Ingress", "1000", "drop", "2")
	acl("a1", k8s("AdminNetworkPolicy", "cluster-control", ",direction=Ingress"), "ANP:cluster-control:Ingress:0", "26600",
		"drop", "3")
	acl("a1", k8s("BaselineAdminNetworkPolicy", "default", ",direction=Ingress"), "BANP:default:Ingress:0", "1750", "drop",
		"4")
	acl("a1", k8s("EgressFirewall", "ns3", `,"rule-index"="0"`), "EF:ns3:0", "10000", "drop", "5")
	acl("a1", "{policy=old,namespace=ns4}", "", "1002", "drop", "6")
	acl("a1", "", "by-hand", "900", "reject", "7")
	acl("a1", "", "", "901", "drop", "8")
	acl("neutron_pg_drop", "", "", "1001", "drop", "9")
	acl("pg_5b6f7081_92a3_44b4_85c6_d7e8f9a0b101",
		`{"neutron:security_group_rule_id"="831a9274-3660-414b-89d3-b698c3b2eec2"}`, "", "1002", "allow-related", "10")
	acl("np.ns", "", "", "2000", "drop", "11")
	c.Nbctl("lr-route-add", "r1", "198.51.100.0/24", "10.244.0.3", "--", "--policy=src-ip", "lr-route-add", "r1",
		"10.244.9.0/24", "10.244.0.3",
		"--", "lr-policy-add", "r1", "200", "ip4.src == 10.244.0.9", "drop", "--", "lr-policy-add", "r1", "100",
		"ip4.src == 10.244.0.8", "reroute", "10.244.0.3",
		"--", "lr-policy-add", "r1", "101", "ip4.src == 10.244.0.6", "reroute", "10.244.0.2",
		"--", "lr-nat-add", "r1", "snat", "192.0.2.1", "10.244.0.0/24", "--", "lr-nat-add", "r1", "dnat_and_snat",
		"192.0.2.5", "10.244.0.3",
		"--", "lr-nat-add", "r1", "snat", "192.0.2.7", "10.244.0.7",
		"--", "qos-add", "worker-1", "to-lport", "998", "ip4.dst == 10.244.0.3", "dscp=26")
	c.Nbctl("set", "Logical_Router_Policy", uuidOf(c, "Logical_Router_Policy", "priority=100"),
		"external_ids:name=egressip-1",
		"--", "set", "Logical_Router_Policy", uuidOf(c, "Logical_Router_Policy", "priority=101"),
		"external_ids:EgressSVC=ns1/out",
		"--", "set", "NAT", uuidOf(c, "NAT", "logical_ip=10.244.0.7"),
		"external_ids="+k8s("EgressIP", "egressip-1_ns1/web-0", ""))
	c.Nbctl("--id=@lb", "create", "Load_Balancer", "name=Service_ns2/db_TCP_cluster", "protocol=tcp",
		`vips="10.96.3.4:5432"="10.244.0.3:5432"`,
		`external_ids="k8s.ovn.org/kind"=Service,"k8s.ovn.org/owner"="ns2/db"`, "--", "add", "Logical_Switch", "worker-1",
		"load_balancer", "@lb",
		"--", "--id=@e", "create", "Load_Balancer", "name=lb-plain", "protocol=tcp", `vips="10.96.3.5:80"=""`,
		"options:reject=true",
		"--", "add", "Logical_Switch", "worker-1", "load_balancer", "@e")
	c.Nbctl("--wait=sb", "sync")
	c.Stop()

	r := New(open(t, c.NB), open(t, c.SB))
	words := map[string]bool{}
	layout := Layout{Ingress: 8, IngressEnd: 39, Egress: 48, EgressEnd: 63}
	for row, err := range r.sb.Rows(logicalFlow) {
		if err != nil {
			t.Fatal(err)
		}
		f := Flow{Cookie: cookieOf(t, row.UUID), Table: layout.Ingress + number(row, "table_id"),
			Priority: number(row, "priority"), Layout: layout}
		if row.String("pipeline") == "egress" {
			f.Table += layout.Egress - layout.Ingress
		}
		rule, ok, err := r.Find(f)
		if err != nil || !ok || rule.UUID != row.UUID || rule.Match != row.String("match") ||
			rule.Stage != row.Map("external_ids")["stage-name"] {
			t.Errorf("logical flow %s: %+v %v", row.UUID, rule, err)
		}
		words[rule.Words] = true
	}
	for _, want := range []string{
		"NetworkPolicy ns2/deny-all (ACL priority 1001, allow-related)",
		"NetworkPolicies of namespace ns2: default deny ingress (ACL priority 1000, drop)",
		"AdminNetworkPolicy cluster-control (ACL priority 26600, drop)",
		"BaselineAdminNetworkPolicy default (ACL priority 1750, drop)",
		"EgressFirewall of namespace ns3 (ACL priority 10000, drop)",
		"NetworkPolicy ns4/old (ACL priority 1002, drop)",
		"ACL by-hand (priority 900, reject)",
		"ACL of port group a1 (priority 901, drop)",
		"security groups: default drop (port group neutron_pg_drop) (ACL priority 1001, drop)",
		"security group 5b6f7081-92a3-44b4-85c6-d7e8f9a0b101, rule 831a9274-3660-414b-89d3-b698c3b2eec2 (ACL priority 1002, allow-related)",
		"NetworkPolicy ns2/kubeovn (ACL priority 2000, drop)",
		"route 198.51.100.0/24 via 10.244.0.3 of router r1",
		"route for source 10.244.9.0/24 via 10.244.0.3 of router r1",
		"policy route priority 200: ip4.src == 10.244.0.9, drop of router r1",
		"EgressIP egressip-1 (policy route priority 100: ip4.src == 10.244.0.8, reroute to 10.244.0.3) of router r1",
		"EgressService ns1/out (policy route priority 101: ip4.src == 10.244.0.6, reroute to 10.244.0.2) of router r1",
		"snat 192.0.2.1 for 10.244.0.0/24 of router r1",
		"floating ip 192.0.2.5 for 10.244.0.3 of router r1",
		"EgressIP egressip-1 for ns1/web-0 (snat 192.0.2.7 for 10.244.0.7) of router r1",
		"QoS rule (priority 998, ip4.dst == 10.244.0.3) of switch worker-1",
		"Service ns2/db (load balancer Service_ns2/db_TCP_cluster)",
		"load balancer lb-plain, which has no backends",
		"pod ns1/web-0 (port ns1_web-0)",
		"router port rtos-worker-1",
	} {
		if !words[want] {
			t.Errorf("no rule %q", want)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(slices.Sorted(maps.Keys(words)), "\n"))
	}
}

// uuidOf returns the UUID of the row that a condition of ovn-nbctl finds.
func uuidOf(c *ovs.Central, table, condition string) string {
	return strings.TrimSpace(c.Nbctl("--bare", "--columns=_uuid", "find", table, condition))
}

func cookieOf(tb testing.TB, uuid string) uint64 {
	tb.Helper()
	cookie, err := strconv.ParseUint(uuid[:8], 16, 32)
	if err != nil {
		tb.Fatal(err)
	}
	return cookie
}

// TestSetsOfKubernetes checks the words for port groups and address sets, whose names are hashes.
func TestSetsOfKubernetes(t *testing.T) {
	for _, c := range []struct{ kind, name, more, value, controller, want string }{
		{"NetworkPolicy", "shop:db", "", "", "default-network-controller", "address set of NetworkPolicy shop/db (a1)"},
		{"Namespace", "shop", "ip-family", "v4", "default-network-controller", "address set of namespace shop, IPv4 (a1)"},
		{"PodSelector", "blue_LS{ML:{app: b,},}", "ip-family", "v6", "blue_net-blue-network-controller",
			"address set of pods of namespace blue with LS{ML:{app: b,},}, IPv6, of network blue/net-blue (a1)"},
		{"", "", "", "", "", "address set a1"},
	} {
		ids := map[string]string{"k8s.ovn.org/owner-type": c.kind, "k8s.ovn.org/name": c.name,
			"k8s.ovn.org/owner-controller": c.controller, c.more: c.value}
		if got := set("address set", "a1", ids); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
