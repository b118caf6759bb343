// Package graph draws a node from its workdir: the bridges with their ports,
// bonds, patch pairs and tunnels, or the logical network of the OVN NB database.
// No replica needs to run, and no other program: the picture is laid out here.
package graph

// State is how a port or a link was on the node.
type State string

// The states; Unknown where nothing recorded tells.
const (
	Up      State = "up"
	Down    State = "down"
	Failed  State = "error"
	Unknown State = ""
)

// Kind says what a box, a port or a link is, in OVS's and OVN's own words.
type Kind string

// Kinds of boxes.
const (
	Bridge  Kind = "bridge"
	Switch  Kind = "switch"
	Router  Kind = "router"
	Remote  Kind = "remote"  // where a tunnel ends
	Network Kind = "network" // a physical network, of localnet ports
)

// Kinds of ports.
const (
	Internal  Kind = "internal"
	System    Kind = "system"    // a device of the host
	Interface Kind = "interface" // of an instance or a pod: it has an iface-id
	Patch     Kind = "patch"
	Tunnel    Kind = "tunnel"
	Bond      Kind = "bond"
	Userspace Kind = "dpdk" // DPDK and vhost-user
	Attached  Kind = "port" // of a logical switch, with an instance or a pod behind it
	Link      Kind = "link" // between logical switches and routers
	Service   Kind = "service"
)

// Graph is what is drawn.
type Graph struct {
	Title   string
	Boxes   []*Box
	Edges   []*Edge
	Remarks []string // what the workdir could not tell
}

// Box is a bridge, a logical switch or router, or what stands outside of them.
type Box struct {
	Name   string
	Kind   Kind
	Note   string
	Detail []string
	Ports  []*Port
	Hidden int // how many ports a filter left out
}

// Port is a port of a box.
type Port struct {
	Name    string
	Number  string // its OpenFlow port number, "" where it has none
	Kind    Kind
	Note    string
	State   State
	Active  bool    // the active member of a bond
	Members []*Port // of a bond
	Count   int     // how many ports it stands for, if it is several collapsed into one
	Detail  []string
}

// Edge joins two boxes; a port is nil where an edge ends at the box as such.
type Edge struct {
	From, To         *Box
	FromPort, ToPort *Port
	Kind             Kind
	State            State
}
