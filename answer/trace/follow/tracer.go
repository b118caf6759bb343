package follow

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/host"
	"ovs-offline/answer/trace/megaflow"
	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/workdir/netns"
)

// Options are the options of a Tracer.
type Options struct {
	// New takes every connection as new, in place of the recorded ones.
	New bool
	// States are the ct_state of each lookup of a question in order, in place of what
	// conntrack finds; nil for none. Later lookups are new.
	States []conntrack.Flags
	// Bucket selects the bucket of each group that chooses by a hash, by its id or the address
	// of its backend; "" for all.
	Bucket string
	// Chassis returns the chassis with a tunnel address in the databases of a node; nil for
	// no databases.
	Chassis func(node string, a netip.Addr) []Chassis
	// Neighbour returns the MAC address with which the port of a node with an iface-id answers for an
	// address, "" if the address is not its own; nil for no knowledge of addresses.
	Neighbour func(node, ifaceID string, address netip.Addr) (mac string)
}

// Chassis is a chassis of OVN.
type Chassis struct {
	Name     string // the system-id of its node
	Hostname string // or its name, if it has none
}

// Tracer follows packets over a set of nodes. It can be used concurrently.
type Tracer struct {
	hosts   []*host.Host
	options Options
	buckets bucketCache
	passes  megaflow.Cache
}

// New returns a tracer for nodes.
func New(hosts []*host.Host, options Options) *Tracer {
	return &Tracer{hosts: hosts, options: options}
}

// Start is where a packet begins, and the packet.
type Start struct {
	Node   string
	Bridge string // "" for the bridge of InPort
	InPort string // the name of a port, or of a device of the node's own network namespace
	// Process, in place of InPort, says that a process in a network namespace of the node sends the packet.
	Process   bool
	Namespace string // of the process: netns.Own for the node's own
	// Network, in place of Node and InPort, is a physical network: the packet comes from a
	// host outside and arrives on every node of the network.
	Network string
	// Packet is the packet without in_port. Where it has no tcp_flags, it is taken as the
	// packet that conntrack expects next.
	Packet flow.Packet
	// Size is the length of the frame in bytes, 0 for one that fits everywhere.
	Size int
	// ID is the identifier of an ICMP query, 0 if not known.
	ID uint16
	// Quoted is the packet inside an ICMP error, and QuotedID its identifier.
	Quoted   *flow.Packet
	QuotedID uint16
	// Headless reports that the header of the packet's protocol is short or absent.
	Headless bool
	// MayFragment reports that the IPv4 header lets routers send the packet in fragments.
	MayFragment bool
	// First is the first fragment of the datagram that the packet is a fragment of, nil if it
	// is not known, and FirstSize the length of its frame in bytes.
	First     *flow.Packet
	FirstSize int
	// Assumed is the state of the packet where conntrack knows no connection for it, in place
	// of the one that conntrack finds; nil for none.
	Assumed *conntrack.Flags
	// State holds what earlier packets of the question changed, as the branch or the
	// answer of each returned it.
	State *State
}

// Packet follows a packet and returns the first hop, and what the packet changed in
// the connections. It returns an error if the question can't be asked: its node, port
// or network is not known, ovs-vswitchd refuses the packet, or the replica of the only node
// can't be asked. A packet that begins on one of several nodes, whose replica can't be asked,
// is Undetermined.
//
// The first hop of a packet from a physical network has no node and no pass. The first hop of a
// packet whose first node can't be asked has no pass.
func (t *Tracer) Packet(ctx context.Context, start Start) (*Hop, *State, error) {
	if start.Network != "" {
		return t.packetFromNetwork(ctx, start)
	}
	node, err := t.host(start.Node)
	if err != nil {
		return nil, nil, err
	}
	frame := start.frame()
	w := &walk{tracer: t, initial: start.State, assumed: start.Assumed}
	device, ok := node.OwnDevice(start.InPort)
	if start.Process {
		if device, ok = node.ProcessIn(start.Namespace); !ok {
			return nil, nil, fmt.Errorf("the network namespace %s of node %s was not recorded: what the kernel does with what is sent there is not known", netns.Title(start.Namespace), start.Node)
		}
	}
	if ok {
		w.restart = func(ctx context.Context, state *State, at count) (*Hop, *State, error) {
			return w.enterKernel(ctx, node, device, frame, state, at)
		}
		return w.restart(ctx, start.State, count{})
	}
	port, ok := node.Port(start.InPort)
	if !ok {
		return nil, nil, fmt.Errorf("node %s has no port %q", start.Node, start.InPort)
	}
	if start.Bridge != "" && start.Bridge != port.Bridge {
		return nil, nil, fmt.Errorf("port %q of node %s is on bridge %s, not on %s", start.InPort, start.Node, port.Bridge, start.Bridge)
	}
	// Fields of a tunnel that the packet came by.
	metadata := start.Packet.Clone()
	metadata.DeleteFunc(func(name string) bool { return !strings.HasPrefix(name, "tun_") || name == "tun_flags" })
	w.restart = func(ctx context.Context, state *State, at count) (*Hop, *State, error) {
		return w.enter(ctx, node, port, metadata, frame, state, at)
	}
	hop, state, err := w.restart(ctx, start.State, count{})
	if over := start.describeOversize(port); over != "" && hop != nil {
		hop.Assumed = append(hop.Assumed, over)
	}
	if text, refused := unixctl.Refused(err); refused {
		err = fmt.Errorf("ovs-vswitchd of node %s refuses the packet: %s", start.Node, text)
	}
	if down, ok := errors.AsType[*host.UnavailableError](err); ok && len(t.hosts) > 1 {
		root := step{walk: w, hop: &Hop{Node: start.Node, Bridge: port.Bridge, Port: port, Packet: frame.packet()}, state: start.State}
		root.add(Branch{}, frame).fail(down)
		return root.hop, root.state, nil
	}
	return hop, state, err
}

// frame returns the packet as the datapath holds it.
func (s Start) frame() frame {
	subject := conntrack.Subject{Packet: s.Packet.Headers(), ID: s.ID, Headless: s.Headless}
	if s.First != nil {
		first := s.First.Headers()
		subject.First = &first
	}
	if s.Quoted != nil {
		subject.Quoted = &conntrack.Subject{Packet: s.Quoted.Clone(), ID: s.QuotedID}
	}
	return frame{subject: subject, size: s.Size, firstSize: s.FirstSize, mayFragment: s.MayFragment}
}

// packetFromNetwork follows a packet of a host on a physical network.
func (t *Tracer) packetFromNetwork(ctx context.Context, start Start) (*Hop, *State, error) {
	frame := start.frame()
	w := &walk{tracer: t, initial: start.State, assumed: start.Assumed}
	if !slices.ContainsFunc(t.hosts, func(node *host.Host) bool { return len(node.Uplinks(start.Network)) > 0 }) {
		return nil, nil, fmt.Errorf("no node has a port on the physical network %q", start.Network)
	}
	w.restart = func(ctx context.Context, state *State, at count) (*Hop, *State, error) {
		root := step{walk: w, hop: &Hop{Packet: frame.packet()}, state: state, count: at}
		if err := root.spread(ctx, Branch{Networks: []string{start.Network}}, frame); err != nil {
			return nil, nil, err
		}
		return root.hop, root.state, nil
	}
	return w.restart(ctx, start.State, count{})
}

func (t *Tracer) host(name string) (*host.Host, error) {
	for _, node := range t.hosts {
		if node.Name == name {
			return node, nil
		}
	}
	return nil, fmt.Errorf("no node %q", name)
}

// maxDepth bounds the passes of a packet whose TTL does not fall, and maxPasses the passes of a
// question. A packet that crosses three nodes makes about 15 passes, a flood over 100 nodes
// about 1000.
const (
	maxDepth  = 64
	maxPasses = 4096
)

// walk is one packet while it is followed.
type walk struct {
	tracer  *Tracer
	passes  int
	lookups int              // lookups in conntrack
	assumed *conntrack.Flags // where conntrack knows no connection
	initial *State
	asks    bool // it is a request for a MAC address on behalf of another packet, whose answer goes no further
	// restart follows the packet once more from where it began.
	restart func(context.Context, *State, count) (*Hop, *State, error)
}
