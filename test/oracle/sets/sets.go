// Package sets runs the lab's sets: several live nodes that are joined by a real underlay,
// and real packets that are put in at one place and caught wherever they come out. A test
// of anything that follows packets compares its answers with what came out.
//
// Run starts a set, opens connections through it, captures every node in that state, and
// sends the packets. Load reads what an earlier Run wrote.
package sets

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	traceframe "ovs-offline/answer/trace/frame"
)

// Set is a recorded set.
type Set struct {
	Name   string   `json:"set"`
	Nodes  []string `json:"nodes"`
	OVS    string   `json:"ovs"`
	OVN    string   `json:"ovn,omitempty"`
	Ports  []Port   `json:"ports"`
	Timing Timing   `json:"timing"`

	// Earlier lists the packets that were sent before the capture: they opened the
	// connections that the conntrack dumps hold.
	Earlier []*Packet `json:"earlier"`
	// Packets lists the packets that were sent after the capture, in their order.
	Packets []*Packet `json:"packets"`
	// Talks lists the packets of whole conversations that took place after all others.
	Talks []*Packet `json:"talks,omitempty"`
	// Surprises lists packets that did not go the way for which the lab was built.
	Surprises []string `json:"surprises,omitempty"`

	Dir string `json:"-"`
}

// Timing says how long each part of a run took, in seconds.
type Timing struct {
	Up      float64 `json:"up"`
	Earlier float64 `json:"earlier"`
	Capture float64 `json:"capture"`
	Packets float64 `json:"packets"`
	Talks   float64 `json:"talks,omitempty"`
}

// Port is an interface of the set. Its role names what is at its other end: "edge" (a VM,
// a pod, or another end point), "uplink" (a provider network), "underlay" (the network
// between tunnel ends), "host" (the node itself), "namespace" (a device of a network
// namespace of the node) or "process" (no port: packets that are put in there are sent by a process of the namespace). The node "fabric" is no node of the set: it stands for the cables, and
// its edges for hosts outside.
type Port struct {
	Node   string `json:"node"`
	Bridge string `json:"bridge"`
	Name   string `json:"port"`
	Number string `json:"number"` // of OpenFlow, or LOCAL
	Role   string `json:"role"`
	Label  string `json:"label"`

	Namespace string `json:"namespace,omitempty"` // of a device of a network namespace; "own" for the node's own
}

// Process is the name of the ports with the role "process".
const Process = "process"

// Classes of packets.
const (
	Delivered = "delivered" // the packet came out
	Dropped   = "dropped"   // nothing came out
	Generated = "generated" // an answer to the packet came out, which OVN or a flow made
)

// Rule is what was planted in the lab to decide about a packet.
type Rule struct {
	Kind string `json:"kind"` // acl, nat, load_balancer, route, policy, flow
	Name string `json:"name"` // of an ACL its name, its security group rule id, or the port group neutron_pg_drop; of NAT the external IP
}

// Packet is a packet that was sent, and what came out.
type Packet struct {
	ID    int    `json:"id"`
	Shows string `json:"shows"`

	Node   string `json:"node"`
	Bridge string `json:"bridge"`
	Port   string `json:"port"`
	From   string `json:"from"`  // the label of the port
	Flow   string `json:"flow"`  // as ofproto/trace takes it; without in_port if the port is on no bridge
	Bytes  string `json:"bytes"` // the frame in hexadecimal digits
	Size   int    `json:"size"`  // the number of bytes of the frame

	Class       string `json:"class"`
	Reason      string `json:"reason,omitempty"` // of a drop, or of what was generated
	Rule        *Rule  `json:"rule,omitempty"`
	Established bool   `json:"established,omitempty"` // the connection was open before the capture
	Choice      bool   `json:"choice,omitempty"`      // a hash of the packet chose among several ways
	After       []int  `json:"after,omitempty"`       // packets after the capture without which it would go another way
	Datagram    int    `json:"datagram,omitempty"`    // of a fragment: the number of the fragment of the same datagram that was sent first; what came out for the datagram is with the fragment that made it come out

	Outputs []Output `json:"outputs"` // at edges, uplinks and hosts
	Tunnels []Output `json:"tunnels"` // on the underlay, with the outer headers

	// Passed lists what passed devices of network namespaces, in no order among devices.
	Passed []Output `json:"passed,omitempty"`
}

// Output is one frame that came out.
type Output struct {
	Node   string `json:"node"`
	Bridge string `json:"bridge"`
	Port   string `json:"port"`
	Label  string `json:"label"`
	Role   string `json:"role"`
	Flow   string `json:"flow"`
	Bytes  string `json:"bytes"`
	Own    bool   `json:"own"` // the packet itself, perhaps rewritten; else something that answers it

	Namespace string `json:"namespace,omitempty"` // of the device
	Left      bool   `json:"left,omitempty"`      // the frame left the namespace by the device; else it entered
}

// File is the name of the file that holds a Set.
const File = "packets.json"

// Load reads the set that Run wrote into dir.
func Load(dir string) (*Set, error) {
	raw, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		return nil, err
	}
	s := &Set{Dir: dir}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, File), err)
	}
	return s, nil
}

func (s *Set) save() error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, File), append(raw, '\n'), 0o644)
}

// Report returns the path of the sos report of a node.
func (s *Set) Report(node string) (string, error) {
	found, err := filepath.Glob(filepath.Join(s.Dir, "nodes", node, "sosreport-*.tar.xz"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("node %s: %d sos reports, not one (%w)", node, len(found), err)
	}
	return found[0], nil
}

func (s *Set) port(label string) (Port, error) {
	i := slices.IndexFunc(s.Ports, func(p Port) bool { return p.Label == label })
	if i < 0 {
		return Port{}, fmt.Errorf("the set has no port with the label %q", label)
	}
	return s.Ports[i], nil
}

func seconds(since time.Time) float64 { return math.Round(time.Since(since).Seconds()*10) / 10 }

// Frame reads a frame from the hexadecimal digits of Packet.Bytes or Output.Bytes.
func Frame(digits string) (traceframe.Frame, error) {
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return traceframe.Frame{}, err
	}
	return traceframe.Parse(raw)
}

// Devices returns the devices (ethN) that lead from a node to a bridge of the fabric and are ports of no bridge
// themselves, by the bridge of the fabric at which the cable ends (extN).
func (s *Set) Devices() map[string]Port {
	found := map[string]Port{}
	for _, device := range s.Ports {
		if device.Node == "fabric" || device.Bridge != "-" || device.Role != "uplink" {
			continue
		}
		for _, edge := range s.Ports {
			if edge.Node == "fabric" && strings.TrimPrefix(edge.Name, "ext") == strings.TrimPrefix(device.Name, "eth") {
				found[edge.Bridge] = device
			}
		}
	}
	return found
}
