package trace

import (
	"fmt"
	"os"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// aclOf describes the ACL that a rule carries out for a packet with certain registers; nil for
// another rule.
func (n *node) aclOf(rule rules.Rule, stage pass.Stage, at registers) *answer.ACL {
	cause := rule.Cause
	if cause.Table != "ACL" {
		return nil
	}
	found := &answer.ACL{UUID: cause.UUID, Name: cause.Name, Action: cause.Action, Direction: cause.Direction, Match: cause.Match, Priority: cause.Priority, PortGroup: cause.Group}
	key, datapath := at.in, stage.Key().Number("metadata")
	if rule.Pipeline == "egress" {
		key = at.out
	}
	if port, ok := n.zone.rules.Port(datapath, key); ok && !port.Multicast {
		found.Port, found.LogicalPort = n.nameOf(port.Name), port.Name
	}
	return found
}

// counted is a flow whose recorded counter is known.
type counted struct {
	bridge string
	openflow.Key
}

// maxCounted bounds the recorded counters that are kept in memory.
const maxCounted = 10_000

// countPackets returns how many packets a flow of the replica had matched on the node; nil if that
// was not recorded. It reads the dump once for each flow.
func (n *node) countPackets(stage pass.Stage) *uint64 {
	if stage.Miss {
		return nil
	}
	key := counted{stage.Bridge, stage.Key()}
	n.read.Lock()
	defer n.read.Unlock()
	if found, known := n.read.counters[key]; known {
		return found
	}
	if n.read.counters == nil || len(n.read.counters) >= maxCounted {
		n.read.counters = map[counted]*uint64{}
	}
	found := readPackets(n.dir.DumpFile(stage.Bridge, workdir.Flows), key.Key)
	n.read.counters[key] = found
	return found
}

// readPackets reads the counter of a flow from a dump; nil if the dump has no such flow, or no
// counters.
func readPackets(path string, key openflow.Key) *uint64 {
	dump, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer dump.Close()
	table, cookie := fmt.Sprintf("table=%d,", key.Table), fmt.Sprintf("cookie=%#x,", key.Cookie)
	for flow, problem := range openflow.FlowsIn(dump, func(line string) bool { return strings.Contains(line, table) && strings.Contains(line, cookie) }) {
		if problem == nil && flow.Counted && flow.Key() == key {
			return &flow.Packets
		}
	}
	return nil
}
