package sets

import (
	"fmt"
	"slices"
)

// Addresses of the set kubernetes-host by which services are reached, and node ports.
const (
	secondNode = "10.10.0.3" // worker3 on the second network

	hostweb  = 31080 // externalTrafficPolicy Local, pods in the network of worker1 and worker3
	hostapi  = 31081 // a pod in the network of worker1
	localOne = 31082 // externalTrafficPolicy Local, ns3/open-0
	guarded  = 31083 // externalTrafficPolicy Local, a pod in the network of worker1, at a port that its firewall closes
	database = 31084 // ns2/db-0
	nobody   = 31085 // no pods
	shown    = 31086 // ns1/web-0
	near     = 31087 // ns3/open-0

	hostwebOutside  = "192.0.2.90"
	localOutside    = "192.0.2.91"
	databaseOutside = "192.0.2.92"
	shownOutside    = "192.0.2.93"
)

// Reasons of what the kernel of a node sends.
const (
	acceptedBy = "TCP connection"
	resetBy    = "TCP reset"
	gotBy      = "TCP acknowledgement"
)

// served is a connection that a process of a node accepted before the capture: the kernel answers its packets.
type served struct{ connection }

// serve opens a connection to a process of a node.
func (p *plan) serve(shows string, request frame) *served {
	c := &served{}
	c.request = p.tell(shows+": the request", request, request.from)
	c.acknowledgement = p.tell(shows+": the acknowledgement", frame{later: func() (frame, error) { return c.next("A") }})
	return c
}

// accepted returns the answer of the kernel to the request.
func (c *served) accepted() (frame, error) {
	for _, o := range c.request.Outputs {
		if o.Label == c.request.From && !o.Own {
			raw, err := decode(o.Bytes)
			if err != nil {
				return frame{}, err
			}
			return parse(raw)
		}
	}
	return frame{}, fmt.Errorf("packet %d (%s) was not answered", c.request.ID, c.request.Shows)
}

// next returns the next packet of the client with these TCP flags.
func (c *served) next(flags string) (frame, error) {
	accepted, err := c.accepted()
	if err != nil {
		return frame{}, err
	}
	f, err := c.connection.next(flags)
	f.ack = accepted.seq + 1
	return f, err
}

// forth returns a further packet of the client.
func (c *served) forth() frame {
	return frame{later: func() (frame, error) { return c.next("AP") }}
}

// back returns a further packet of the process, as it leaves the kernel.
func (c *served) back() frame {
	return frame{later: func() (frame, error) {
		accepted, err := c.accepted()
		if err != nil {
			return frame{}, err
		}
		for _, o := range slices.Backward(c.request.Passed) {
			if !o.Own || o.Left {
				continue
			}
			raw, err := decode(o.Bytes)
			if err != nil {
				return frame{}, err
			}
			f, err := parse(raw)
			f = f.reversed(o.Label)
			f.flags, f.seq, f.ack = "AP", accepted.seq+1, 1001
			return f, err
		}
		return frame{}, fmt.Errorf("packet %d (%s) entered no network namespace", c.request.ID, c.request.Shows)
	}}
}

// portConnections opens connections by node ports and by addresses of services, and goes on with them after the capture.
func (c cluster) portConnections(p *plan, second host) {
	for _, way := range []struct {
		shows string
		f     frame
	}{
		{"a node port with Local, and an endpoint in the node's network", c.out.tcp(c.node[1].ip, hostweb, c.node[1].mac)},
		{"an address outside with Local, and an endpoint in the node's network", c.out.tcp(hostwebOutside, 80, c.node[3].mac)},
		{"a node port with an endpoint in the node's network", c.out.tcp(c.node[1].ip, hostapi, c.node[1].mac)},
		{"a node port with an endpoint in another node's network", c.out.tcp(c.node[2].ip, hostapi, c.node[2].mac)},
	} {
		connection := p.serve(way.shows, way.f)
		p.answered(way.f.from, gotBy, way.shows+": a further packet", connection.forth()).established()
		p.delivered(way.f.from, way.shows+": a further answer", connection.back()).established()
	}
	own := p.serve("a pod to a node port with an endpoint in the node's network", c.web0.tcp(c.node[1].ip, hostapi))
	p.answered("ns1/web-0", gotBy, "a pod to a node port with an endpoint in the node's network: a further packet", own.forth()).established()
	for _, way := range []passage{
		{"a node port through the kernel", second.tcp(secondNode, near), "ns3/open-0"},
		{"an address outside through the kernel to another node", second.tcp(shownOutside, 80), "ns1/web-0"},
		{"a node port with an endpoint on another node", c.out.tcp(c.node[2].ip, near, c.node[2].mac), "ns3/open-0"},
	} {
		p.both(way.shows, p.connect(way.shows, way.f, way.to), way.f.from, way.to)
	}
}

// ports sends to node ports and to addresses of services.
func (c cluster) ports(p *plan, second host) {
	c.portsOfNodes(p)
	c.portsThroughKernel(p, second)
	c.closedPorts(p, second)
	c.refusedPorts(p, second)
	c.portsFromNodes(p)
}

// portsOfNodes sends to services whose pods are in the network of a node.
func (c cluster) portsOfNodes(p *plan) {
	for _, way := range []struct {
		shows string
		f     frame
	}{
		{"a node port with Local, and an endpoint in the node's network", c.out.tcp(c.node[1].ip, hostweb, c.node[1].mac)},
		{"the same node port of another node with an endpoint", c.out.tcp(c.node[3].ip, hostweb, c.node[3].mac)},
		{"an address outside with Local, and an endpoint in the node's network", c.out.tcp(hostwebOutside, 80, c.node[1].mac)},
		{"a node port with an endpoint in the node's network", c.out.tcp(c.node[1].ip, hostapi, c.node[1].mac)},
		{"a node port with an endpoint in another node's network", c.out.tcp(c.node[3].ip, hostapi, c.node[3].mac)},
		{"a pod to the node port of its node", c.web0.tcp(c.node[1].ip, hostapi)},
		{"a pod to the node port of another node", c.web1.tcp(c.node[1].ip, hostapi)},
		{"a pod to the node port of its node, with an endpoint in another's network", c.open.tcp(c.node[3].ip, hostapi)},
		{"a pod to a service with an endpoint in the network of its node", c.web0.tcp("10.96.4.11", 80)},
		{"a pod to a service with an endpoint in the network of another node", c.web1.tcp("10.96.4.11", 80)},
	} {
		p.answered(way.f.from, acceptedBy, way.shows, way.f)
	}
}

// portsThroughKernel sends to services by the second interface, so that the kernel's rules decide.
func (c cluster) portsThroughKernel(p *plan, second host) {
	p.allDelivered([]passage{
		{"a node port through the kernel", second.tcp(secondNode, near), "ns3/open-0"},
		{"a node port through the kernel to another node", second.tcp(secondNode, shown), "ns1/web-0"},
		{"an address outside through the kernel", second.tcp(shownOutside, 80), "ns1/web-0"},
		{"an address outside with Local through the kernel, which keeps the client's address", second.tcp(localOutside, 80), "ns3/open-0"},
		{"a node port with Local through the kernel", second.tcp(secondNode, localOne), "ns3/open-0"},
		{"the address of a service in the cluster through the kernel", second.tcp("10.96.3.12", 80), "ns1/web-0"},
		{"a port of an address outside that no service has", second.tcp(shownOutside, 81), "ext0"},
		{"an address outside with another protocol", second.udp(shownOutside, 80), "ext0"},
	})
	p.answered("ext1", acceptedBy, "a node port through the kernel, with an endpoint in another node's network", second.tcp(secondNode, hostapi))
}

// closedPorts sends to node ports that are closed, and to services without endpoints.
func (c cluster) closedPorts(p *plan, second host) {
	const port = "ICMP port unreachable"
	for _, way := range []struct {
		why, shows string
		f          frame
	}{
		{resetBy, "a node port with Local of a node without endpoints", c.out.tcp(c.node[2].ip, hostweb, c.node[2].mac)},
		{resetBy, "an address outside with Local at a node without endpoints", c.out.tcp(hostwebOutside, 80, c.node[2].mac)},
		{resetBy, "a node port without endpoints", c.out.tcp(c.node[1].ip, nobody, c.node[1].mac)},
		{resetBy, "a closed node port", c.out.tcp(c.node[1].ip, 31099, c.node[1].mac)},
		{port, "a node port with another protocol", c.out.udp(c.node[1].ip, hostapi, c.node[1].mac)},
		{port, "a node port with another protocol by the second interface", second.udp(secondNode, near)},
	} {
		p.answered(way.f.from, way.why, way.shows, way.f)
	}
	// Whether the reset of the gateway router finds the client depends on its SNAT: releases of OVN differ.
	p.add("", "a node port without endpoints through the kernel", second.tcp(secondNode, nobody))
}

// refusedPorts sends to node ports what policies, firewalls and flows drop.
func (c cluster) refusedPorts(p *plan, second host) {
	p.dropped("ACL", "a node port whose endpoint's policy does not allow it", c.out.tcp(c.node[1].ip, database, c.node[1].mac))
	p.dropped("ACL", "the same through the kernel", second.tcp(secondNode, database))
	p.dropped("ACL", "an address outside, likewise", second.tcp(databaseOutside, 5432))
	p.dropped("ACL", "a node port that the pod's policy does not allow", c.client.tcp(c.node[1].ip, hostapi))
	p.dropped("ACL", "a service with an endpoint in the node's network that the pod's policy does not allow", c.client.tcp("10.96.4.11", 80))
	p.dropped("firewall", "a node port with Local whose endpoint the node's firewall closes", c.out.tcp(c.node[1].ip, guarded, c.node[1].mac))
	p.dropped("firewall", "the same from a pod of the node", c.web0.tcp(c.node[1].ip, guarded))
	p.dropped("firewall", "the same from a pod of another node", c.web1.tcp(c.node[1].ip, guarded))
	p.dropped("firewall", "the same by the node port of a node without endpoints", c.web1.tcp(c.node[2].ip, guarded))
	p.dropped("firewall", "the same through the kernel of another node", second.tcp(secondNode, guarded))
	p.dropped("firewall", "the same by the address in the cluster", c.web0.tcp("10.96.4.12", 80))
	p.dropped("flow", "a port of a service's address that the service does not have, through the kernel", second.tcp("10.96.4.10", 81))
	p.dropped("flow", "another protocol to a service's address, through the kernel", second.udp("10.96.4.10", 80))
	reset := second.tcp(secondNode, near)
	reset.flags = "R"
	p.dropped("connection", "a reset of no connection to a node port, which the kernel does not translate", reset)
}

// portsFromNodes sends to services what a process of a node sends, so that the rules for the node's own packets decide.
func (c cluster) portsFromNodes(p *plan) {
	process := func(n int, ip string) host {
		h := c.node[n]
		h.label, h.ip = fmt.Sprintf("worker%d:%s", n, Process), ip
		return h
	}
	own := func(n int) host { return process(n, c.node[n].ip) }
	const masked = "169.254.169.2" // the source of what a node sends to services
	p.allDelivered([]passage{
		{"a node to its own node port", own(1).tcp(c.node[1].ip, shown), "ns1/web-0"},
		{"a node to its own node port, and on to another node", own(2).tcp(c.node[2].ip, near), "ns3/open-0"},
		{"a node to the node port of another node", own(1).tcp(c.node[2].ip, shown), "ns1/web-0"},
		{"a node to the second address of itself, and a node port", process(3, secondNode).tcp(secondNode, near), "ns3/open-0"},
		{"a node to an address outside of a service", own(1).tcp(shownOutside, 80), "ns1/web-0"},
		{"a node to a service", process(1, masked).tcp("10.96.3.13", 80), "ns3/open-0"},
		{"a node to a service with internalTrafficPolicy Local", process(3, masked).tcp("10.96.3.14", 80), "ns3/open-0"},
		{"a node to a port of an address outside that no service has", own(1).tcp(shownOutside, 81), "ext0"},
	})
	p.dropped("ACL", "a node to its own node port, whose endpoint's policy does not allow it", own(3).tcp(c.node[3].ip, database))
	p.dropped("ACL", "a node to an address outside, likewise", own(1).tcp(databaseOutside, 5432))
	p.dropped("flow", "a node to a port of a service's address that the service does not have", process(2, masked).tcp("10.96.4.10", 81))
	p.dropped("firewall", "a node to a port of its own that its firewall closes", own(1).tcp(c.node[1].ip, 8083))
	p.dropped("closed", "a node to its own node port with another protocol, which it answers to itself", own(1).udp(c.node[1].ip, shown))
	p.dropped("received", "a node to a service with internalTrafficPolicy Local and an endpoint in its own network", process(1, masked).tcp("10.96.4.14", 80))
	// The answers of the next ones are for the node that sent the packet, and come out nowhere.
	p.add("", "a node to a service with internalTrafficPolicy Local, without endpoints on the node", process(1, masked).tcp("10.96.3.14", 80))
	p.add("", "a node to its own node port, with an endpoint in another node's network", own(2).tcp(c.node[2].ip, hostapi))
}
