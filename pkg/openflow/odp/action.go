// Package odp reads the datapath actions that ofproto/trace prints, as a tree, and
// applies the actions that change a packet. The notation follows lib/odp-util.c of Open
// vSwitch 2.13 to 3.7.
package odp

import (
	"net/netip"

	"ovs-offline/pkg/openflow/flow"
)

// Action is one datapath action: one of the types of this package.
type Action interface{}

type (
	// Output sends the packet to a datapath port.
	Output struct{ Port string }
	// Truncate shortens the packet for the next output only.
	Truncate struct{ Size int }
	// Drop drops the packet explicitly.
	Drop struct{}
	// DecrementTTL executes Expired in place of the actions after it if the TTL is at
	// most 1, and else decrements the TTL.
	DecrementTTL struct{ Expired []Action }
	// HeaderChange changes the packet's headers: set, push and pop actions.
	HeaderChange struct {
		Name  string // "set", "push_vlan" ...
		Key   string // of set: "eth", "ipv4" ...
		Args  []Argument
		apply func(p *flow.Packet, c HeaderChange) error
	}
	// SetTunnel sets the header of the tunnel that the next output sends through.
	SetTunnel struct{ Tunnel Tunnel }
	// PushTunnel encapsulates the packet, and sends it to Out in place of the rest.
	PushTunnel struct {
		Port   string // the tunnel's datapath port
		Out    string // the port that the encapsulated packet leaves by
		Header int    // size of all outer headers in bytes
		Tunnel Tunnel
	}
	// PopTunnel decapsulates the packet and continues at a tunnel's datapath port.
	PopTunnel struct{ Port string }
	// Track is a ct action.
	Track struct {
		Commit, Force bool
		Zone          uint16
		Mark, Label   string // VALUE/MASK, "" for no change
		Helper        string
		NAT           *NAT
	}
	// Untrack is ct_clear.
	Untrack struct{}
	// Hash computes dp_hash for the recirculation that follows.
	Hash struct{ Kind string }
	// Recirculate resumes the packet with an id.
	Recirculate struct{ ID uint32 }
	// Meter limits the rate.
	Meter struct{ ID string }
	// Userspace sends a copy to ovs-vswitchd.
	Userspace struct {
		Controller bool
		// SlowPath reports that ovs-vswitchd handles the packet itself.
		SlowPath     bool
		Continuation bool
		Cookie       uint64 // of the flow with the controller action
		Reason       int    // OFPR_*
	}
	// Clone executes actions on a copy.
	Clone struct{ Actions []Action }
	// Sample executes actions on a copy of a percentage of the packets.
	Sample struct {
		Percent string
		Actions []Action
	}
	// CheckLength executes one of two lists, depending on the length of the frame.
	CheckLength struct {
		Size              int
		Greater, AtMost   []Action
		GreaterText, Text string
	}
	// Unknown is an action that this package doesn't know.
	Unknown struct{ Text string }
)

// Argument is an argument KEY=VALUE of an action, or a word without a value.
type Argument struct{ Key, Value string }

// Option is an option of a Geneve header.
type Option struct{ Class, Type, Value string }

// Tunnel is the outer header of an encapsulated packet.
type Tunnel struct {
	Type     string // "geneve", "vxlan", "gre"; "" if the action does not show it
	ID       string // "" without a key
	Src, Dst netip.Addr
	TTL, TOS string
	Options  []Option
	// OptionBytes is the size of the options with their headers, and DontFragment the flag
	// of the outer IP header; both only of a tunnel whose headers the kernel builds.
	OptionBytes  int
	DontFragment bool
}

// HeaderSize returns the number of bytes from the outer IP header to the encapsulated
// frame, 0 if the type of the tunnel is not known.
func (t Tunnel) HeaderSize() int {
	ip := 20
	if t.Dst.Is6() {
		ip = 40
	}
	const udp = 8
	switch t.Type {
	case "geneve":
		return ip + udp + 8 + t.OptionBytes
	case "vxlan":
		return ip + udp + 8
	case "gre", "ip6gre":
		if t.ID != "" {
			return ip + 8
		}
		return ip + 4
	}
	return 0
}

// NAT is the nat argument of a ct action. Without Src and Dst only the translation of
// an existing connection is applied.
type NAT struct {
	Src, Dst bool
	// The range of addresses is not valid for a translation that keeps the address.
	Min, Max         netip.Addr
	MinPort, MaxPort uint16 // 0 for any
}

// IsFixed reports whether the translation leaves no choice of address.
func (n NAT) IsFixed() bool { return n.Min == n.Max }
