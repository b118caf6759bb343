package sets

import "fmt"

// cluster holds the end points of the set kubernetes-ic.
type cluster struct {
	web0, client, eip, web1, db0, db1, open, dns host
	mp                                           [4]host // the management ports, by node
	node                                         [4]host // the nodes themselves, by number
	out, out6                                    host    // the router outside, and for IPv6
}

func newCluster() cluster {
	pod := func(label string, node, octet int) host {
		return host{
			label: label, mac: fmt.Sprintf("0a:58:0a:f4:%02x:%02x", node, octet), gw: fmt.Sprintf("0a:58:0a:f4:%02x:01", node),
			ip: fmt.Sprintf("10.244.%d.%d", node, octet), ip6: fmt.Sprintf("fd00:10:244:%d::%d", node, octet),
		}
	}
	c := cluster{
		web0: pod("ns1/web-0", 1, 5), client: pod("ns1/client-0", 1, 6), eip: pod("ns3/eip-0", 1, 7),
		web1: pod("ns1/web-1", 2, 5), db0: pod("ns2/db-0", 2, 6),
		db1: pod("ns2/db-1", 3, 5), open: pod("ns3/open-0", 3, 6), dns: pod("kube-system/dns-0", 3, 7),
		out:  host{label: "ext0", mac: "02:42:ac:12:00:01", ip: "172.18.0.1", ip6: "fc00:f853:ccd:e793::1", gw: "02:42:ac:12:00:02"},
		out6: host{label: "ext0", mac: "02:42:ac:12:00:f6", ip6: "fc00:f853:ccd:e793::1"},
	}
	for n := 1; n <= 3; n++ {
		c.mp[n] = pod(fmt.Sprintf("worker%d:ovn-k8s-mp0", n), n, 2)
		c.node[n] = host{label: fmt.Sprintf("worker%d:breth0", n), mac: fmt.Sprintf("02:42:ac:12:00:%02x", n+1), ip: fmt.Sprintf("172.18.0.%d", n+1), ip6: fmt.Sprintf("fc00:f853:ccd:e793::%d", n+1), gw: "02:42:ac:12:00:01"}
	}
	return c
}

// policy names the ACL of a network policy, or of the default of a namespace.
func (s *step) policy(name, direction string) *step {
	return s.by("acl", "NP:"+name+":"+direction)
}

func (s *step) service(name string) *step { return s.by("load_balancer", name) }

func kubernetes(p *plan) {
	c := newCluster()
	c.meet(p)
	c.connections(p)
	c.pods(p)
	c.policies(p)
	c.closed(p)
	c.services(p)
	c.outward(p)
	c.inward(p)
	c.nodes(p)
	c.sized(p)
	c.invalid(p)
}

func (c cluster) meet(p *plan) {
	for n := 1; n <= 3; n++ {
		p.shared = append(p.shared, c.node[n].mac)
		p.announce(c.node[n])
	}
	var last *step
	for n := 1; n <= 3; n++ {
		last = p.tell(fmt.Sprintf("the router outside asks for worker%d", n), c.out.arp(c.node[n].ip), "ext0")
		p.tell(fmt.Sprintf("the router outside asks for worker%d's IPv6 address", n), c.out6.neighbour(c.node[n].ip6), "ext0")
	}
	p.tell("the router outside advertises its IPv6 address to all", c.out6.advertise("ff02::1", "33:33:00:00:00:01"))
	for n := 1; n <= 2; n++ {
		last = p.tell(fmt.Sprintf("worker3 asks for worker%d", n), c.node[3].arp(c.node[n].ip), "worker3:breth0")
	}
	last.knowing(c.out.mac, c.out6.mac)
}

func (c cluster) connections(p *plan) {
	from := func(f frame, port uint16) frame {
		f.sport = port
		return f
	}
	policy := p.both("a policy's connection", p.connect("a policy's connection", c.web0.tcp(c.db0.ip, 5432), "ns2/db-0"), "ns1/web-0", "ns2/db-0")
	p.both("a service on another node", p.connect("a service on another node", c.web0.tcp("10.96.2.10", 5432), "ns2/db-0"), "ns1/web-0", "ns2/db-0")
	p.both("a service on one node", p.connect("a service on one node", c.web1.tcp("10.96.2.10", 5432), "ns2/db-0"), "ns1/web-1", "ns2/db-0")
	p.both("a pod's own service", p.connect("a pod's own service", c.web0.tcp("10.96.1.11", 80), "ns1/web-0"), "ns1/web-0", "ns1/web-0")
	p.both("a pod's own service of IPv6", p.connect("a pod's own service of IPv6", c.web0.tcp("fd00:10:96::111", 80), "ns1/web-0"), "ns1/web-0", "ns1/web-0")
	p.both("a service of IPv6", p.connect("a service of IPv6", c.web0.tcp("fd00:10:96::210", 5432), "ns2/db-0"), "ns1/web-0", "ns2/db-0")
	snat := p.both("out of the cluster", p.connect("out of the cluster", from(c.web0.tcp(anywhere, 443), 33000), "ext0"), "ns1/web-0", "ext0")
	p.both("out with a source port that another connection has too", p.connect("out with a source port that another connection has too", from(c.web1.tcp(anywhere, 443), 33000), "ext0"), "ns1/web-1", "ext0")
	p.both("out with a source port that was taken", p.connect("out with a source port that was taken", from(c.db0.tcp(anywhere, 443), 33000), "ext0"), "ns2/db-0", "ext0")
	p.both("egress IP", p.connect("egress IP", c.eip.tcp(anywhere, 443), "ext0"), "ns3/eip-0", "ext0")
	p.both("out over IPv6", p.connect("out over IPv6", c.web1.tcp(anywhere6, 443), "ext0"), "ns1/web-1", "ext0")
	nodeport := p.both("a node port", p.connect("a node port", c.out.tcp(c.node[1].ip, 31000), "ns3/open-0"), "ext0", "ns3/open-0")
	p.both("from the node to its pod", p.connect("from the node to its pod", c.mp[2].tcp(c.db0.ip, 8080, c.db0.mac), "ns2/db-0"), "worker2:ovn-k8s-mp0", "ns2/db-0")
	dns := p.connect("DNS through a service", c.client.udp("10.96.0.10", 53), "kube-system/dns-0")
	ping := p.connect("a ping out of the cluster", c.web1.ping(anywhere), "ext0")
	eping := p.connect("a ping with an egress IP", c.eip.ping(anywhere), "ext0")
	p.delivered("kube-system/dns-0", "DNS through a service: a further packet of the client", dns.forth()).established()
	p.delivered("ns1/client-0", "DNS through a service: an answer", dns.back()).established()
	p.delivered("ext0", "a ping out of the cluster: a further request", ping.forth()).established()
	p.delivered("ns1/web-1", "a ping out of the cluster: a further answer", ping.back()).established()
	p.delivered("ext0", "a ping with an egress IP: a further request", eping.forth()).established()
	p.delivered("ns3/eip-0", "a ping with an egress IP: a further answer", eping.back()).established()
	p.delivered("ns1/web-0", "a pod reports an error about a policy's connection", policy.failure(3, 3, "")).established()
	p.delivered("ns1/web-0", "the peer of a connection through SNAT reports an error", snat.failure(3, 1, "")).established()
	p.delivered("ns1/web-0", "a router on the way reports an error", snat.failure(11, 0, "203.0.113.77")).established()
	p.delivered("ext0", "the pod of a node port reports an error", nodeport.failure(3, 3, "")).established()
}

// to returns a frame to another neighbour.
func to(f frame, mac string) frame {
	f.dst = mac
	return f
}

func (c cluster) pods(p *plan) {
	p.delivered("ns3/open-0", "a ping between nodes", c.web0.ping(c.open.ip))
	p.delivered("ns3/open-0", "an IPv6 ping between nodes", c.web0.ping(c.open.ip6))
	p.delivered("ns3/eip-0", "a ping on one node", c.web0.ping(c.eip.ip, c.eip.mac))
	p.delivered("ns1/web-1", "TCP between nodes", c.web0.tcp(c.web1.ip, 8080))
	p.delivered("ns1/web-0", "UDP between nodes", c.web1.udp(c.web0.ip, 9999))
	p.delivered("ns3/open-0", "SCTP between nodes", c.web1.sctp(c.open.ip, 3868))
	p.answered("ns1/web-0", "ARP reply", "ARP for the router", c.web0.arp("10.244.1.1"))
	p.answered("ns1/web-0", "ARP reply", "ARP for a pod of the node", c.web0.arp(c.eip.ip))
	p.answered("ns1/web-0", "ND advertisement", "ND for the router", c.web0.neighbour("fd00:10:244:1::1"))
	p.answered("ns1/web-0", "echo reply", "a ping of the router", c.web0.ping("10.244.1.1"))
	p.delivered("ext0", "a ping of the router of another zone leaves the cluster: the route by source is longer", c.web0.ping("100.88.0.3"))
	late := c.web0.ping(c.open.ip)
	late.ttl = 1
	p.answered("ns1/web-0", "TTL exceeded", "the TTL ends at the first router", late)
	late.ttl = 2
	p.answered("ns1/web-0", "TTL exceeded", "the TTL ends in the zone of the other node", late)
	p.dropped("no such port", "a MAC that no pod has", c.web0.ping("10.244.1.99", "0a:58:0a:f4:01:63"))
	spoof := c.web0.tcp(c.open.ip, 8080)
	spoof.sip = "10.244.1.99"
	p.dropped("port security", "a foreign source address", spoof)
	spoof = c.web0.tcp(c.open.ip, 8080)
	spoof.src = "0a:58:0a:f4:01:99"
	p.dropped("port security", "a foreign source MAC", spoof)
	spoof = c.web0.ping(c.open.ip6)
	spoof.sip = "fd00:10:244:1::99"
	p.dropped("port security", "a foreign IPv6 source address", spoof)
	p.dropped("port security", "ARP with a foreign sender address", c.web0.arpAs("10.244.1.99", "10.244.1.1"))
	p.answered("ns1/web-1", "ARP request", "a pod of another zone that does not exist", c.web0.ping("10.244.2.99"))
}

func (c cluster) policies(p *plan) {
	p.delivered("ns2/db-0", "what a policy allows, between nodes", c.web0.tcp(c.db0.ip, 5432)).policy("ns2:allow-web", "Ingress")
	p.delivered("ns2/db-0", "what a policy allows, on one node", c.web1.tcp(c.db0.ip, 5432, c.db0.mac)).policy("ns2:allow-web", "Ingress")
	p.delivered("ns2/db-1", "what a policy allows, another pod", c.web1.tcp(c.db1.ip, 5432)).policy("ns2:allow-web", "Ingress")
	p.delivered("ns2/db-1", "what a policy allows, IPv6", c.web0.tcp(c.db1.ip6, 5432)).policy("ns2:allow-web", "Ingress")
	p.dropped("ACL", "a port that no policy allows", c.web0.tcp(c.db0.ip, 3306)).policy("ns2", "Ingress")
	p.dropped("ACL", "a ping that no policy allows", c.web0.ping(c.db0.ip)).policy("ns2", "Ingress")
	p.dropped("ACL", "an IPv6 ping that no policy allows", c.web0.ping(c.db1.ip6)).policy("ns2", "Ingress")
	p.dropped("ACL", "UDP that no policy allows", c.web1.udp(c.db0.ip, 5432, c.db0.mac)).policy("ns2", "Ingress")
	p.delivered("ns2/db-0", "the first port of a range", c.dns.tcp(c.db0.ip, 9100)).policy("ns2:allow-metrics", "Ingress")
	p.delivered("ns2/db-0", "the last port of a range", c.dns.tcp(c.db0.ip, 9110)).policy("ns2:allow-metrics", "Ingress")
	p.dropped("ACL", "the port after a range", c.dns.tcp(c.db0.ip, 9111)).policy("ns2", "Ingress")
	p.dropped("ACL", "an admin policy denies what a policy would allow", c.open.tcp(c.db0.ip, 9105)).policy("deny-ns3", "Ingress")
	p.dropped("ACL", "an admin policy denies a namespace", c.eip.tcp(c.db1.ip, 5432)).policy("deny-ns3", "Ingress")
	p.dropped("ACL", "an admin policy denies a ping", c.open.ping(c.db1.ip, c.db1.mac)).policy("deny-ns3", "Ingress")
	p.delivered("ns2/db-0", "policies of both ends allow it", c.client.tcp(c.db0.ip, 5432)).policy("ns1:client-out", "Egress")
	p.dropped("ACL", "the sender's policy does not allow what the receiver's does", c.client.tcp(c.db0.ip, 8080)).policy("ns1", "Egress")
	p.dropped("ACL", "the sender's policy does not allow a pod", c.client.tcp(c.open.ip, 8080)).policy("ns1", "Egress")
	p.dropped("ACL", "the sender's policy does not allow a pod of its node", c.client.tcp(c.web0.ip, 8080, c.web0.mac)).policy("ns1", "Egress")
	p.dropped("ACL", "the sender's policy does not allow a ping", c.client.ping(c.open.ip)).policy("ns1", "Egress")
	p.dropped("ACL", "the sender's policy does not allow IPv6", c.client.tcp(c.db0.ip6, 5432)).policy("ns1", "Egress")
	p.dropped("ACL", "the sender's policy does not allow the outside", c.client.tcp(anywhere, 443)).policy("ns1", "Egress")
	p.delivered("kube-system/dns-0", "the sender's policy allows DNS", c.client.udp(c.dns.ip, 53)).policy("ns1:client-out", "Egress")
	p.delivered("ext0", "DNS to the outside", c.client.udp("8.8.8.8", 53)).policy("ns1:client-out", "Egress")
	p.dropped("ACL", "the egress firewall", c.web0.tcp("203.0.113.9", 443)).by("acl", "EF:ns1")
	p.dropped("ACL", "the egress firewall on another node", c.web1.tcp("203.0.113.9", 443)).by("acl", "EF:ns1")
	p.dropped("ACL", "the egress firewall, a ping", c.web1.ping("203.0.113.9")).by("acl", "EF:ns1")
	p.delivered("ext0", "the egress firewall is not for another namespace", c.open.tcp("203.0.113.9", 443))
	p.dropped("ACL", "from a database to a database", c.db0.tcp(c.db1.ip, 5432)).policy("ns2", "Ingress")
	p.delivered("ns1/web-0", "from a database to the web, which has no policy", c.db0.tcp(c.web0.ip, 8080))
	p.delivered("ns3/open-0", "from a database to another namespace", c.db1.tcp(c.open.ip, 8080, c.open.mac))
	p.delivered("ns2/db-0", "from the node to its pod", c.mp[2].tcp(c.db0.ip, 3306, c.db0.mac))
	p.dropped("ACL", "from a node to a pod of another node", c.mp[1].tcp(c.db0.ip, 3306)).policy("ns2", "Ingress")
}

// closed sends to ports that nothing allows, on each kind of way.
func (c cluster) closed(p *plan) {
	for _, way := range []struct {
		from            host
		to              string
		near            []string
		name, direction string
	}{
		{c.web0, c.db0.ip, nil, "ns2", "Ingress"},
		{c.web0, c.db1.ip6, nil, "ns2", "Ingress"},
		{c.web1, c.db0.ip, []string{c.db0.mac}, "ns2", "Ingress"},
		{c.dns, c.db1.ip, []string{c.db1.mac}, "ns2", "Ingress"},
		{c.open, c.db0.ip, nil, "deny-ns3", "Ingress"},
		{c.client, c.open.ip, nil, "ns1", "Egress"},
		{c.client, "10.96.3.10", nil, "ns1", "Egress"},
		{c.out, c.db0.ip, []string{c.node[2].mac}, "ns2", "Ingress"},
	} {
		for _, port := range []uint16{22, 9200, 27017} {
			p.dropped("ACL", fmt.Sprintf("TCP port %d from %s to %s", port, way.from.label, way.to), way.from.tcp(way.to, port, way.near...)).policy(way.name, way.direction)
		}
		p.dropped("ACL", fmt.Sprintf("UDP from %s to %s", way.from.label, way.to), way.from.udp(way.to, 5353, way.near...)).policy(way.name, way.direction)
	}
}

func (c cluster) services(p *plan) {
	for i := range 3 {
		f := c.open.tcp("10.96.1.10", 80)
		f.sport = uint16(42000 + i)
		s := p.delivered("ns1/web-0", fmt.Sprintf("a service with two endpoints, client port %d", f.sport), f).chosen().service("ns1/web")
		s.to = []string{"ns1/web-0", "ns1/web-1"}
	}
	p.delivered("ns2/db-0", "a service on another node", c.web0.tcp("10.96.2.10", 5432)).service("ns2/db")
	p.delivered("ns2/db-0", "a service on one node", c.web1.tcp("10.96.2.10", 5432)).service("ns2/db")
	p.delivered("ns2/db-1", "another service", c.web1.tcp("10.96.2.11", 5432)).service("ns2/db-1")
	p.dropped("ACL", "a service whose endpoint's policy does not allow it", c.dns.tcp("10.96.2.10", 5432)).policy("ns2", "Ingress")
	p.dropped("ACL", "a service from an egress IP, which hides the sender from the admin policy", c.eip.tcp("10.96.2.10", 5432)).policy("ns2", "Ingress")
	p.delivered("ns2/db-0", "a service that both policies allow", c.client.tcp("10.96.2.10", 5432)).service("ns2/db")
	p.dropped("ACL", "a service that the sender's policy does not allow", c.client.tcp("10.96.3.10", 80)).policy("ns1", "Egress")
	p.delivered("kube-system/dns-0", "DNS", c.client.udp("10.96.0.10", 53)).service("kube-system/dns")
	p.delivered("kube-system/dns-0", "DNS on one node", c.open.udp("10.96.0.10", 53)).service("kube-system/dns")
	p.delivered("ns1/web-0", "a pod's own service", c.web0.tcp("10.96.1.11", 80)).service("ns1/self")
	p.delivered("ns1/web-0", "a pod's own service of IPv6", c.web0.tcp("fd00:10:96::111", 80)).service("ns1/self6")
	p.delivered("ns1/web-0", "the service of another pod of the node", c.eip.tcp("10.96.1.11", 80)).service("ns1/self")
	p.answered("ns1/web-0", "reject", "a service without endpoints", c.web0.tcp("10.96.1.12", 80)).service("ns1/empty")
	p.answered("ns3/open-0", "reject", "a service without endpoints on another node", c.open.tcp("10.96.1.12", 80)).service("ns1/empty")
	p.delivered("ns2/db-0", "a service of IPv6", c.web0.tcp("fd00:10:96::210", 5432)).service("ns2/db6")
	p.dropped("ACL", "a service of IPv6 that no policy allows", c.open.tcp("fd00:10:96::210", 5432)).policy("ns2", "Ingress")
	p.delivered("worker3:breth0", "the API server, a service whose endpoint is a node", c.web0.tcp("10.96.0.1", 443)).service("default/kubernetes")
	p.delivered("ns1/web-0", "the external IP of a service", c.open.tcp("192.0.2.80", 80)).service("ns1/external")
}

func (c cluster) outward(p *plan) {
	p.delivered("ext0", "a ping out of the cluster", c.web0.ping(c.out.ip)).by("nat", c.node[1].ip)
	p.delivered("ext0", "https out of the cluster", c.web0.tcp(anywhere, 443)).by("nat", c.node[1].ip)
	p.delivered("ext0", "https out of the cluster from another node", c.web1.tcp(anywhere, 443)).by("nat", c.node[2].ip)
	p.delivered("ext0", "UDP out of the cluster", c.open.udp(anywhere, 123)).by("nat", c.node[3].ip)
	p.delivered("ext0", "https out of the cluster over IPv6", c.web0.tcp(anywhere6, 443)).by("nat", c.node[1].ip6)
	p.delivered("ext0", "a ping out of the cluster over IPv6", c.open.ping(anywhere6)).by("nat", c.node[3].ip6)
	p.delivered("ext0", "egress IP", c.eip.tcp(anywhere, 443)).by("nat", "172.18.0.100")
	p.delivered("ext0", "a ping with an egress IP", c.eip.ping(anywhere)).by("nat", "172.18.0.100")
	p.delivered("ns3/open-0", "no egress IP inside the cluster", c.eip.tcp(c.open.ip, 8080)).by("policy", "102")
	p.answered("ext0", "ARP request", "a neighbour outside that does not answer", c.web0.ping("172.18.0.77"))
	late := c.web0.ping(anywhere)
	late.ttl = 1
	p.answered("ns1/web-0", "TTL exceeded", "the TTL ends at the cluster router", late)
	late.ttl = 2
	p.answered("ns1/web-0", "TTL exceeded", "the TTL ends at the gateway router", late)
}

func (c cluster) inward(p *plan) {
	p.delivered("ns3/open-0", "a node port", c.out.tcp(c.node[1].ip, 31000)).service("ns3/open")
	p.delivered("ns1/web-0", "the external IP of a service", c.out.tcp("192.0.2.80", 80)).service("ns1/external")
	p.delivered("worker1:breth0", "ssh to a node", c.out.tcp(c.node[1].ip, 22))
	p.delivered("worker1:breth0", "a ping of a node", c.out.ping(c.node[1].ip))
	p.delivered("worker2:breth0", "a UDP port of a node", to(c.out.udp(c.node[2].ip, 10250), c.node[2].mac))
	p.delivered("ns1/web-0", "a pod's address from outside", c.out.tcp(c.web0.ip, 8080))
	p.dropped("ACL", "a database's address from outside", to(c.out.tcp(c.db0.ip, 5432), c.node[2].mac)).policy("ns2", "Ingress")
	p.dropped("ACL", "a ping of a database from outside", to(c.out.ping(c.db0.ip), c.node[2].mac)).policy("ns2", "Ingress")
}

func (c cluster) nodes(p *plan) {
	p.delivered("ext0", "from a node to the outside", c.node[1].tcp(anywhere, 443))
	p.delivered("worker2:breth0", "from a node to another", c.node[1].tcp(c.node[2].ip, 22, c.node[2].mac))
	p.delivered("worker1:ovn-k8s-mp0", "a pod pings its node", c.web0.ping("10.244.1.2", c.mp[1].mac))
	p.delivered("worker2:ovn-k8s-mp0", "a pod pings another node", c.web0.ping("10.244.2.2"))
	masked := c.node[1]
	masked.ip = "169.254.169.2" // the address that a node has towards services
	p.delivered("ns3/open-0", "from a node to a service", masked.tcp("10.96.3.10", 80)).service("ns3/open")
	p.delivered("ns1/web-0", "from a node to its pod", c.mp[1].ping(c.web0.ip, c.web0.mac))
	p.delivered("ns3/open-0", "from a node to a pod of another", c.mp[1].ping(c.open.ip))
}

func (c cluster) sized(p *plan) {
	of := func(f frame, size int) frame {
		f.size = size
		return f
	}
	p.delivered("ns3/open-0", "as large as a pod's interface takes", of(c.web0.ping(c.open.ip), 1400))
	p.dropped("MTU", "larger than a tunnel takes", of(c.web0.ping(c.open.ip), 1480))
	p.dropped("MTU", "larger than a pod's interface takes", of(c.web0.ping(c.eip.ip, c.eip.mac), 1450))
	p.delivered("ext0", "as large as the gateway takes", of(c.web0.ping(anywhere), 1400))
	p.answered("ext0", "fragmentation needed", "larger than the gateway takes, from outside", of(c.out.ping(c.web0.ip), 1450))
}

func (c cluster) invalid(p *plan) {
	with := func(f frame, flags string) frame {
		f.flags = flags
		return f
	}
	p.dropped("ACL", "a SYN|ACK without a connection is invalid", with(c.web0.tcp(c.db0.ip, 5432), "SA"))
	p.delivered("ns2/db-0", "an ACK without a connection is new", with(c.web0.tcp(c.db0.ip, 5432), "A")).policy("ns2:allow-web", "Ingress")
	p.dropped("ACL", "an ACK without a connection to a closed port", with(c.web0.tcp(c.db0.ip, 3306), "A")).policy("ns2", "Ingress")
	p.delivered("ns1/client-0", "to a pod whose policy is only about what it sends", c.db0.udp(c.client.ip, 45000))
	reply := c.web0.ping(c.db0.ip)
	reply.icmp[0] = 0
	p.dropped("ACL", "an echo reply without a request is invalid", reply)
	first := p.delivered("kube-system/dns-0", "a packet that opens the way for its answer", asked(c.client.udp(c.dns.ip, 53), 45001)).policy("ns1:client-out", "Egress")
	p.delivered("ns1/client-0", "its answer", asked(c.dns.udp(c.client.ip, 45001), 53)).afterwards(first)
}
