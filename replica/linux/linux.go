// Package linux asks the kernel about the network namespaces of a node: it puts frames into their devices, and
// returns what the kernel did with them. Package keeper below it restores the namespaces: each is a namespace of
// its own, from which no device leads out, and one process for each replica keeps them.
package linux

import "net/netip"

// Question is a frame that is put into a device of a namespace.
type Question struct {
	Namespace string `json:"namespace"` // netns.Own for the node's own
	Frame     Frame  `json:"frame"`
	// Earlier are the frames of the same question that were put into devices before, in order, of any
	// namespace: the frame finds the connections that they opened. Nothing else of them remains.
	Earlier []Sent `json:"earlier,omitempty"`
	// Opened are connections that earlier questions opened or changed, as Passage.Connections has them: the frame
	// finds them beside the recorded ones, or in their place.
	Opened []Opened `json:"opened,omitempty"`
	// New takes every connection as new, in place of the recorded ones.
	New bool `json:"new,omitempty"`
}

// Sent is a frame that was put into a device of a namespace.
type Sent struct {
	Namespace string `json:"namespace"`
	Frame     Frame  `json:"frame"`
}

// Opened is a connection of a namespace.
type Opened struct {
	Namespace  string `json:"namespace"`
	Connection string `json:"connection"`
}

// Process stands for the device of a frame whose packet a process of the namespace sends.
const Process = ""

// Frame is a frame at a device.
type Frame struct {
	Device string `json:"device"` // Process for a packet that a process sends: its MAC addresses are not used
	Bytes  []byte `json:"bytes"`
}

// Passage is what the kernel did with a frame.
type Passage struct {
	// Steps are what the kernel decided, in order.
	Steps []Step `json:"steps,omitempty"`
	// Out are the frames that came out of devices of the namespace, in order for each device: the frame itself,
	// perhaps changed, and what the kernel sent because of it.
	Out []Frame `json:"out,omitempty"`
	// Local reports that the frame was for the node itself and no rule dropped it: a process or the
	// kernel received it.
	Local bool `json:"local,omitempty"`
	// Reached are the hooks of netfilter whose last chain the frame passed, in order: "prerouting", "input",
	// "forward", "output", "postrouting". A frame that reached "prerouting" and no other was dropped by a rule of
	// a later chain, which is the last step, or by the kernel's routing, if no step says so.
	Reached []string `json:"reached,omitempty"`
	// Mark is the mark (fwmark) with which the frame passed the last hook, 0 for none.
	Mark uint32 `json:"mark,omitempty"`
	// Connections are the connections that the frame and the earlier ones of the question opened or changed, as
	// conntrack -L prints them without the number of the protocol.
	Connections []string `json:"connections,omitempty"`
	// Unreachable is what the kernel found to be unreachable, "network" or "host", where it has no route for the
	// frame and sent no ICMP error: it sends a sender no more than some of these each second.
	Unreachable string `json:"unreachable,omitempty"`
	// Unknown is why it is not known what the node did with the frame, "" if it is known: a setting was not recorded.
	Unknown string `json:"unknown,omitempty"`
	// Remarks say why the frame is gone, if no step does, or what is not certain about the passage.
	Remarks []string `json:"remarks,omitempty"`
}

// Step is a rule that a frame met, or the end of a chain.
type Step struct {
	Family string `json:"family"` // of nftables: "ip", "ip6", "inet", "bridge"
	Table  string `json:"table"`
	Chain  string `json:"chain"`
	// Rule is the rule as iptables-save or nft prints it, "" for the policy or the end of a chain.
	Rule    string `json:"rule,omitempty"`
	Verdict string `json:"verdict"` // "accept", "drop", "continue", "jump CHAIN", "return" ...
}

// Namespace is a restored network namespace.
type Namespace struct {
	Name    string   `json:"name"`
	Devices []Device `json:"devices"`
	// File is the file by which programs enter it (nsenter(1)), below /proc of this host.
	File string `json:"file"`
	// Missing are the sentences about what is not as it was recorded.
	Missing []string `json:"missing,omitempty"`
}

// Device is a network device of a restored namespace.
type Device struct {
	Name      string         `json:"name"`
	MAC       string         `json:"mac,omitempty"`
	MTU       int            `json:"mtu"`
	Up        bool           `json:"up"`
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	// Open reports that frames can be put into it. A bridge, for example, takes them at its ports only.
	Open   bool   `json:"open"`
	Master string `json:"master,omitempty"`
}
