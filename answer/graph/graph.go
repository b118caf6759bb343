// Package graph draws the data of a workdir: the bridges of a node with their
// ports, bonds, patch pairs and tunnels, or the logical network of the OVN NB
// database. It reads collected data only, and computes the layout itself.
package graph

import "strings"

// State is the state of a port or a link on the node.
type State string

// The states. Unknown means that none was recorded.
const (
	Up      State = "up"
	Down    State = "down"
	Failed  State = "error"
	Unknown State = ""
)

func (s State) isDown() bool { return s == Down || s == Failed }

// Kind is the kind of a box, a port or a link, in the terms of OVS and OVN.
type Kind string

// Kinds of boxes.
const (
	Bridge  Kind = "bridge"
	Switch  Kind = "switch"
	Router  Kind = "router"
	Remote  Kind = "remote"  // the remote end of tunnels
	Network Kind = "network" // a physical network, of localnet ports
)

// Kinds of ports.
const (
	Internal  Kind = "internal"
	System    Kind = "system"    // a device of the host
	Interface Kind = "interface" // of an instance or a pod, with an iface-id
	Patch     Kind = "patch"
	Tunnel    Kind = "tunnel"
	Bond      Kind = "bond"
	Userspace Kind = "dpdk" // DPDK and vhost-user
	Attached  Kind = "port" // of a logical switch, for an instance or a pod
	Virtual   Kind = "virtual"
	External  Kind = "external"
	Child     Kind = "child" // has a parent_name: an OpenStack trunk's sub-port, a nested container
	Link      Kind = "link"  // between logical switches and routers
	Service   Kind = "service"
)

// Graph is the content of a picture.
type Graph struct {
	Title   string
	Boxes   []*Box
	Edges   []*Edge
	Remarks []string // about data that the workdir lacks

	addresses []string // at which the node takes tunnels
	one, many string   // what a box is called, and several
}

// Box is a bridge, a logical switch or router, a remote or a physical network.
type Box struct {
	Node    string   `json:"node,omitempty"` // of a set; "" for what no single node has
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"` // further names by which a filter finds it
	Kind    Kind     `json:"kind"`
	Note    string   `json:"note,omitempty"`
	Detail  []string `json:"detail,omitempty"`
	Ports   []*Port  `json:"ports,omitempty"`
	Hidden  int      `json:"-"` // number of ports that a filter removed

	address string // of the remote end of tunnels
}

// Title returns the name of the box, with that of its node in a set.
func (b *Box) Title() string { return strings.TrimSpace(b.Node + " " + b.Name) }

// Port is a port of a box.
type Port struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"` // further names by which a filter finds it
	Number  string   `json:"number,omitempty"`  // the OpenFlow port number, "" if it has none
	Kind    Kind     `json:"kind"`
	Note    string   `json:"note,omitempty"`
	VLAN    string   `json:"vlan,omitempty"` // the part of the note about its VLAN
	State   State    `json:"state,omitempty"`
	Active  bool     `json:"active,omitempty"`  // the active member of a bond
	Members []*Port  `json:"members,omitempty"` // of a bond
	Count   int      `json:"count,omitempty"`   // number of ports that it represents, 0 for a single port
	Detail  []string `json:"detail,omitempty"`
}

// Edge joins two boxes. A port is nil if the edge ends at the box itself.
type Edge struct {
	From, To         *Box
	FromPort, ToPort *Port
	Kind             Kind
	State            State
}
