package rules

import (
	"testing"

	"ovs-offline/test/generate/ovndb"
)

// balanced builds a switch with load balancers; each is a list of VIPs and backends in turn.
func balanced(balancers ...[]string) func(*network) {
	return func(n *network) {
		n.owner("Logical_Switch", "blue", ovndb.Row{})
		n.port("blue", "a", []string{"02:00:00:00:00:01 10.0.0.1"}, nil)
		for i, vips := range balancers {
			n.has("blue", "load_balancer", n.addNB("Load_Balancer",
				ovndb.Row{"name": string(rune('a' + i)), "vips": ovndb.Map(vips...)}))
		}
	}
}

// service builds a load balancer of a service of Kubernetes.
func service(n *network, name, balancer, vip, backends string) {
	n.has("blue", "load_balancer", n.addNB("Load_Balancer", ovndb.Row{"name": balancer, "vips": ovndb.Map(vip, backends),
		"external_ids": ovndb.Map("k8s.ovn.org/kind", "Service", "k8s.ovn.org/owner", name)}))
}

// checked builds a load balancer with a health check and the status of its backends.
func checked(mapping string, status ...string) func(*network) {
	return func(n *network) {
		n.owner("Logical_Switch", "blue", ovndb.Row{})
		n.port("blue", "a", []string{"02:00:00:00:00:01 10.0.0.1"}, nil)
		check := n.addNB("Load_Balancer_Health_Check", ovndb.Row{"vip": "10.0.0.9:80"})
		row := ovndb.Row{"name": "lb", "vips": ovndb.Map("10.0.0.9:80", "10.0.0.1:8080,10.0.0.2:8080"), "health_check": check,
			"ip_port_mappings": ovndb.Map("10.0.0.1", mapping, "10.0.0.2", "a:10.0.0.3")}
		n.has("blue", "load_balancer", n.addNB("Load_Balancer", row))
		for i, s := range status {
			n.addSB("Service_Monitor", ovndb.Row{"ip": []string{"10.0.0.1", "10.0.0.2"}[i], "port": 8080, "protocol": "tcp",
				"logical_port": "a", "status": s})
		}
	}
}

// translated builds a switch of two instances with a load balancer, connected to a router with a floating IP; more adds what the case is about.
func translated(backends, inner string, more func(*network)) func(*network) {
	return func(n *network) {
		n.owner("Logical_Switch", "blue", ovndb.Row{})
		n.owner("Logical_Router", "main", ovndb.Row{})
		n.routerPort("main", "to-blue", "02:00:00:00:00:99", "blue", "10.0.0.254/24")
		n.port("blue", "a", []string{"02:00:00:00:00:01 10.0.0.1"}, nil)
		n.port("blue", "b", []string{"02:00:00:00:00:02 10.0.0.2"}, ovndb.Row{"port_security": "02:00:00:00:00:02 10.0.0.2 10.0.0.50"})
		n.has("blue", "load_balancer", n.addNB("Load_Balancer",
			ovndb.Row{"name": "lb", "vips": ovndb.Map("10.0.0.200:80", backends)}))
		if inner != "" {
			n.has("main", "nat", n.addNB("NAT", ovndb.Row{"type": "dnat_and_snat", "external_ip": "192.0.2.9", "logical_ip": inner}))
		}
		if more != nil {
			more(n)
		}
	}
}

// TestAddressesOfNobody checks backends and floating IPs that lead to addresses that no port has, or that something may have.
func TestAddressesOfNobody(t *testing.T) {
	outside := func(n *network) { n.port("blue", "provnet", []string{"unknown"}, ovndb.Row{"type": "localnet"}) }
	unknown := func(n *network) { n.port("blue", "c", []string{"unknown"}, nil) }
	disabled := func(n *network) {
		n.port("blue", "c", []string{"02:00:00:00:00:03 10.0.0.77"}, ovndb.Row{"enabled": false})
	}
	one := []string{"warning: VIP 10.0.0.200:80 of load balancer lb: no port has the address of 1 of 2 backends: 10.0.0.77:80"}
	test(t, map[string]testCase{
		"backends":          {balancerBackendVacant, translated("10.0.0.1:80,10.0.0.2:80", "", nil), nil},
		"a backend is gone": {balancerBackendVacant, translated("10.0.0.1:80,10.0.0.77:80", "", nil), one},
		"all are gone": {balancerBackendVacant, translated("10.0.0.77:80", "", nil),
			[]string{"error: VIP 10.0.0.200:80 of load balancer lb: no port has the address of 1 of 1 backend: 10.0.0.77:80"}},
		"the router itself":        {balancerBackendVacant, translated("10.0.0.254:80", "", nil), nil},
		"an allowed address":       {balancerBackendVacant, translated("10.0.0.50:80", "", nil), nil},
		"another network":          {balancerBackendVacant, translated("10.9.0.1:80", "", nil), nil},
		"a link-local address":     {balancerBackendVacant, translated("169.254.169.2:80", "", nil), nil},
		"a network outside":        {balancerBackendVacant, translated("10.0.0.77:80", "", outside), nil},
		"a port of any address":    {balancerBackendVacant, translated("10.0.0.77:80", "", unknown), nil},
		"a disabled port":          {balancerBackendVacant, translated("10.0.0.77:80", "", disabled), nil},
		"a floating IP":            {natWithoutPort, translated("", "10.0.0.1", nil), nil},
		"a floating IP of outside": {natWithoutPort, translated("", "10.0.0.77", outside), nil},
		"a floating IP of nobody": {natWithoutPort, translated("", "10.0.0.77", nil), []string{"error: floating ip 192.0.2.9 for 10.0.0.77 " +
			"of router main leads to an address that no port of switch blue has"}},
	})
}

func TestLoadBalancers(t *testing.T) {
	test(t, map[string]testCase{
		"backends": {balancerWithoutBackends, balanced([]string{"10.0.0.9:80", "10.0.0.1:80"}), nil},
		"no backends": {balancerWithoutBackends, balanced([]string{"10.0.0.9:80", ""}),
			[]string{"warning: VIP 10.0.0.9:80 of load balancer a has no backends"}},
		"several without": {balancerWithoutBackends, balanced([]string{"10.0.0.9:80", "", "10.0.0.8:80", " , "}),
			[]string{"warning: 2 load balancers have no backends: VIP 10.0.0.8:80 of load balancer a, VIP 10.0.0.9:80 of load balancer a"}},
		"one without users": {balancerWithoutBackends, func(n *network) {
			n.addNB("Load_Balancer", ovndb.Row{"name": "idle", "vips": ovndb.Map("10.0.0.9:80", "")})
		}, nil},
		"a service whose node has no endpoint": {balancerWithoutBackends, func(n *network) {
			balanced()(n)
			service(n, "ns/web", "Service_ns/web_TCP_cluster", "10.96.0.1:80", "10.0.0.1:80")
			service(n, "ns/web", "Service_ns/web_TCP_node_switch_n1", "172.18.0.2:30000", "")
		}, nil},
		"a service of nodes alone": {balancerWithoutBackends, func(n *network) {
			balanced()(n)
			service(n, "ns/local", "Service_ns/local_TCP_node_switch_n1", "10.96.0.2:80", "")
		}, nil},
		"a service without endpoints": {balancerWithoutBackends, func(n *network) {
			balanced()(n)
			service(n, "ns/none", "Service_ns/none_TCP_cluster", "10.96.0.3:80", "")
			service(n, "ns/none", "Service_ns/none_TCP_node_switch_n1", "172.18.0.2:30003", "")
		}, []string{"warning: Service ns/none has no backends"}},
		"one VIP": {duplicateVIP, balanced([]string{"10.0.0.9:80", "10.0.0.1:80"},
			[]string{"10.0.0.9:80", "10.0.0.2:80"}),
			[]string{"error: VIP 10.0.0.9:80 of load balancer a is a VIP of load balancer b too, and switch blue uses both"}},
		"one VIP, twice": {duplicateVIP, balanced([]string{"10.0.0.9:80", "10.0.0.1:80,10.0.0.2:80"},
			[]string{"10.0.0.9:80", "10.0.0.2:80, 10.0.0.1:80"}), nil},
		"one VIP, two ports": {duplicateVIP, balanced([]string{"10.0.0.9:80", "10.0.0.1:80"},
			[]string{"10.0.0.9:81", "10.0.0.2:80"}), nil},
		"in a group": {duplicateVIP, func(n *network) {
			balanced([]string{"10.0.0.9:80", "10.0.0.1:80"})(n)
			other := n.addNB("Load_Balancer", ovndb.Row{"name": "other", "vips": ovndb.Map("10.0.0.9:80", "10.0.0.2:80")})
			n.has("blue", "load_balancer_group", n.addNB("Load_Balancer_Group",
				ovndb.Row{"name": "group", "load_balancer": other}))
		}, []string{"error: VIP 10.0.0.9:80 of load balancer a is a VIP of load balancer other too, and switch blue uses both"}},
		"of two protocols": {duplicateVIP, func(n *network) {
			balanced([]string{"10.0.0.9:53", "10.0.0.1:53"})(n)
			n.has("blue", "load_balancer", n.addNB("Load_Balancer",
				ovndb.Row{"name": "udp", "protocol": "udp", "vips": ovndb.Map("10.0.0.9:53", "10.0.0.2:53")}))
		}, nil},
		"well formed": {balancerMalformed, balanced([]string{"10.0.0.9", "10.0.0.1,10.0.0.2", "[fd00::9]:80",
			"[fd00::1]:80", "fd00::8", "fd00::1", "10.0.0.8:80", ""}), nil},
		"a VIP of words": {balancerMalformed, balanced([]string{"web:80", "10.0.0.1:80"}),
			[]string{"error: VIP web:80 of load balancer a is malformed: it is no address with a port"}},
		"another family": {balancerMalformed, balanced([]string{"10.0.0.9:80", "10.0.0.1:80,[fd00::1]:80"}),
			[]string{"error: VIP 10.0.0.9:80 of load balancer a is malformed: its backend [fd00::1]:80 is no such address"}},
		"a template": {balancerMalformed, func(n *network) {
			n.addNB("Load_Balancer", ovndb.Row{"name": "t", "vips": ovndb.Map("^NODEIP:80", "^BACKENDS"),
				"options": ovndb.Map("template", "true")})
		}, nil},
		"unused": {balancerUnused, func(n *network) {
			n.addNB("Load_Balancer", ovndb.Row{"name": "idle", "vips": ovndb.Map("10.0.0.9:80", "10.0.0.1:80")})
		}, []string{"warning: no switch or router uses load balancer idle"}},
		"unused and empty": {balancerUnused, func(n *network) { n.addNB("Load_Balancer", ovndb.Row{"name": "idle"}) }, nil},
		"used":             {balancerUnused, balanced([]string{"10.0.0.9:80", "10.0.0.1:80"}), nil},
		"one down": {balancerBackendDown, checked("a:10.0.0.3", "offline", "online"),
			[]string{"warning: VIP 10.0.0.9:80 of load balancer lb: 1 of 2 backends down: 10.0.0.1:8080"}},
		"all down": {balancerBackendDown, checked("a:10.0.0.3", "offline", "error"),
			[]string{"error: VIP 10.0.0.9:80 of load balancer lb: 2 of 2 backends down: 10.0.0.1:8080, 10.0.0.2:8080"}},
		"not asked yet": {balancerBackendDown, checked("a:10.0.0.3"), nil},
		"all probed":    {balancerCheckWithoutProbe, checked("a:10.0.0.3"), nil},
		"probed nowhere": {balancerCheckWithoutProbe, checked("gone:10.0.0.3"),
			[]string{"warning: VIP 10.0.0.9:80 of load balancer lb has a health check that does not probe 10.0.0.1:8080"}},
		"probed by a zone": {balancerCheckWithoutProbe, checked("gone:10.0.0.3:zone"), nil},
	})
}
