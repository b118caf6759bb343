// Package linux restores the network namespaces of a node in a kernel: in namespaces of their own, from which
// no device leads out, kept by one process for each replica. It puts frames into their devices, and returns
// what the kernel did with them.
package linux

// Question is a frame that is put into a device of a namespace.
type Question struct {
	Namespace string `json:"namespace"` // netns.Own for the node's own
	Frame     Frame  `json:"frame"`
	// Earlier are the frames of the same question that were put into devices before, in order, of any
	// namespace: the frame finds the connections that they opened. Nothing else of them remains.
	Earlier []Sent `json:"earlier,omitempty"`
	// New takes every connection as new, in place of the recorded ones.
	New bool `json:"new,omitempty"`
}

// Sent is a frame that was put into a device of a namespace.
type Sent struct {
	Namespace string `json:"namespace"`
	Frame     Frame  `json:"frame"`
}

// Frame is a frame at a device.
type Frame struct {
	Device string `json:"device"`
	Bytes  []byte `json:"bytes"`
}

// Passage is what the kernel did with a frame.
type Passage struct {
	// Steps are what the kernel decided, in order.
	Steps []Step `json:"steps,omitempty"`
	// Out are the frames that came out of devices of the namespace, in order: the frame itself, perhaps
	// changed, and what the kernel sent because of it.
	Out []Frame `json:"out,omitempty"`
	// Local reports that the frame was for the node itself and no rule dropped it: a process or the
	// kernel received it.
	Local bool `json:"local,omitempty"`
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
