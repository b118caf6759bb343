package names

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/terminal"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/lines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
	"ovs-offline/workdir"
	"ovs-offline/workdir/services"
)

func id(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-000000000001", n) }

// port returns a row of Logical_Switch_Port.
func port(name, addresses string, ids ...string) ovndb.Row {
	return ovndb.Row{"name": name, "addresses": addresses, "external_ids": ovndb.Map(ids...)}
}

// TestNamesOfKubernetes finds pods and services of ovn-kubernetes and kube-ovn, in a
// database of each form that they have written.
func TestNamesOfKubernetes(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	nb.Add(ovndb.Rows{
		"Logical_Switch_Port": {
			id(1): port("ns1_web-0", "0a:58:0a:f4:00:03 10.244.0.3", "namespace", "ns1", "pod", "true"),
			id(2): port("ns1.blue_ns1_web-0", "0a:58:0a:64:00:03 10.100.0.3", "namespace", "ns1", "k8s.ovn.org/network", "blue"),
			id(3): port("coredns-1.kube-system", "00:00:00:aa:00:03 10.16.0.3", "vendor", "kube-ovn", "pod",
				"kube-system/coredns-1"),
			id(4): port("node-worker-1", "00:00:00:aa:00:09 100.64.0.2", "vendor", "kube-ovn"),
			id(5): port("k8s-worker-1", "0a:58:0a:f4:00:02 10.244.0.2"),
			id(6): port("tstor-worker-2", "0a:58:64:58:00:03 100.88.0.3/16"),
			id(7): {"name": "stor-worker-1", "type": "router", "addresses": "router",
				"options": ovndb.Map("router-port", "rtos-worker-1")},
		},
		"Logical_Switch": {
			id(11): ovndb.Row{"name": "worker-1", "ports": ovndb.Set(ovndb.UUID(id(1)), ovndb.UUID(id(5)), ovndb.UUID(id(7)))},
			id(12): ovndb.Row{"name": "blue", "ports": ovndb.UUID(id(2))},
		},
		"Logical_Router_Port": {id(21): ovndb.Row{"name": "rtos-worker-1", "mac": "0a:58:0a:f4:00:01",
			"networks": "10.244.0.1/24"}},
		"Logical_Router": {id(22): ovndb.Row{"name": "cluster", "ports": ovndb.UUID(id(21))}},
		"Load_Balancer": {
			id(31): {"name": "Service_ns2/db_TCP_cluster", "protocol": "tcp",
				"external_ids": ovndb.Map("k8s.ovn.org/kind", "Service", "k8s.ovn.org/owner", "ns2/db"),
				"vips": ovndb.Map("10.96.3.4:5432", "10.244.0.3:5432,10.244.1.3:5432", "10.96.3.4:9187", "10.244.0.3:9187",
					"^NODEIP_IPv4_0:31000", "10.244.0.3:5432")},
			id(32): {"name": "Service_ns2/db_TCP_node_switch_worker-1", "protocol": "tcp",
				"external_ids": ovndb.Map("k8s.ovn.org/kind", "Service", "k8s.ovn.org/owner", "ns2/db"),
				"vips":         ovndb.Map("10.96.3.4:5432", "10.244.0.3:5432,10.244.2.3:5432")},
			id(33): {"name": "Service_ns2/old_TCP_cluster", "protocol": "tcp",
				"vips": ovndb.Map("[fd00:96::5]:80", "[fd00::3]:8080")},
			id(34): {"name": "Service_kube-system/dns_UDP_cluster", "protocol": "udp",
				"vips": ovndb.Map("10.96.0.10:53", "10.244.0.3:53")},
			id(35): {"name": "Service_kube-system/dns_TCP_cluster", "protocol": "tcp",
				"vips": ovndb.Map("10.96.0.10:53", "10.244.0.3:53")},
			id(37): {"name": "Service_ns2/db_TCP_node_router_worker-1", "protocol": "tcp",
				"vips": ovndb.Map("10.244.0.1:31000", "10.244.0.3:5432", "10.244.0.1:31001", "10.244.0.3:9187")},
			id(36): {"name": "cluster-tcp-loadbalancer", "protocol": "tcp", "vips": ovndb.Map("10.96.7.7:80", "10.16.0.3:80")},
		},
	})
	conf := ovndb.Create(t, ovs.Schema)
	conf.Add(ovndb.Rows{"Interface": {id(41): ovndb.Row{"name": "5f0c3a9b17de248",
		"external_ids": ovndb.Map("iface-id", "ns1_web-0")}}})
	n := load(t, &snapshot.Deployment{NB: open(t, nb.Close()),
		Nodes: []snapshot.Member{{Name: "worker-1", OVS: open(t, conf.Close())}}})
	for name, want := range map[string]string{
		"pod/ns1/web-0": "", "ns1/web-0": "", // ambiguous: in two networks
		"ns1_web-0":             "ns1/web-0 (pod: port ns1_web-0, 0a:58:0a:f4:00:03, 10.244.0.3, switch worker-1, on worker-1)",
		"kube-system/coredns-1": "kube-system/coredns-1 (pod: port coredns-1.kube-system, 00:00:00:aa:00:03, 10.16.0.3)",
		"coredns-1.kube-system": "kube-system/coredns-1 (pod: port coredns-1.kube-system, 00:00:00:aa:00:03, 10.16.0.3)",
		"10.96.7.7:80":          "10.96.7.7:80 (service: 10.96.7.7, tcp, load balancer cluster-tcp-loadbalancer)",
		"svc/ns2/db:5432":       "svc/ns2/db:5432 (service: 10.96.3.4, tcp, load balancer Service_ns2/db_TCP_cluster)",
		"10.96.3.4:9187":        "svc/ns2/db:9187 (service: 10.96.3.4, tcp, load balancer Service_ns2/db_TCP_cluster)",
		"svc/ns2/db":            "",
		"svc/ns2/old":           "svc/ns2/old:80 (service: fd00:96::5, tcp, load balancer Service_ns2/old_TCP_cluster)",
		"[fd00:96::5]:80":       "svc/ns2/old:80 (service: fd00:96::5, tcp, load balancer Service_ns2/old_TCP_cluster)",
		"fd00:96:0::5":          "svc/ns2/old:80 (service: fd00:96::5, tcp, load balancer Service_ns2/old_TCP_cluster)",
		"svc/kube-system/dns":   "",
		"100.88.0.3":            "tstor-worker-2 (port: 0a:58:64:58:00:03, 100.88.0.3)",
	} {
		e, err := n.Find(name, Filter{})
		if want == "" && !errors.As(err, new(*AmbiguousError)) || want != "" && (err != nil || e.String() != want) {
			t.Errorf("%s: %s %v\nwant %s", name, e, err, want)
		}
	}
	if e, err := n.Find("node/worker-1", Filter{Network: "worker-1"}); err != nil || e.LogicalPort != "k8s-worker-1" {
		t.Errorf("%s %v", e, err)
	}
	if e, err := n.Find("ns1/web-0", Filter{Network: "blue"}); err != nil || e.LogicalPort != "ns1.blue_ns1_web-0" {
		t.Errorf("%s %v", e, err)
	}
	expect.Equal(t, find(t, n, "svc/ns2/db:5432").Backends,
		[]string{"10.244.0.3:5432", "10.244.1.3:5432", "10.244.2.3:5432"}, "backends")
	if e, err := n.Find("svc/kube-system/dns:53", Filter{Protocol: "udp"}); err != nil || e.Protocol != "udp" {
		t.Errorf("%s %v", e, err)
	}
	for port, want := range map[uint16]string{22: "rtos-worker-1", 31000: "svc/ns2/db:31000", 31001: "svc/ns2/db:31001"} {
		if e, err := n.Find("10.244.0.1", Filter{Port: port}); err != nil || e.Name != want {
			t.Errorf("10.244.0.1 with port %d: %s %v, want %s", port, e, err, want)
		}
	}
	from, err := n.Find("ns1/web-0", Filter{Network: "worker-1"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.First(Question{From: from, To: find(t, n, "svc/ns2/db:5432")})
	if want := "tcp,dl_src=0a:58:0a:f4:00:03,dl_dst=0a:58:0a:f4:00:01,nw_src=10.244.0.3,nw_dst=10.96.3.4,nw_ttl=64,tcp_src=40000,tcp_dst=5432,tcp_flags=syn"; err != nil || p.Flow != want || p.Nodes[0] != "worker-1" {
		t.Errorf("%+v %v\nwant %s", p, err, want)
	}
}

// TestPodsInUserDefinedNetworks finds pods by the names that users type. The name of a pod means its port
// in the primary network of its namespace. Without a primary network, it means the port in the default
// network. The commit da86b2aa of ovn-kubernetes writes such rows.
func TestPodsInUserDefinedNetworks(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	udn := func(namespace, network, nad string) []string {
		return []string{"namespace", namespace, "pod", "true", "k8s.ovn.org/network", network, "k8s.ovn.org/nad", nad}
	}
	role := func(port, network, role string) ovndb.Row {
		return ovndb.Row{"name": network, "ports": ovndb.UUID(port),
			"external_ids": ovndb.Map("k8s.ovn.org/network", network, "k8s.ovn.org/role", role)}
	}
	nb.Add(ovndb.Rows{
		"Logical_Switch_Port": {
			id(1): port("mono_m1", "0a:58:0a:f4:00:03 10.244.0.3", "namespace", "mono", "pod", "true"),
			id(2): port("mono.mono_mono_m1", "0a:58:0a:64:00:03 10.100.0.3", udn("mono", "mono_mono", "mono/mono")...),
			id(3): port("red_r1", "0a:58:0a:f4:00:04 10.244.0.4", "namespace", "red", "pod", "true"),
			id(4): port("red.l2.net_red_r1", "0a:58:0a:65:00:04 10.101.0.4", udn("red", "red_l2-net", "red/l2-net")...),
			id(5): port("gold_g1", "0a:58:0a:f4:00:05 10.244.0.5", "namespace", "gold", "pod", "true"),
			id(6): port("gold.shared_gold_g1", "0a:58:0a:66:00:05 10.102.0.5",
				udn("gold", "cluster_udn_shared", "gold/shared")...),
		},
		"Logical_Switch": {
			id(11): {"name": "node1", "ports": ovndb.Set(ovndb.UUID(id(1)), ovndb.UUID(id(3)), ovndb.UUID(id(5)))},
			id(12): role(id(2), "mono_mono", "primary"),
			id(13): role(id(4), "red_l2-net", "secondary"),
			id(14): role(id(6), "cluster_udn_shared", "primary"),
		},
	})
	n := load(t, &snapshot.Deployment{NB: open(t, nb.Close())})
	for _, c := range []struct{ name, network, want string }{
		{"mono/m1", "", "mono.mono_mono_m1"},
		{"red/r1", "", "red_r1"},
		{"red/r1", "red/l2-net", "red.l2.net_red_r1"},
		{"red/r1", "red_l2-net", "red.l2.net_red_r1"},
		{"pod/gold/g1", "", "gold.shared_gold_g1"},
		{"gold/g1", "shared", "gold.shared_gold_g1"},
		{"gold/g1", "gold/shared", "gold.shared_gold_g1"},
		{"gold/g1", "node1", "gold_g1"},
		{"mono_m1", "", "mono_m1"},
		{"10.244.0.3", "", "mono_m1"},
	} {
		if e, err := n.Find(c.name, Filter{Network: c.network}); err != nil || e.LogicalPort != c.want {
			t.Errorf("%s in %q: %s %v, want %s", c.name, c.network, e.LogicalPort, err, c.want)
		}
	}
	expect.Equal(t, find(t, n, "gold/g1").String(),
		"gold/g1 (pod: port gold.shared_gold_g1, 0a:58:0a:66:00:05, 10.102.0.5, network shared)")
	var senders []string
	for _, e := range n.Senders() {
		senders = append(senders, e.LogicalPort)
	}
	slices.Sort(senders)
	if slices.Contains(senders, "mono_m1") || !slices.Contains(senders, "mono.mono_mono_m1") ||
		slices.Contains(senders, "gold_g1") {
		t.Errorf("senders %v: a pod with a primary network uses no other", senders)
	}
}

// TestZonesHaveNamesOfTheirOwn loads two zones of OVN interconnection.
func TestZonesHaveNamesOfTheirOwn(t *testing.T) {
	zone := func(node, pod, mac string) *snapshot.Deployment {
		nb := ovndb.Create(t, ovs.NBSchema)
		nb.Add(ovndb.Rows{"Logical_Switch_Port": {id(1): port("ns1_"+pod, mac+" 10.244.0.3"),
			id(2): port("tstor-"+node, "0a:58:64:58:00:03 100.88.0.3"),
			id(6): {"name": "tstor-other-" + node, "type": "remote"},
			id(7): {"name": "shared", "type": map[string]string{"w2": "remote"}[node]}},
			"Logical_Switch": {id(3): ovndb.Row{"name": node, "ports": ovndb.UUID(id(1))},
				id(4): ovndb.Row{"name": "transit_switch", "ports": ovndb.UUID(id(2))}},
			"Load_Balancer": {id(8): {"name": "Service_default/kubernetes_TCP_node_switch_" + node, "protocol": "tcp",
				"vips": ovndb.Map("10.96.0.1:443", mac[15:]+".0.0.1:6443")}}})
		conf := ovndb.Create(t, ovs.Schema)
		conf.Add(ovndb.Rows{"Interface": {id(5): ovndb.Row{"name": "veth",
			"external_ids": ovndb.Map("iface-id", "ns1_"+pod)}}})
		return &snapshot.Deployment{NB: open(t, nb.Close()), Nodes: []snapshot.Member{{Name: node, OVS: open(t, conf.Close())}}}
	}
	n := load(t, zone("w1", "a", "0a:58:00:00:00:01"), zone("w2", "b", "0a:58:00:00:00:02"))
	a, b := find(t, n, "ns1/a"), find(t, n, "ns1/b")
	if a.Node != "w1" || b.Node != "w2" || a.Switch != "w1" || b.Switch != "w2" {
		t.Errorf("%s %s", a, b)
	}
	if _, err := n.Find("svc/default/kubernetes:443", Filter{}); !errors.As(err, new(*AmbiguousError)) {
		t.Errorf("a service that each zone has for itself: %v", err)
	}
	for _, name := range []string{"svc/default/kubernetes", "svc/default/kubernetes:443", "10.96.0.1:443"} {
		for backend, from := range map[string]Endpoint{"01.0.0.1:6443": a, "02.0.0.1:6443": b} {
			if e, err := n.Find(name, Filter{From: &from}); err != nil || !slices.Equal(e.Backends, []string{backend}) {
				t.Errorf("%s for %s: %v %v", name, from.Name, e.Backends, err)
			}
		}
	}
	if e := find(t, n, "shared"); e.zone != 0 || find(t, n, "tstor-other-w2").zone != 1 {
		t.Errorf("a port of the first zone: %+v", e)
	}
	if _, err := n.Find("10.244.0.3", Filter{}); !errors.As(err, new(*AmbiguousError)) {
		t.Errorf("the same address in two zones: %v", err)
	}
}

// agentNode returns a node of ML2/OVS with a database, and with flows in a workdir.
func agentNode(t *testing.T, name, bridge, conf, flows string) snapshot.Member {
	t.Helper()
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n := snapshot.Member{Name: name, Dir: wd, OVS: open(t, conf)}
	if err := os.MkdirAll(wd.RestoreFlows(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(wd.DumpFile(bridge, workdir.Flows), []byte("OFPST_FLOW reply (OF1.5) (xid=0x2):\n"+flows),
		0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPortsOfTheAgentHaveNames reads the ports of two nodes of ML2/OVS, which has no OVN. The
// integration bridge of one has another name (integration_bridge of the agent).
func TestPortsOfTheAgentHaveNames(t *testing.T) {
	node := func(name, bridge, port, mac, device, flows string) snapshot.Member {
		conf := ovndb.Create(t, ovs.Schema)
		network := ovndb.Map("net_uuid", "f45fd8e4-715a-406b-910a-59cbe4faf576", "network_type", "vlan", "physical_network",
			"physnet1", "segmentation_id", "120")
		conf.Add(ovndb.Rows{
			"Interface": {id(1): ovndb.Row{"name": "tap" + port[:11], "ofport": 7,
				"external_ids": ovndb.Map("iface-id", port, "attached-mac", mac, "vm-uuid", device)},
				id(2): ovndb.Row{"name": "eno2"}, id(3): ovndb.Row{"name": "qr-1",
					"external_ids": ovndb.Map("iface-id", name+"-qr", "attached-mac", "fa:16:3e:aa:00:01")}},
			"Port": {id(4): ovndb.Row{"name": "tap" + port[:11], "tag": 3, "other_config": network,
				"interfaces": ovndb.UUID(id(1))},
				id(5): ovndb.Row{"name": "qr-1", "other_config": network, "interfaces": ovndb.UUID(id(3))}},
			"Bridge": {id(6): ovndb.Row{"name": bridge, "ports": ovndb.Set(ovndb.UUID(id(4)), ovndb.UUID(id(5)))}},
		})
		return agentNode(t, name, bridge, conf.Close(), flows)
	}
	n := load(t, &snapshot.Deployment{Nodes: []snapshot.Member{
		node("compute1", "br-int", portA, "FA:16:3E:10:00:05", server,
			" cookie=0x2f, table=71, priority=95,arp,reg5=0x7,in_port=7,dl_src=fa:16:3e:10:00:05,arp_spa=10.0.10.5 actions=resubmit(,94)\n"+
				" cookie=0x2f, table=71, priority=95,icmp6,reg5=0x7,in_port=7,icmp_type=136,nd_target=fd00:10::5 actions=resubmit(,94)\n"),
		node("compute2", "br-own", portB, "fa:16:3e:10:00:06", "x",
			" cookie=0x2f, table=24, priority=2,arp,in_port=7,arp_spa=10.0.10.6 actions=resubmit(,25)\n"),
	}})
	for _, name := range []string{portA, "a1f0c2d4", "tapa1f0c2d4-11", "fa:16:3e:10:00:05", server, "7c3c4f8a",
		"10.0.10.5", "fd00:10::5"} {
		if e := find(t, n, name); e.LogicalPort != portA || e.Node != "compute1" || e.MAC != "fa:16:3e:10:00:05" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	for to, want := range map[string]string{"10.0.10.6": "dl_dst=fa:16:3e:10:00:06,",
		"external/8.8.8.8": "dl_dst=fa:16:3e:aa:00:01,"} {
		if p, err := n.First(Question{From: find(t, n, portA), To: find(t, n, to)}); err != nil ||
			!strings.Contains(p.Flow, want) || p.Port != portA {
			t.Errorf("%s: %+v %v", to, p, err)
		}
	}
	p, err := n.First(Question{From: find(t, n, "external/10.0.10.99"), To: find(t, n, portB)})
	if err != nil || p.PhysicalNetwork != "physnet1" || !strings.Contains(p.Flow, "dl_vlan=120,") ||
		!strings.Contains(p.Flow, "dl_dst=fa:16:3e:10:00:06,") ||
		!slices.Equal(p.Nodes, []string{"compute1", "compute2"}) {
		t.Errorf("from outside: %+v %v", p, err)
	}
}

// TestTrunkOfTheAgentIsOneEndpointForEachPort reads a trunk of ML2/OVS as neutron's agent
// writes it: the tap of the parent is on a bridge of the trunk, and the patch ports between it
// and br-int have the iface-ids of the parent and of the subport as well. The numbers of ports
// on both bridges are the same.
func TestTrunkOfTheAgentIsOneEndpointForEachPort(t *testing.T) {
	conf := ovndb.Create(t, ovs.Schema)
	interfaces, ports := map[string]ovndb.Row{}, map[string]ovndb.Row{}
	bridges := map[string][]any{}
	add := func(bridge, name, kind, iface, mac string, ofport, tag int, config any) {
		n := len(ports)
		row := ovndb.Row{"name": name, "type": kind, "ofport": ofport,
			"external_ids": ovndb.Map("iface-id", iface, "attached-mac", mac)}
		interfaces[id(100+n)] = row
		port := ovndb.Row{"name": name, "interfaces": ovndb.UUID(id(100 + n))}
		if tag != 0 {
			port["tag"] = tag
		}
		if config != nil {
			port["other_config"] = config
		}
		ports[id(200+n)] = port
		bridges[bridge] = append(bridges[bridge], ovndb.UUID(id(200+n)))
	}
	const parentMAC, subMAC = "fa:16:3e:b3:43:03", "fa:16:3e:59:d5:bb"
	net := func(uuid string) any {
		return ovndb.Map("net_uuid", uuid, "network_type", "vxlan", "physical_network", "None")
	}
	add("br-int", "tpi-a1f0c2d4-11", "patch", portA, parentMAC, 1, 1, net("blue"))
	add("br-int", "spi-c4f0c2d4-44", "patch", subport, subMAC, 2, 4, net("green"))
	add("tbr-f2f98c2c-c", "tapa1f0c2d4-11", "", portA, parentMAC, 2, 0, nil)
	add("tbr-f2f98c2c-c", "tpt-a1f0c2d4-11", "patch", portA, parentMAC, 3, 0, nil)
	add("tbr-f2f98c2c-c", "spt-c4f0c2d4-44", "patch", subport, subMAC, 1, 100, nil)
	conf.Add(ovndb.Rows{"Interface": interfaces, "Port": ports, "Bridge": {
		id(1): {"name": "br-int", "ports": ovndb.Set(bridges["br-int"]...)},
		id(2): {"name": "tbr-f2f98c2c-c", "ports": ovndb.Set(bridges["tbr-f2f98c2c-c"]...)}}})
	flows := " cookie=0x2f, table=71, priority=95,arp,reg5=0x1,in_port=1,dl_src=fa:16:3e:b3:43:03,arp_spa=10.0.10.61 actions=resubmit(,94)\n" +
		" cookie=0x2f, table=71, priority=95,arp,reg5=0x2,in_port=2,dl_src=fa:16:3e:59:d5:bb,arp_spa=10.0.20.61 actions=resubmit(,94)\n"
	n := load(t, &snapshot.Deployment{Nodes: []snapshot.Member{agentNode(t, "compute1", "br-int", conf.Close(), flows)}})
	for _, name := range []string{portA, "a1f0c2d4", "tapa1f0c2d4-11", "tpt-a1f0c2d4-11", parentMAC, "10.0.10.61"} {
		if e := find(t, n, name); e.LogicalPort != portA || e.Parent != "" || e.Switch != "blue" || len(e.IPs) != 1 ||
			e.IPs[0].String() != "10.0.10.61" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	for _, name := range []string{subport, "c4f0c2d4", "spi-c4f0c2d4-44", subMAC, "10.0.20.61"} {
		if e := find(t, n, name); e.LogicalPort != subport || e.Parent != portA || e.Tag != 100 || e.Switch != "green" ||
			len(e.IPs) != 1 {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if all := n.Senders(); len(all) != 2 {
		t.Errorf("%d endpoints: %v", len(all), all)
	}
	if p, err := n.First(Question{From: find(t, n, subport), To: find(t, n, "external/10.0.20.99")}); err != nil ||
		p.Port != portA || !strings.HasPrefix(p.Flow, "dl_vlan=100,") {
		t.Errorf("%+v %v", p, err)
	}
}

// TestHostileDatabase loads rows of wrong types and with control characters: they cost
// themselves, and an error is one that a terminal can show.
func TestHostileDatabase(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	evil := "evil\x1b]0;x\a\n; rm -rf /"
	nb.Add(ovndb.Rows{
		"Logical_Switch_Port": {
			id(1): {"name": evil, "addresses": ovndb.Set("zz", "0a:58:0a:f4:00:03 999.1.1.1 10.0.0.3 fe80::1%eth0", 7),
				"external_ids": "none", "options": ovndb.Set(), "tag": "x"},
			id(2): {"name": ovndb.Map("a", "b"), "addresses": 5}, id(3): {}, id(4): port("ns1_ok", "0a:58:0a:f4:00:04 10.0.0.4"),
			id(5): port("unknown-router", "router"),
			id(6): {"name": "r", "type": "router", "options": ovndb.Map("router-port", "none")},
			id(7): {"name": "l", "type": "localnet"},
		},
		"Logical_Switch": {id(11): ovndb.Row{"name": 1, "ports": ovndb.Set(ovndb.UUID(id(1)), ovndb.UUID(id(99)), "x"),
			"other_config": ovndb.Map("subnet", "x")}},
		"Logical_Router": {id(12): ovndb.Row{"name": "r", "ports": ovndb.UUID(id(13)), "nat": ovndb.UUID(id(14))}},
		"Logical_Router_Port": {id(13): ovndb.Row{"name": "rp", "mac": "x",
			"networks": ovndb.Set("10.0.0.1/99", "10.0.0.1")}},
		"NAT": {id(14): ovndb.Row{"type": "snat", "external_ip": "10.0.0.300"}},
		"Load_Balancer": {id(15): ovndb.Row{"name": "lb",
			"vips": ovndb.Map("x", "", "1.2.3.4:99999", "", "[::1]:80", "", "1.2.3.4", ",,"), "protocol": 7},
			id(16): ovndb.Row{"name": "Service_\x1b/y_TCP", "vips": ovndb.Map("5.6.7.8:80", "")}},
		"DNS": {id(17): ovndb.Row{"records": ovndb.Map("a", "b", "c", "10.0.0.4")}},
	})
	n := load(t, &snapshot.Deployment{NB: open(t, nb.Close())})
	expect.Equal(t, find(t, n, "ns1/ok").LogicalPort, "ns1_ok")
	e := find(t, n, "10.0.0.3")
	expect.Equal(t, e.Name, evil, e)
	expect.Equal(t, e.MAC, "0a:58:0a:f4:00:03", e)
	expect.Equal(t, len(e.IPs), 1, e)
	if _, err := n.First(Question{From: e, To: find(t, n, "ns1/ok")}); !errors.Is(err, ErrNotBound) {
		t.Errorf("got %v, want %v", err, ErrNotBound)
	}
	lines.Harmless(t, terminal.EscapeLines(e.String()))
	if find(t, n, "[::1]:80").Protocol != "tcp" {
		t.Error("a protocol of a wrong type")
	}
}

func TestRouterOfDHCP(t *testing.T) {
	options := map[string]string{"router": "10.0.0.1",
		"classless_static_route": "{169.254.169.254/32,10.0.0.2, 10.9.0.0/16,10.0.0.3, 10.9.9.0/24,10.0.0.4, 0.0.0.0/0,10.0.0.5}"}
	for dst, want := range map[string]string{"169.254.169.254": "10.0.0.2", "10.9.1.1": "10.0.0.3", "10.9.9.1": "10.0.0.4",
		"8.8.8.8": "10.0.0.5"} {
		if got, ok := gatewayOf(options, netip.MustParseAddr(dst)); !ok || got.String() != want {
			t.Errorf("%s: got %v, %t, want %s", dst, got, ok, want)
		}
	}
	if got, ok := gatewayOf(map[string]string{"router": "10.0.0.1"}, netip.MustParseAddr("8.8.8.8")); !ok ||
		got.String() != "10.0.0.1" {
		t.Errorf("got %v, %t, want 10.0.0.1", got, ok)
	}
	for _, text := range []string{"", "{x,y}", "{10.0.0.0/8}", "{0.0.0.0/0,x}"} {
		if got, ok := gatewayOf(map[string]string{"classless_static_route": text}, netip.MustParseAddr("10.8.8.8")); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestServiceIsOneInBothFamilies finds a service by its name with the addresses that Kubernetes gave to
// it, and by another address with that one alone. The rows are those of ovn-kubernetes da86b2aa.
func TestServiceIsOneInBothFamilies(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	service := func(name, owner string, vips ...string) ovndb.Row {
		return ovndb.Row{"name": name, "protocol": "tcp", "vips": ovndb.Map(vips...),
			"external_ids": ovndb.Map("k8s.ovn.org/kind", "Service", "k8s.ovn.org/owner", owner)}
	}
	nb.Add(ovndb.Rows{"Load_Balancer": {
		id(1): service("Service_default/kubernetes_TCP_node_switch_node1", "default/kubernetes", "10.96.0.1:443",
			"172.18.0.1:6443"),
		id(2): service("Service_front/web_TCP_cluster", "front/web", "10.96.220.17:80", "10.244.0.3:8080", "203.0.113.50:80",
			"10.244.0.3:8080", "[fd00:10:96::17b1]:80", "[fd00:10:244:1::3]:8080"),
	}})
	n := load(t, &snapshot.Deployment{NB: open(t, nb.Close())})
	for name, want := range map[string]string{"svc/front/web:80": "10.96.220.17 fd00:10:96::17b1",
		"203.0.113.50:80": "203.0.113.50", "[fd00:10:96::17b1]:80": "fd00:10:96::17b1"} {
		var ips []string
		for _, ip := range find(t, n, name).IPs {
			ips = append(ips, ip.String())
		}
		slices.Sort(ips)
		expect.Equal(t, strings.Join(ips, " "), want, name)
	}
}

// TestNetworksThatNothingOutsideReaches describes a network whose addresses a router translates in all
// packets, and one without a router. It describes no advertised network, for which ovn-kubernetes
// translates addresses only in packets to some destinations, and none with a port that may forward packets.
func TestNetworksThatNothingOutsideReaches(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	ports, switches := map[string]ovndb.Row{}, map[string]ovndb.Row{}
	for i, c := range []struct{ network, subnet, ip, security string }{
		{"blue_net", "10.20.0.0/24", "10.20.0.9", "10.20.0.9"},
		{"cluster_udn_red", "10.30.0.0/24", "10.30.0.9", ""},
		{"lan_second", "192.168.30.0/24", "192.168.30.9", "192.168.30.9"},
		{"lan_firewall", "192.168.40.0/24", "192.168.40.9", "192.168.40.9 10.0.0.0/8"},
	} {
		mac := fmt.Sprintf("0a:58:00:00:00:%02d", i)
		row := ovndb.Row{"name": c.network + "_p", "addresses": mac + " " + c.ip}
		if c.security != "" {
			row["port_security"] = mac + " " + c.security
		}
		ports[id(10+i)] = row
		switches[id(20+i)] = ovndb.Row{"name": c.network + "_switch", "ports": ovndb.UUID(id(10 + i)),
			"other_config": ovndb.Map("subnet", c.subnet), "external_ids": ovndb.Map("k8s.ovn.org/network", c.network)}
	}
	nb.Add(ovndb.Rows{
		"Logical_Switch_Port": ports, "Logical_Switch": switches,
		"Logical_Router": {id(3): {"name": "GR_node1", "nat": ovndb.Set(ovndb.UUID(id(4)), ovndb.UUID(id(5)))}},
		"NAT": {
			id(4): {"type": "snat", "external_ip": "172.18.0.2", "logical_ip": "10.20.0.0/16"},
			id(5): {"type": "snat", "external_ip": "172.18.0.2", "logical_ip": "10.30.0.0/16", "match": "ip4.dst == 10.0.0.0/8"},
		},
	})
	n := load(t, &snapshot.Deployment{NB: open(t, nb.Close())})
	for ip, want := range map[string]Enclosure{
		"10.20.0.9": {Network: "network blue/net (10.20.0.0/24)", Translated: true}, "10.20.0.7": {}, "10.30.0.9": {},
		"8.8.8.8":      {},
		"192.168.30.9": {Network: "network lan/second (192.168.30.0/24)"}, "192.168.40.9": {},
	} {
		got, ok := n.Enclosed(netip.MustParseAddr(ip))
		if expect.Equal(t, ok, want != Enclosure{}, ip); ok {
			expect.Equal(t, got, want, ip)
		}
	}
}

// TestPortOfAnotherZoneOnTheWire sends between two zones of OVN interconnection over a VLAN, where each
// zone has a switch with its own ports alone.
func TestPortOfAnotherZoneOnTheWire(t *testing.T) {
	zone := func(node, port string, n int, mac, ip string) *snapshot.Deployment {
		nb := ovndb.Create(t, ovs.NBSchema)
		nb.Add(ovndb.Rows{
			"Logical_Switch_Port": {id(n): {"name": port, "addresses": mac + " " + ip,
				"external_ids": ovndb.Map("namespace", "lan", "pod", "true"), "port_security": mac + " " + ip},
				id(n + 1): {"name": "localnet_port", "type": "localnet", "addresses": "unknown", "tag": 20,
					"options": ovndb.Map("network_name", "physnet")}},
			"Logical_Switch": {id(n + 2): {"name": "vlan20_ovn_localnet_switch",
				"ports":        ovndb.Set(ovndb.UUID(id(n)), ovndb.UUID(id(n+1))),
				"other_config": ovndb.Map("subnet", "192.168.20.0/24")}},
		})
		conf := ovndb.Create(t, ovs.Schema)
		conf.Add(ovndb.Rows{"Interface": {id(n + 3): ovndb.Row{"name": node + "-p",
			"external_ids": ovndb.Map("iface-id", port)}}})
		return &snapshot.Deployment{NB: open(t, nb.Close()), Nodes: []snapshot.Member{{Name: node, OVS: open(t, conf.Close())}}}
	}
	n := load(t, zone("node1", "lan.vlan20_lan_v1", 1, "0a:58:c0:a8:14:03", "192.168.20.3"),
		zone("node2", "lan.vlan20_lan_v2", 11, "0a:58:c0:a8:14:02", "192.168.20.2"))
	p, err := n.First(Question{From: find(t, n, "lan/v1"), To: find(t, n, "lan/v2"), Protocol: "udp"})
	if err != nil || p.Unresolved.IsValid() || !strings.Contains(p.Flow, "dl_dst=0a:58:c0:a8:14:02,") {
		t.Errorf("%+v %v", p, err)
	}
}

// TestServicesOfKubeOVN finds services by names that only the list of the cluster's services has:
// kube-ovn 1.14 writes the VIPs of all services of a VPC into a load balancer for each protocol, and
// none for a service without endpoints.
func TestServicesOfKubeOVN(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	nb.Add(ovndb.Rows{"Load_Balancer": {
		id(1): {"name": "cluster-tcp-loadbalancer", "protocol": "tcp",
			"vips": ovndb.Map("10.96.161.24:5432", "10.17.0.11:8080,10.17.0.12:8080", "10.96.222.47:80", "10.16.0.2:8080",
				"[fd00:10:96::bbe8]:80", "[fd00:10:16::2]:8080")},
		id(2): {"name": "cluster-udp-loadbalancer", "protocol": "udp",
			"vips": ovndb.Map("10.96.222.47:80", "10.16.0.2:8080")},
		id(3): {"name": "edge-dnat", "protocol": "tcp", "vips": ovndb.Map("172.19.0.52:80", "10.40.0.3:8080")},
	}})
	file := nb.Close()
	text, err := services.Marshal([]services.Service{
		{Namespace: "front", Name: "web", Addresses: []string{"10.96.222.47", "fd00:10:96::bbe8"},
			Ports: []services.Port{{Protocol: "tcp", Port: 80}, {Protocol: "udp", Port: 80}}},
		{Namespace: "shop", Name: "db", Addresses: []string{"10.96.161.24"},
			Ports: []services.Port{{Protocol: "tcp", Port: 5432}}},
		{Namespace: "shop", Name: "none", Addresses: []string{"10.96.9.9"},
			Ports: []services.Port{{Protocol: "tcp", Port: 80}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(workdir.ServicesBeside(file), text, 0o600); err != nil {
		t.Fatal(err)
	}
	n := load(t, &snapshot.Deployment{NB: open(t, file)})
	for _, c := range []struct {
		name     string
		protocol string
		want     string
	}{
		{"svc/shop/db:5432", "", "svc/shop/db:5432 (service: 10.96.161.24, tcp, load balancer cluster-tcp-loadbalancer)"},
		{"svc/front/web:80", "tcp", "svc/front/web:80 (service: 10.96.222.47, fd00:10:96::bbe8, tcp, load balancer cluster-tcp-loadbalancer)"},
		{"10.96.222.47:80", "udp", "svc/front/web:80 (service: 10.96.222.47, udp, load balancer cluster-udp-loadbalancer)"},
		{"svc/shop/none:80", "", "svc/shop/none:80 (service: 10.96.9.9, tcp)"},
		{"172.19.0.52:80", "", "172.19.0.52:80 (service: 172.19.0.52, tcp, load balancer edge-dnat)"},
	} {
		if e, err := n.Find(c.name, Filter{Protocol: c.protocol}); err != nil || e.String() != c.want {
			t.Errorf("%s: %s %v\nwant %s", c.name, e, err, c.want)
		}
	}
}

// TestPortsWithMACAddressesOnly asks between ports without IP addresses: in one switch the packet has addresses of
// 169.254.0.0/16, between two switches nothing tells what would route it.
func TestPortsWithMACAddressesOnly(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	port := func(name, addresses string) ovndb.Row { return ovndb.Row{"name": name, "addresses": addresses} }
	nb.Add(ovndb.Rows{
		"Logical_Switch_Port": {id(1): port("vm1", "02:ac:10:ff:00:11"), id(2): port("vm2", "02:ac:10:ff:00:22"),
			id(3): port("vm3", "02:ac:10:ff:00:33"), id(4): port("vm4", "02:ac:10:ff:00:44 10.0.0.4")},
		"Logical_Switch": {id(5): {"name": "ls1",
			"ports": ovndb.Set(ovndb.UUID(id(1)), ovndb.UUID(id(2)), ovndb.UUID(id(4)))},
			id(6): {"name": "ls2", "ports": ovndb.Set(ovndb.UUID(id(3)))}},
	})
	conf := ovndb.Create(t, ovs.Schema)
	conf.Add(ovndb.Rows{"Interface": {id(7): {"name": "tap1", "external_ids": ovndb.Map("iface-id", "vm1")}}})
	n := load(t, &snapshot.Deployment{NB: open(t, nb.Close()), Nodes: []snapshot.Member{{Name: "node1", OVS: open(t, conf.Close())}}})
	p, err := n.First(Question{From: find(t, n, "vm1"), To: find(t, n, "vm2")})
	if err != nil || !strings.Contains(p.Flow,
		"dl_src=02:ac:10:ff:00:11,dl_dst=02:ac:10:ff:00:22,nw_src=169.254.0.1,nw_dst=169.254.0.2,") || len(p.Assumed) != 1 {
		t.Errorf("in one switch: %+v %v", p, err)
	}
	for _, to := range []string{"vm3", "vm4"} {
		if _, err := n.First(Question{From: find(t, n, "vm1"), To: find(t, n, to)}); !errors.Is(err, ErrFamily) ||
			!strings.Contains(err.Error(), "--flow") {
			t.Errorf("to %s: %v", to, err)
		}
	}
	if _, err := n.First(Question{From: find(t, n, "vm1"), To: find(t, n, "vm2"), Family: 6}); !errors.Is(err, ErrFamily) {
		t.Errorf("over IPv6: %v", err)
	}
}
