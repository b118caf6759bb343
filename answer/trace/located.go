package trace

import (
	"fmt"
	"net/netip"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/host"
	"ovs-offline/snapshot/names"
	"ovs-offline/workdir"
)

// Node is a node whose replica a session asks.
type Node struct {
	*host.Host
	Dir *workdir.Dir
}

// Nodes returns the nodes of the session in the order of their names.
func (s *Session) Nodes() (all []Node) {
	for _, name := range s.order {
		all = append(all, Node{s.nodes[name].Host, s.nodes[name].dir})
	}
	return all
}

// Connections returns how the session takes connections: as new, in the states of their lookups, or else as they were recorded.
func (s *Session) Connections() (isNew bool, states []conntrack.Flags) {
	return s.options.New, s.options.States
}

// Endpoints returns the endpoints of a question, and the port that is asked for, 0 for none. The errors are those of Ask.
func (s *Session) Endpoints(between Between) (from, to names.Endpoint, port uint16, err error) {
	if from, err = s.names.Find(between.From, names.Filter{Network: between.Network}); err == nil {
		to, port, err = s.destination(between, from)
	}
	return from, to, port, err
}

// Attached returns the port of a bridge of Open vSwitch to which an endpoint is attached, with its node.
func (s *Session) Attached(e names.Endpoint) (node string, port *host.Port, err error) {
	n := s.nodes[e.Node]
	if n == nil {
		return "", nil, fmt.Errorf("%w: %s is on no node that was collected", ErrQuestion, e.Name)
	}
	if e.Parent != "" || e.LogicalPort == "" {
		return "", nil, fmt.Errorf("%w: %s has no port of Open vSwitch of its own", ErrQuestion, e.Name)
	}
	port, ok := n.Attached(e.LogicalPort)
	if !ok {
		return "", nil, fmt.Errorf("%w: node %s has no port of Open vSwitch for %s", ErrQuestion, n.Name, e.Name)
	}
	return n.Name, port, nil
}

// Peer returns the name of the node at the other end of the tunnels of a node to an address, "" for none that was collected.
func (s *Session) Peer(node string, address netip.Addr) string {
	if peer := s.tracer.Peer(node, address); peer != nil {
		return peer.Name
	}
	return ""
}
