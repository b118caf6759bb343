// Package answer holds the answer to a question about a packet: a verdict, the ports
// where the packet comes out, the rule that decides, the packet's path, and how far the
// answer can be trusted. It knows neither replicas nor databases.
package answer

import (
	"slices"
	"strings"
)

// Verdict is the first word of an answer.
type Verdict string

const (
	Reachable    Verdict = "REACHABLE"
	OneWay       Verdict = "ONE-WAY" // the packet arrives, but the reply to it does not
	Unreachable  Verdict = "UNREACHABLE"
	Ambiguous    Verdict = "AMBIGUOUS"    // buckets, next hops or backends differ
	Undetermined Verdict = "UNDETERMINED" // something is missing, which Answer.Missing names
)

// Verdicts lists the verdicts.
func Verdicts() []Verdict { return []Verdict{Reachable, OneWay, Unreachable, Ambiguous, Undetermined} }

// Answer is the answer to one question: the document that "trace -o json" prints.
type Answer struct {
	Question string `json:"question"`
	Family   int    `json:"family,omitempty"` // of the packet's IP addresses: 4 or 6, 0 for none
	// Packet describes the packet for people, and Size is the size of its frame in bytes, 0 for
	// one that fits everywhere.
	Packet string `json:"packet,omitempty"`
	Size   int    `json:"size,omitempty"`
	// Choice is the choice of the packet to which a reply replies, "" if there was none.
	Choice  string  `json:"choice,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Missing names what another verdict than Undetermined needs.
	Missing []string `json:"missing,omitempty"`
	// Remarks describe what is special about the packet that the answer is about.
	Remarks []string `json:"remarks,omitempty"`
	// Answered names what of OVN answers the packet itself: the router port that was pinged,
	// or that has the address which an ARP request asks for.
	Answered  string      `json:"answered,omitempty"`
	Outcomes  []Outcome   `json:"outcomes"`
	Generated []Generated `json:"generated,omitempty"`
	Drop      *Drop       `json:"drop,omitempty"` // the drop that decides; nil if the packet arrives
	Path      []Hop       `json:"path"`
	Return    *Answer     `json:"return,omitempty"` // of the reply; nil if it was not followed
	// Replies are the answers about each reply, if the packet arrives by several choices. Then
	// Return is the answer that decides, with the verdict on all of them.
	Replies []*Answer `json:"replies,omitempty"`
	Trust   Trust     `json:"trust"`
}

// IsIncomplete reports whether something is missing to know what becomes of the packet, or of
// the reply to it, or whether a replica on the way is in doubt.
func (a *Answer) IsIncomplete() bool {
	return a.Verdict == Undetermined || a.Trust.InDoubt() || a.Return != nil && a.Return.IsIncomplete()
}

// Location is a port of a bridge, or a device of a network namespace.
type Location struct {
	Node        string `json:"node"`
	Bridge      string `json:"bridge,omitempty"` // or the namespace
	Port        string `json:"port,omitempty"`
	LogicalPort string `json:"logical_port,omitempty"`
	// Endpoint is the name by which users know the logical port.
	Endpoint string `json:"endpoint,omitempty"`
}

// Outcome is a packet that comes out of a port.
type Outcome struct {
	Location
	Packet      string `json:"packet"`           // as flow text that ofproto/trace takes
	Choice      string `json:"choice,omitempty"` // the bucket, next hop or backend, where there was one
	Destination bool   `json:"destination"`      // the question asked for this port
	Answer      bool   `json:"answer,omitempty"` // it is what Answered sent back to the sender
	// Wire reports that the port leads to another collected node, which has the packet's MAC
	// address: the path goes on there.
	Wire bool `json:"wire,omitempty"`
}

// Generated is a packet that OVN, or the kernel of a node, would send itself.
type Generated struct {
	By       string `json:"by,omitempty"` // "the kernel"; "" for OVN
	Location        // of the packet that OVN makes it for
	To       string `json:"to,omitempty"` // the logical network that a request for a MAC address goes to
	// Flooded reports that OVN makes the packet for a copy, which a bridge sent to every port because it had not
	// learned the destination's MAC address.
	Flooded bool   `json:"flooded,omitempty"`
	Packet  string `json:"packet,omitempty"`
	Why     string `json:"why"`
}

// Drop is where a packet was dropped, and the reason.
type Drop struct {
	Location
	Stage
	Reason string `json:"reason"` // of a closed list
	// Packets is the number of packets that the deciding flow had matched on the node, nil if
	// that was not recorded.
	Packets *uint64 `json:"recorded_packets,omitempty"`
	Choice  string  `json:"choice,omitempty"`
}

// Stage is one flow that a packet matched, or a rule of netfilter that it met in a network namespace.
type Stage struct {
	// Chain is the table and chain of netfilter ("nat PREROUTING") of a rule, which is Flow, or of the end of
	// the chain; "" for a flow. Actions is what it decided.
	Chain string `json:"chain,omitempty"`
	Table int    `json:"table"` // of OpenFlow
	// OnBridge is the bridge of the flow, if a patch port led there from the hop's bridge.
	OnBridge string `json:"on_bridge,omitempty"`
	Name     string `json:"stage,omitempty"`    // of OVN's pipeline, or of the table in neutron's agent
	Datapath string `json:"datapath,omitempty"` // the logical switch or router, with its kind
	Pipeline string `json:"pipeline,omitempty"` // ingress or egress
	Flow     string `json:"flow,omitempty"`     // the match, as ofproto/trace prints it; "" for a table miss
	Cookie   string `json:"cookie,omitempty"`
	Actions  string `json:"actions,omitempty"`
	Match    string `json:"match,omitempty"` // of the logical flow
	Rule     string `json:"rule,omitempty"`  // what the flow is made from, in the user's words
	// RuleName is the name of the rule in OVN, such as the name of an ACL.
	RuleName string `json:"rule_name,omitempty"`
	// Row is the table of the northbound row that the flow is made from, "" for none.
	Row string `json:"row,omitempty"`
	// Stale reports that the southbound database no longer has the row that the flow is made from.
	Stale bool `json:"stale,omitempty"`
	// ACL has more about the rule if it is an ACL.
	ACL *ACL `json:"acl,omitempty"`
}

// ACL is an ACL that a flow carries out.
type ACL struct {
	UUID      string `json:"uuid"`
	Name      string `json:"name,omitempty"`
	Action    string `json:"action"`
	Direction string `json:"direction"` // to-lport or from-lport
	Match     string `json:"match"`
	Priority  int    `json:"priority"`
	// Port is the name of the port for which the packet met the ACL, and LogicalPort its name
	// in OVN; "" if that is not known.
	Port        string `json:"port,omitempty"`
	LogicalPort string `json:"logical_port,omitempty"`
	PortGroup   string `json:"port_group,omitempty"`
	// Holds names the ports on the path that the port group holds.
	Holds []string `json:"holds,omitempty"`
}

// directionText returns the direction of the ACL as its user configured it: ingress or egress of a port.
func (a *ACL) directionText() string {
	if a.Port == "" {
		return a.Direction
	}
	if a.Direction == "to-lport" {
		return "ingress of " + a.Port
	}
	return "egress of " + a.Port
}

// Named returns the rule of a stage with what tells it from others of the same words: for an
// ACL the port and direction, and its own name.
func (s *Stage) Named() string {
	if s.ACL == nil || s.Rule == "" {
		return s.Rule
	}
	text := s.Rule + ", " + s.ACL.directionText()
	if s.ACL.Name != "" && !strings.Contains(s.Rule, s.ACL.Name) {
		text += ", named " + s.ACL.Name
	}
	return text
}

// Hop is a packet's way through one switch, from where it enters a bridge to where it
// leaves the switch, is changed by connection tracking, or ends.
type Hop struct {
	Location        // where the packet enters
	From     int    `json:"from"` // index in the path of the hop that sent it; -1 for the first
	Via      string `json:"via,omitempty"`
	Choice   string `json:"choice,omitempty"` // all choices up to here, joined by commas
	Packet   string `json:"packet"`
	// Connection describes the state that connection tracking gives the packet, and the recorded
	// connection that it comes from.
	Connection string  `json:"connection,omitempty"`
	Stages     []Stage `json:"stages"`
	Datapath   string  `json:"datapath_actions,omitempty"`
	Ends       []End   `json:"ends,omitempty"` // without those that are hops
	Raw        string  `json:"raw,omitempty"`  // what ofproto/trace printed
}

// EndKind is how a packet ends.
type EndKind string

const (
	Delivered EndKind = "delivered"
	Dropped   EndKind = "dropped"
	Answered  EndKind = "generated" // OVN sends a packet of its own
	Unknown   EndKind = "undetermined"
)

// End is one end of a packet.
type End struct {
	Kind EndKind `json:"kind"`
	Location
	Text   string `json:"text"` // a reason, a cause, or what is generated
	Choice string `json:"choice,omitempty"`
}

// Trust is how faithful the replicas on the path are, and what was assumed.
type Trust struct {
	Nodes   []Fidelity `json:"nodes"`
	Assumed []string   `json:"assumed,omitempty"`
}

// InDoubt reports whether a replica may answer wrong as a whole.
func (t *Trust) InDoubt() bool {
	return slices.ContainsFunc(t.Nodes, func(fidelity Fidelity) bool { return len(fidelity.Doubts) > 0 })
}

// Add adds a node that is not listed.
func (t *Trust) Add(fidelity Fidelity) {
	if !slices.ContainsFunc(t.Nodes, func(listed Fidelity) bool { return listed.Name == fidelity.Name }) {
		t.Nodes = append(t.Nodes, fidelity)
	}
}

// Fidelity is how faithful one replica on the path is.
type Fidelity struct {
	Name     string   `json:"name"`
	Restored float64  `json:"restored"`           // percent of the flows, groups, meters and TLV mappings
	Warnings []string `json:"warnings,omitempty"` // of its report
	// Doubts are why an answer by way of the node may be wrong as a whole.
	Doubts []string `json:"doubts,omitempty"`
	// Synthesised reports that nothing of its Open vSwitch was collected: it was made up from
	// SynthesisedFrom, a database.
	Synthesised     bool   `json:"synthesised,omitempty"`
	SynthesisedFrom string `json:"synthesised_from,omitempty"`
}
