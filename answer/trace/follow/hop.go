// Package follow follows a packet over passes, bridges and nodes. It asks the
// ovs-vswitchd of each node's replica for one pass at a time, applies the datapath
// actions to the packet, and decides where it goes on: after conntrack, in another
// bucket, at the other end of a tunnel, or on the nodes of a physical network.
package follow

import (
	"iter"
	"slices"

	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
)

// Hop is one pass of a packet on a node, with everything that becomes of the packet.
type Hop struct {
	Node string
	// Bridge and Port are where the packet entered the node, or a network namespace, whose name is Bridge
	// then.
	Bridge string
	Port   *host.Port
	// Kernel reports that the pass is one through a network namespace, whose rules its stages are.
	Kernel    bool
	Namespace string // of such a pass: netns.Own for the node's own
	VRF       string // that has the device by which the packet enters the namespace, "" for none
	// Packet is the packet as the pass begins, without metadata.
	Packet flow.Packet
	Pass   *pass.Pass
	// Branches are what the datapath actions do with the packet, in their order, at
	// least one.
	Branches []Branch
	// Assumed lists what is assumed about the packet, such as its size.
	Assumed []string
}

// Receives reports whether a branch of the hop is a packet that the network namespace itself receives.
func (h *Hop) Receives(branch Branch) bool {
	return h.Kernel && branch.Kind == Delivered && branch.Port == h.Port
}

// Kind is what becomes of a packet.
type Kind string

// The kinds of branches. A branch with a Next goes on, and the others are ends.
const (
	// Delivered packets came out of a port of a bridge.
	Delivered Kind = "delivered"
	// Dropped packets ended in the pass.
	Dropped Kind = "dropped"
	// Generated packets ended at the controller or in ovs-vswitchd, which answers.
	Generated Kind = "generated"
	// Copied packets are copies for the controller or a monitor; the packet itself goes on.
	Copied Kind = "copied"
	// Remote packets entered a tunnel to a node that was not captured.
	Remote Kind = "remote"
	// Undetermined packets may go anywhere: Why names the cause.
	Undetermined Kind = "undetermined"
	// Recirculated packets start another pass on the same node.
	Recirculated Kind = "recirculated"
	// Tunneled packets enter another node through a tunnel.
	Tunneled Kind = "tunneled"
	// Networked packets enter another node from a physical network.
	Networked Kind = "networked"
	// Internal packets went between a bridge and the kernel of its node, or between two network
	// namespaces.
	Internal Kind = "internal"
	// Repeated packets ended while a flow was learned, and begin again with that flow, as the
	// sender sends them again.
	Repeated Kind = "repeated"
)

// Loss is why a kernel lost a packet.
type Loss string

// The reasons.
const (
	ByRule    Loss = "rule"     // of netfilter
	Unrouted  Loss = "unrouted" // no route, a route that refuses, a reverse path filter, or no forwarding
	Expired   Loss = "expired"  // the TTL
	TooLarge  Loss = "too large"
	NotTaken  Loss = "not taken" // by the device: the frame is for another MAC address
	NoAddress Loss = "no address"
	Unknown   Loss = "unknown"
)

// Branch is one thing that a pass does with the packet.
type Branch struct {
	Kind Kind
	// Why describes in a sentence why the branch was taken, or why the packet ended.
	Why string
	// Failure is why the datapath gives up on the packet, "" if it does not.
	Failure string
	// TooLargeFor is the device that dropped the packet since it is larger than its MTU, ""
	// for another end. Port is nil if the device does not belong to a bridge.
	TooLargeFor string
	// Loss is why a kernel lost the packet, for one that ended in a network namespace.
	Loss Loss
	// Port is the port that the packet left by, nil where it left by none.
	Port *host.Port
	// Networks are the physical networks that Port leads to.
	Networks []string
	// Packet is the packet as it left the pass, without metadata.
	Packet flow.Packet
	// ID and Quoted are the identifier of an ICMP query and the packet in an ICMP error.
	ID     uint16
	Quoted *flow.Packet
	Size   int // of the frame in bytes, 0 if not given
	// Track is the ct action before the recirculation, Lookup what it found.
	Track  *odp.Track
	Lookup *Lookup
	// Tunnel is the outer header.
	Tunnel *odp.Tunnel
	// Choice names the alternative: branches of one pass with a Choice exclude each other.
	Choice string
	// Bucket is the bucket that a group chose by a hash, "" for none, and Backend the address
	// that it translates the destination to, "" for none.
	Bucket, Backend string
	// Flooded reports that the pass sent the packet to every port, because no MAC
	// address was learned for its destination.
	Flooded bool
	// MayReach are bridges of other nodes, as "br-ex of node-1", that the packet reaches as well if they
	// are on the same wire, which was not recorded.
	MayReach []string
	// Response describes what is generated, for Generated.
	Response *Response
	// Stage is where the packet ended, nil if that is not known.
	Stage *pass.Stage
	// Absent is the node whose replica can't be asked, for a packet that is Undetermined
	// because it got there; "" for another cause.
	Absent string
	// Uncertain are parts of the packet that can't be predicted.
	Uncertain []string
	// State holds the connections of the question after the branch, for its next packets.
	State *State
	Next  *Hop
}

// hasOutcome reports whether something becomes of the packet itself, and not only of copies.
func (h *Hop) hasOutcome() bool {
	return slices.ContainsFunc(h.Branches, func(branch Branch) bool { return branch.Kind != Copied })
}

// waitsFor reports whether a branch waits already for the answer to a controller action.
func (h *Hop) waitsFor(c pass.Controller) bool {
	return slices.ContainsFunc(h.Branches, func(branch Branch) bool {
		return branch.Response != nil && branch.Response.Waits && branch.Response.Userdata == c.Userdata
	})
}

// Lookup is what conntrack found for a packet.
type Lookup struct {
	Zone  uint16
	Owner string // of the zone, "" if not known
	State string // ct_state
	// Text is the connection as dpctl/dump-conntrack prints it, "" for a new one.
	Text string
	// OfQuestion reports that an earlier packet or stage of the question made it.
	OfQuestion bool
}

// Ends yields the ends of a hop's tree in their order, with the hop of each.
func (h *Hop) Ends() iter.Seq2[*Hop, Branch] {
	return func(yield func(*Hop, Branch) bool) { h.ends(yield) }
}

func (h *Hop) ends(yield func(*Hop, Branch) bool) bool {
	for _, branch := range h.Branches {
		var more bool
		if branch.Next != nil {
			more = branch.Next.ends(yield)
		} else {
			more = yield(h, branch)
		}
		if !more {
			return false
		}
	}
	return true
}
