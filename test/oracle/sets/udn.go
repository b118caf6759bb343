package sets

import "fmt"

// userNetwork holds the end points of the set kubernetes-udn: those of the cluster, and those of its user-defined
// network.
type userNetwork struct {
	cluster
	b1, b2, b3, b4 host
	second         [4]host // the addresses of b1, b2 and b3 in the default network, by node
	host           [4]host // the management ports of the network, by node
}

const (
	networkDNS     = "10.96.0.10" // services of the default network that the network may use
	networkAPI     = "10.96.0.1"
	networkService = "10.96.7.10" // of the network itself
	networkEmpty   = "10.96.7.11"
	networkMasked  = "169.254.169.12" // the masquerade address of its management ports
	networkPort    = 31002
)

func newUserNetwork() userNetwork {
	u := userNetwork{cluster: newCluster()}
	in := func(label string, node, octet int) host {
		return host{
			label: label, mac: fmt.Sprintf("0a:58:0a:64:%02x:%02x", node, octet), gw: fmt.Sprintf("0a:58:0a:64:%02x:01", node),
			ip: fmt.Sprintf("10.100.%d.%d", node, octet),
		}
	}
	u.b1, u.b2, u.b3, u.b4 = in("blue/b1", 1, 5), in("blue/b2", 2, 5), in("blue/b3", 3, 5), in("blue/b4", 1, 6)
	for n := 1; n <= 3; n++ {
		u.host[n] = in(fmt.Sprintf("worker%d:ovn-k8s-mp1", n), n, 2)
		u.second[n] = host{
			label: fmt.Sprintf("blue/b%d:eth0", n), mac: fmt.Sprintf("0a:58:0a:f4:%02x:12", n), gw: fmt.Sprintf("0a:58:0a:f4:%02x:01", n),
			ip: fmt.Sprintf("10.244.%d.18", n),
		}
	}
	return u
}

// kubernetesUDN is the plan of the set kubernetes-udn.
func kubernetesUDN(p *plan) {
	u := newUserNetwork()
	p.hosts = []host{u.out}
	for n := 1; n <= 3; n++ {
		p.shared = append(p.shared, u.node[n].mac)
		p.tell(fmt.Sprintf("the router outside asks for worker%d", n), u.out.arp(u.node[n].ip), "ext0")
	}
	p.tell("the router outside announces itself", u.out.arp(u.out.ip)).knowing(u.out.mac)
	u.meet(p)
	u.connections(p)
	u.toNodes(p)
	u.throughVRF(p)
	u.inside(p)
	u.outside(p)
	u.isolated(p)
	u.lost(p)
}

// meet makes gateway routers ask for the MAC addresses that later packets need: a packet that waits for one is no longer
// known to conntrack as what it was.
func (u userNetwork) meet(p *plan) {
	for n := 1; n <= 3; n++ {
		p.tell(fmt.Sprintf("the gateway router of worker%d asks for the cluster's router", n), to(u.out.tcp(u.node[n].ip, 31000), u.node[n].mac), "ns3/open-0")
	}
	p.tell("the gateway router of worker1 asks for worker3", u.web0.tcp(networkAPI, 443), "ns1/web-0")
	p.tell("the network's gateway router of worker1 asks for worker2", u.b1.ping(u.node[2].ip), "blue/b1")
}

func (u userNetwork) connections(p *plan) {
	for _, way := range []passage{
		{"DNS of the default network, by the VRF", u.b1.udp(networkDNS, 53), "kube-system/dns-0"},
		{"DNS of another node's pod", u.b2.udp(networkDNS, 53), "kube-system/dns-0"},
		{"a ping out of the cluster", u.b1.ping(anywhere), "ext0"},
		{"a ping between nodes in the network", u.b1.ping(u.b2.ip), "blue/b2"},
	} {
		connection := p.connect(way.shows, way.f, way.to)
		p.delivered(way.to, way.shows+": a further packet", connection.forth()).established()
		p.delivered(way.f.from, way.shows+": an answer", connection.back()).established().answers = connection.request
	}
	out := p.both("out of the cluster", p.connect("out of the cluster", u.b1.tcp(anywhere, 443), "ext0"), "blue/b1", "ext0")
	p.delivered("blue/b1", "a router outside reports an error about a connection of the network", out.failure(11, 0, "203.0.113.77")).established()
	for _, way := range []passage{
		{"a node port of the network", u.out.tcp(u.node[1].ip, networkPort), "blue/b2"},
		{"a service of the network", u.b1.tcp(networkService, 80), "blue/b2"},
	} {
		p.both(way.shows, p.connect(way.shows, way.f, way.to), way.f.from, way.to)
	}
}

// toNodes sends what the kernel of a node answers.
func (u userNetwork) toNodes(p *plan) {
	const reply, reset, port = "ICMP echo reply", "TCP reset", "ICMP port unreachable"
	for _, way := range []struct {
		why, shows string
		f          frame
	}{
		{reply, "a pod of the network pings its node, by the VRF", u.b1.ping(u.node[1].ip)},
		{reset, "a closed port of the pod's node, by the VRF", u.b1.tcp(u.node[1].ip, 9999)},
		{port, "a closed UDP port of the pod's node, by the VRF", u.b1.udp(u.node[1].ip, 9999)},
		{reset, "the kubelet, which does not listen in the VRF", u.b1.tcp(u.node[1].ip, kubelet)},
		{reply, "a pod pings the network's management port", u.b1.ping(u.host[1].ip, u.host[1].mac)},
		{reset, "a closed port at the management port's address", u.b1.tcp(u.host[1].ip, 9999, u.host[1].mac)},
		{reply, "a pod pings the management port of another node", u.b1.ping(u.host[2].ip)},
		{reply, "a pod pings another node, by the gateway router", u.b1.ping(u.node[2].ip)},
		{reset, "the API server, whose node has none, by the VRF", u.b1.tcp(networkAPI, 443)},
	} {
		p.answered(way.f.from, way.why, way.shows, way.f)
	}
	late := u.b1.udp(networkDNS, 53)
	late.ttl = 2
	p.answered("blue/b1", "ICMP time exceeded", "the TTL ends in the VRF", late)
	p.answered("blue/b3", "ICMP unreachable", "a VRF without a default route", u.b3.tcp(anywhere, 443, u.host[3].mac))
}

// throughVRF sends what VRFs forward.
func (u userNetwork) throughVRF(p *plan) {
	p.allDelivered([]passage{
		{"DNS of the default network by the VRF", u.b1.udp(networkDNS, 53), "kube-system/dns-0"},
		{"DNS of the default network by another node's VRF", u.b2.udp(networkDNS, 53), "kube-system/dns-0"},
		{"a pod that sends to the outside by the management port", u.b1.tcp(anywhere, 443, u.host[1].mac), "ext0"},
		{"the node to a pod of its network", u.host[1].tcp(u.b1.ip, 8080, u.b1.mac), "blue/b1"},
		{"the node to a pod of another node's network", u.host[1].ping(u.b2.ip), "blue/b2"},
	})
	// So many lookups of conntrack, on one node, are too many for the userspace datapath of Open vSwitch before 3.3.
	p.unplanned("DNS on the pod's own node, by a VRF without a default route", u.b3.udp(networkDNS, 53))
}

// inside sends within the network.
func (u userNetwork) inside(p *plan) {
	p.allDelivered([]passage{
		{"TCP between nodes in the network", u.b1.tcp(u.b2.ip, 8080), "blue/b2"},
		{"TCP on one node in the network", u.b1.tcp(u.b4.ip, 8080, u.b4.mac), "blue/b4"},
		{"a service of the network", u.b4.tcp(networkService, 80), "blue/b2"},
	})
	p.answered("blue/b1", "reject", "a service of the network without endpoints", u.b1.tcp(networkEmpty, 80))
}

// outside sends out of the cluster, and from there.
func (u userNetwork) outside(p *plan) {
	p.allDelivered([]passage{
		{"https out of the cluster by the network's gateway router", u.b1.tcp(anywhere, 443), "ext0"},
		{"UDP out of the cluster from another node", u.b2.udp(anywhere, 123), "ext0"},
		{"the address of a pod of the default network, which the network does not know", u.b1.tcp(u.open.ip, 8080), "ext0"},
		{"a pod of the default network to an address of the network, which it does not know", u.web0.tcp(u.b1.ip, 8080), "ext0"},
		{"from outside to a pod of the network, which the node does not know outside of the VRF", u.out.tcp(u.b1.ip, 8080), "ext0"},
		{"from outside to the management port, which the node does not know outside of the VRF", u.out.ping(u.host[1].ip), "ext0"},
		{"a node port of the network", u.out.tcp(u.node[1].ip, networkPort), "blue/b2"},
		{"a node port of the network at the pod's node", to(u.out.tcp(u.node[2].ip, networkPort), u.node[2].mac), "blue/b2"},
	})
}

// isolated sends to and from the addresses that pods of the network have in the default network.
func (u userNetwork) isolated(p *plan) {
	p.delivered("blue/b1:eth0", "the node to the pod's address in the default network", u.mp[1].tcp(u.second[1].ip, 8080, u.second[1].mac))
	for _, from := range []struct {
		f     frame
		shows string
	}{
		{u.web0.tcp(u.second[1].ip, 8080, u.second[1].mac), "a pod of the node"},
		{u.web0.ping(u.second[1].ip, u.second[1].mac), "a ping of a pod of the node"},
		{u.web1.tcp(u.second[1].ip, 8080), "a pod of another node"},
		{u.open.udp(u.second[2].ip, 5353), "UDP of a pod of another node"},
		{u.mp[2].tcp(u.second[1].ip, 8080), "another node"},
		{u.out.tcp(u.second[1].ip, 8080), "a host outside"},
	} {
		p.dropped("ACL", from.shows+" to the address of a pod of the network in the default network", from.f)
	}
	for _, to := range []struct {
		f     frame
		shows string
	}{
		{u.second[1].tcp(u.web0.ip, 8080, u.web0.mac), "a pod of the node"},
		{u.second[2].ping(u.open.ip), "a pod of another node"},
		{u.second[1].tcp(anywhere, 443), "the outside"},
		{u.second[3].udp(networkDNS, 53), "a service"},
		{u.second[2].tcp("10.96.3.10", 80), "a service with TCP"},
		{u.second[3].ping(u.second[1].ip), "the same address of another such pod"},
		{u.second[1].ping(u.mp[1].ip, u.mp[1].mac), "its node"},
	} {
		p.dropped("ACL", "from the address of a pod of the network in the default network to "+to.shows, to.f)
	}
}

// lost sends what ends elsewhere.
func (u userNetwork) lost(p *plan) {
	p.dropped("flow", "a service that the network may not use", u.b1.tcp("10.96.3.10", 80))
	p.dropped("flow", "a service that the network may not use, with UDP", u.b2.udp("10.96.3.10", 80))
	masked := u.node[1]
	masked.ip = networkMasked
	p.dropped("flow", "from a VRF to a service that the network may not use", masked.tcp("10.96.3.10", 80))
	p.dropped("flow", "the node to a service of the network, without the network's mark", u.node[1].tcp(networkService, 80))
	p.dropped("router", "from outside to the network's masquerade address", u.out.tcp(networkMasked, 8080))
	p.dropped("router", "a ping from outside to the network's masquerade address", u.out.ping(networkMasked))
	p.dropped("kernel", "a loopback address by the management port", u.b1.udp("127.0.0.1", 53, u.host[1].mac))
	p.dropped("no such port", "a MAC that no pod of the network has", u.b1.ping("10.100.1.99", "0a:58:0a:64:01:63"))
	spoof := u.b1.tcp(u.b2.ip, 8080)
	spoof.sip = u.b4.ip
	p.dropped("port security", "a foreign source address in the network", spoof)
	spoof = u.b1.udp(networkDNS, 53)
	spoof.src = u.b4.mac
	p.dropped("port security", "a foreign source MAC in the network", spoof)
}
