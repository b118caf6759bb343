package trace

import (
	"fmt"
	"os"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/trace/answer"
	"ovs-offline/trace/pass"
	"ovs-offline/trace/rules"
)

// aclOf describes the ACL that a rule carries out for a packet with certain registers; nil for
// another rule.
func (n *node) aclOf(rule rules.Rule, s pass.Stage, at registers) *answer.ACL {
	c := rule.Cause
	if c.Table != "ACL" {
		return nil
	}
	a := &answer.ACL{UUID: c.UUID, Name: c.Name, Action: c.Action, Direction: c.Direction, Match: c.Match, PortGroup: c.Group}
	key, datapath := at.in, metadata(s.Flow)
	if rule.Pipeline == "egress" {
		key = at.out
	}
	if port, ok := n.zone.rules.Port(datapath, key); ok && !port.Multicast {
		a.Port, a.LogicalPort = n.called(port.Name), port.Name
	}
	return a
}

// addHolds adds to the ACLs of the path which of the ports on it their port groups hold.
func (w *writer) addHolds() {
	var ports []string // logical ports on the path
	seen := map[string]bool{"": true}
	add := func(port string) {
		if !seen[port] {
			seen[port] = true
			ports = append(ports, port)
		}
	}
	for _, h := range w.answer.Path {
		add(h.LogicalPort)
		for _, s := range h.Stages {
			if s.ACL != nil {
				add(s.ACL.LogicalPort)
			}
		}
		for _, e := range h.Ends {
			add(e.LogicalPort)
		}
	}
	for _, h := range w.answer.Path {
		for _, s := range h.Stages {
			if s.ACL == nil || s.ACL.PortGroup == "" || s.ACL.Holds != nil {
				continue
			}
			for _, port := range ports {
				if w.nodes[h.Node].zone.rules.Holds(s.ACL.PortGroup, port) {
					s.ACL.Holds = append(s.ACL.Holds, w.called(port))
				}
			}
		}
	}
}

// counted is a flow whose recorded counter is known.
type counted struct {
	bridge, flow string
	cookie       uint64
	table        int
}

// maxCounted bounds the recorded counters that are kept in memory.
const maxCounted = 10_000

// packets returns how many packets a flow of the replica had matched on the node; nil if that
// was not recorded. It reads the dump once for each flow.
func (n *node) packets(s pass.Stage) *uint64 {
	if s.Miss {
		return nil
	}
	key := counted{s.Bridge, fmt.Sprintf("priority=%d,%s", s.Priority, s.Flow), s.Cookie, s.Table}
	n.read.Lock()
	defer n.read.Unlock()
	if found, known := n.read.counters[key]; known {
		return found
	}
	if n.read.counters == nil || len(n.read.counters) >= maxCounted {
		n.read.counters = map[counted]*uint64{}
	}
	found := readPackets(n.dir.DumpFile(s.Bridge, workdir.Flows), key)
	n.read.counters[key] = found
	return found
}

// readPackets reads the counter of a flow from a dump; nil if the dump has no such flow, or no
// counters.
func readPackets(dump string, key counted) *uint64 {
	f, err := os.Open(dump)
	if err != nil {
		return nil
	}
	defer f.Close()
	table, cookie := fmt.Sprintf("table=%d,", key.table), fmt.Sprintf("cookie=%#x,", key.cookie)
	wanted := openflow.Flow{Text: strings.TrimSuffix(fmt.Sprintf("table=%d,%s", key.table, key.flow), ",") + " actions=drop"}.Criteria()
	for flow, problem := range openflow.FlowsIn(f, func(line string) bool { return strings.Contains(line, table) && strings.Contains(line, cookie) }) {
		if problem == nil && flow.Counted && flow.Criteria() == wanted {
			return &flow.Packets
		}
	}
	return nil
}
