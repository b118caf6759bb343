package sets

import "fmt"

// Addresses of the second network of the set kubernetes-host.
const (
	secondEgress = "10.10.0.100"
	secondMAC    = "02:42:0a:0a:00:03" // of worker3
	kubelet      = 10250
)

// kubernetesHost is the plan of the set kubernetes-host.
func kubernetesHost(p *plan) {
	c := newCluster()
	second := host{label: "ext1", mac: "02:42:0a:0a:00:01", ip: "10.10.0.1", ip6: "fc00:10:10::1", gw: secondMAC}
	p.hosts = []host{c.out, second}
	for n := 1; n <= 3; n++ {
		p.shared = append(p.shared, c.node[n].mac)
		p.tell(fmt.Sprintf("the router outside asks for worker%d", n), c.out.arp(c.node[n].ip), "ext0")
	}
	for n := 1; n <= 3; n++ {
		for other := 1; other <= 3; other++ {
			if other != n {
				p.tell(fmt.Sprintf("worker%d asks for worker%d", n, other), c.node[n].arp(c.node[other].ip))
			}
		}
	}
	for n := 1; n <= 3; n++ {
		p.tell(fmt.Sprintf("the gateway router of worker%d asks for the cluster router, to send on what begins this connection", n), c.out.tcp(c.node[n].ip, near, c.node[n].mac), "ns3/open-0")
	}
	p.tell("the router of the second network asks for worker3", second.arp("10.10.0.3"), "ext1")
	p.tell("the router outside announces itself", c.out.arp(c.out.ip)).knowing(c.out.mac)
	c.hostConnections(p, second)
	c.portConnections(p, second)
	c.hosts(p)
	c.secondInterface(p, second)
	c.ports(p, second)
}

func (c cluster) hostConnections(p *plan, second host) {
	for _, way := range []passage{
		{"egress IP on a second interface", c.db1.tcp(anywhere, 443), "ext1"},
		{"UDP from an egress IP on a second interface", c.db1.udp(second.ip, 123), "ext1"},
	} {
		connection := p.connect(way.shows, way.f, way.to)
		p.delivered(way.to, way.shows+": a further packet", connection.forth()).established()
		p.delivered(way.f.from, way.shows+": an answer", connection.back()).established()
	}
}

// hosts sends to addresses of nodes.
func (c cluster) hosts(p *plan) {
	const reply, reset, port, open = "ICMP echo reply", "TCP reset", "ICMP port unreachable", "TCP connection"
	for _, way := range []struct {
		why, shows string
		f          frame
	}{
		{reply, "a ping from outside to a node", c.out.ping(c.node[1].ip, c.node[1].mac)},
		{reset, "a closed port of a node from outside", c.out.tcp(c.node[1].ip, 9999, c.node[1].mac)},
		{port, "a closed UDP port of a node from outside", c.out.udp(c.node[2].ip, 9999, c.node[2].mac)},
		{open, "the kubelet from outside", c.out.tcp(c.node[2].ip, kubelet, c.node[2].mac)},
		{reply, "a pod pings its node by the management port", c.web0.ping("10.244.1.2", c.mp[1].mac)},
		{reply, "a pod pings the management port of another node", c.web0.ping("10.244.2.2")},
		{reply, "a pod pings the address of its node", c.web0.ping(c.node[1].ip)},
		{reply, "a pod pings the address of another node", c.web0.ping(c.node[2].ip)},
		{reset, "a closed port of the pod's node", c.web0.tcp(c.node[1].ip, 9999)},
		{reset, "a closed port of another node", c.web1.tcp(c.node[3].ip, 9999)},
		{open, "the kubelet of the pod's node", c.web0.tcp(c.node[1].ip, kubelet)},
		{open, "the kubelet of another node", c.web0.tcp(c.node[2].ip, kubelet)},
	} {
		p.answered(way.f.from, way.why, way.shows, way.f)
	}
}

// secondInterface sends by the egress IP of the second interface, and to it.
func (c cluster) secondInterface(p *plan, second host) {
	p.allDelivered([]passage{
		{"an egress IP on a second interface", c.db1.tcp(anywhere, 443), "ext1"},
		{"a ping from an egress IP on a second interface", c.db1.ping("192.0.2.9"), "ext1"},
		{"UDP from an egress IP on a second interface to its network", c.db1.udp(second.ip, 5353), "ext1"},
		{"a pod without that egress IP leaves by the first interface", c.open.tcp(anywhere, 443), "ext0"},
	})
	p.delivered("ns3/open-0", "from the second network to a pod, as the node", second.tcp(c.open.ip, 8080))
	p.delivered("ns2/db-1", "from the second network to a pod that policies protect, as the node", second.tcp(c.db1.ip, 8080))
	p.dropped("ACL", "a pod whose policies do not let it reach nodes", c.client.tcp(c.node[1].ip, kubelet))
	p.dropped("ACL", "a ping of a pod whose policies do not let it reach nodes", c.client.ping(c.node[2].ip))
	p.dropped("ACL", "from a pod to one that policies protect", c.open.tcp(c.db1.ip, 8080))
	p.dropped("route", "a broadcast into the second network", c.db1.udp("10.10.0.255", 9))
	p.answered("ext1", "ICMP echo reply", "a ping to the egress IP of the second interface", second.ping(secondEgress))
	p.answered("ext1", "TCP reset", "a closed port of the egress IP", second.tcp(secondEgress, 9999))
	p.answered("ext1", "TCP connection", "the kubelet by the second interface", second.tcp("10.10.0.3", kubelet))
	p.answered("ns2/db-1", "ICMP time exceeded", "the TTL ends at the node of the egress IP", func() frame {
		f := c.db1.tcp(anywhere, 443)
		f.ttl = 2
		return f
	}())
}
