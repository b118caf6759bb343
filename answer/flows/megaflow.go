package flows

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// State is the outcome of comparing a recorded datapath flow with a trace of a packet that it matches.
type State string

// The states.
const (
	// Current flows have the actions that the recorded OpenFlow tables lead to.
	Current State = "current"
	// Flapping flows have these actions, and match fewer bits than ovs-vswitchd would have them match:
	// it deletes them when it revalidates them, and the next packet is an upcall again.
	Flapping State = "flapping"
	// Stale flows have other actions.
	Stale State = "stale"
	// Untraced flows could not be compared.
	Untraced State = "untraced"
)

// Megaflow is a recorded flow of the datapath, with what the replica does with a packet
// that it matches.
type Megaflow struct {
	Node    string `json:"node,omitempty"`
	UFID    string `json:"ufid,omitempty"`
	State   State  `json:"state"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Used    string `json:"used,omitempty"` // "never", or how long before the recording
	// From names the port that the packets came in by, and its logical port.
	From string `json:"from"`
	// Match is the match without the fields that the flow leaves open.
	Match string `json:"match"`
	// Actions are the recorded actions, and Now the replica's, "" if it was not asked.
	Actions string `json:"actions"`
	Now     string `json:"now,omitempty"`
	// Why is the reason why a flow is untraced or flapping.
	Why string `json:"why,omitempty"`
	// Lacking are the fields of which a flapping flow matches too few bits, and Unwildcards the rules
	// for which ovs-vswitchd looks at them.
	Lacking     []string   `json:"lacking,omitempty"`
	Unwildcards []Examiner `json:"unwildcards,omitempty"`
	// Rules are the northbound rules that the packet meets on the replica, and End the stage
	// where its pass ends.
	Rules []string `json:"rules,omitempty"`
	End   string   `json:"end,omitempty"`
	// Text is the match as recorded.
	Text string `json:"flow"`
}

var (
	recircID = lazyregexp.New(`\brecirc_id\((0x[0-9a-fA-F]+|[0-9]+)\)`)
	inPort   = lazyregexp.New(`\bin_port\(([^()]*)\)`)
	// nothing matches a mask without any bit.
	nothing = lazyregexp.New(`^[0.:x]*$`)
)

// recorded is a recorded flow on its way to be traced.
type recorded struct {
	appctl.Megaflow
	recirc uint32
	done   bool
	asked  bool       // for its pass
	pass   *pass.Pass // of a flapping flow, and of one that is asked for it
	result Megaflow
}

// readMegaflows reads the recorded flows of the datapath. lost counts the lines that can't
// be read.
func readMegaflows(ctx context.Context, wd *workdir.Dir) (list []*recorded, lost int, err error) {
	file, ok, err := wd.Collected(wd.Recorded(workdir.RecordedDatapathFlows))
	if err != nil {
		return nil, 0, err
	}
	if !ok {
		return nil, 0, ErrNoMegaflows
	}
	defer file.Close()
	for megaflow, err := range appctl.Megaflows(file) {
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if err != nil && !errors.Is(err, appctl.ErrMegaflow) {
			return nil, 0, err
		}
		id, ok := idOf(megaflow.Key)
		if err != nil || !ok {
			lost++
			continue
		}
		list = append(list, &recorded{Megaflow: megaflow, recirc: id})
	}
	return list, lost, nil
}

// idOf returns the recirculation that a flow resumes, 0 for none.
func idOf(key string) (uint32, bool) {
	match := recircID.FindStringSubmatch(key)
	if match == nil {
		return 0, true
	}
	id, err := strconv.ParseUint(match[1], 0, 32)
	return uint32(id), err == nil
}

// portIn returns the port that a flow matches, as its text has it.
func portIn(key string) string {
	if m := inPort.FindStringSubmatch(key); m != nil {
		return m[1]
	}
	return ""
}

// inNames returns a recorded flow in names, without its state.
func (n *Node) inNames(recorded *recorded, names map[string]string) Megaflow {
	port := portIn(recorded.Key)
	if name, ok := names[port]; ok {
		port = name
	}
	return Megaflow{Node: n.Name, UFID: recorded.UFID, Packets: recorded.Packets, Bytes: recorded.Bytes, Used: recorded.Used, From: n.interfaceName(port),
		Match: significant(recorded.Key), Actions: recorded.Actions, Text: recorded.Key}
}

// interfaceName returns an interface with its logical port, if it has one.
func (n *Node) interfaceName(name string) string {
	for _, b := range n.Bridges {
		logical := b.alias[name]
		if logical == "" {
			continue
		}
		return fmt.Sprintf("%s (port %s)", name, n.logicalPort(logical))
	}
	return name
}

// logicalPort returns a logical port by its name in OVN.
func (n *Node) logicalPort(name string) rules.Port {
	if n.rules != nil {
		if known, ok := n.rules.PortNamed(name); ok {
			return known
		}
	}
	return rules.Port{Name: name, Given: ovn.PortName(name, "", nil, nil)}
}

// significant returns a datapath match without the fields that every flow has, and without fields
// with an empty mask.
func significant(key string) string {
	var parts []string
	for part := range openflow.Split(key) {
		part = strings.TrimSpace(part)
		name, inner, _ := strings.Cut(strings.TrimSuffix(part, ")"), "(")
		switch name {
		case "packet_type", "in_port", "":
			continue
		case "recirc_id":
			if inner == "0" || inner == "0x0" {
				continue
			}
		case "encap":
			parts = append(parts, "encap("+significant(inner)+")")
			continue
		}
		var fields []string
		for field := range openflow.Split(inner) {
			_, mask, masked := strings.Cut(field, "/")
			if !masked || !nothing.MatchString(strings.TrimSpace(mask)) {
				fields = append(fields, field)
			}
		}
		if len(fields) > 0 && !strings.HasPrefix(name, "skb_") {
			parts = append(parts, name+"("+strings.Join(fields, ",")+")")
		}
	}
	return phrase.Shorten(strings.Join(parts, ","), maxMegaflowText)
}

// maxMegaflowText bounds a match in bytes.
const maxMegaflowText = 4096
