package trace

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// explainLacking turns a drop by a flow that all packets match, or by none, into one by a
// missing flow, if the databases call for flows that the node lacks and that let the packet
// pass. It compares only the flows of the stage where the packet ended and of the earlier stages
// that prepare its decision; drift compares all.
func (n *node) explainLacking(dropped *drop) error {
	switch rules.Reason(dropped.Reason) {
	case rules.ACL, rules.NoRoute, rules.NoSuchPort, rules.Unresolved, rules.MissingFlow, rules.Explicit:
	default:
		return nil
	}
	tables, err := n.pipelines()
	if err != nil || dropped.flow == nil || n.trust.Synthesised {
		return err
	}
	if manifest, err := n.dir.Manifest(); err != nil || manifest.FromPrinted(workdir.SB) != nil {
		return err // the UUIDs of the logical flows, with which flows are found to lack, were not printed
	}
	layout, ovn := tables.layouts[dropped.flow.Bridge]
	if !ovn || !layout.IsLogical(dropped.flow.Table) || dropped.metadata == 0 {
		return nil
	}
	subject := rules.Subject{Packet: dropped.packet.Clone(), InPort: n.portName(dropped.metadata, dropped.in), OutPort: n.portName(dropped.metadata, dropped.out), State: dropped.stateAtEnd()}
	if dropped.dstMAC != "" {
		subject.Packet.Set("dl_dst", dropped.dstMAC)
	}
	for _, stage := range dropped.stagesToCompare() {
		decided := rules.Flow{Table: stage.Table, Priority: stage.Priority, Metadata: dropped.metadata, Layout: layout}
		if stage.Miss {
			decided.Priority = -1
		}
		candidates, err := n.candidates(stage.Bridge, decided, subject)
		if err != nil {
			return err
		}
		lacking, err := n.zone.rules.Lacking(candidates, decided.Priority, subject)
		if err != nil {
			return err
		}
		if len(lacking) > 0 {
			dropped.Drop = lackingDrop(dropped.Drop, lacking)
			return nil
		}
	}
	return nil
}

// stagesToCompare returns the stage where the packet ended and the earlier stages that prepare its
// decision: the hints, the evaluation and the samples of ACLs, and the lookup of a MAC address.
func (d *drop) stagesToCompare() []pass.Stage {
	before := map[rules.Reason]int{rules.ACL: 3, rules.NoSuchPort: 1}[rules.Reason(d.Reason)]
	list := []pass.Stage{*d.flow}
	for _, s := range slices.Backward(d.pass.Stages) {
		if s.Bridge == d.flow.Bridge && s.Table < d.flow.Table && s.Table >= d.flow.Table-before && s.Key().Number("metadata") == d.metadata {
			list = append(list, s)
		}
	}
	return list
}

// stateAtEnd returns the registers and the ct_state of the packet where it ended, nil if they
// are not known: of a packet that ended behind a router, in a clone, ofproto/trace prints those
// before it.
func (d *drop) stateAtEnd() *flow.Packet {
	state := d.pass.Flow
	if d.pass.Final != "unchanged" {
		var err error
		if state, err = flow.Parse(d.pass.Final); err != nil {
			return nil
		}
	}
	datapath, _ := state.Number("metadata")
	in, _ := state.Number("reg14")
	if datapath != d.metadata || in != d.in {
		return nil
	}
	return &state
}

// lackingDrop returns a drop whose reason is that the node lacks flows.
func lackingDrop(dropped answer.Drop, lacking []rules.Rule) answer.Drop {
	called := "logical flow"
	if len(lacking) > 1 {
		called += "s"
	}
	text := fmt.Sprintf("%s: the databases let the packet pass, and the node lacks %d %s of stage %s for it, which drift lists", lacking[0].Words, len(lacking), called, lacking[0].Stage)
	if dropped.Rule != "" {
		text += "; the packet is dropped by " + dropped.Named()
	}
	dropped.Reason, dropped.Rule, dropped.Row, dropped.RuleName, dropped.ACL = string(rules.MissingFlow), text, "", "", nil
	return dropped
}

// portName returns the logical port with a tunnel key, "" if it is not known.
func (n *node) portName(datapath, key uint64) string {
	if port, ok := n.zone.rules.Port(datapath, key); ok && !port.Multicast {
		return port.Name
	}
	return ""
}

// stageFor is a table of a bridge for a datapath and two of its ports.
type stageFor struct {
	bridge          string
	table           int
	metadata        uint64
	inPort, outPort string
}

// maxStages bounds the candidates that are kept in memory.
const maxStages = 1000

// candidates returns the logical flows of a stage that may match packets between two ports,
// none if the node has all their flows. It reads the dump and the database once for each.
func (n *node) candidates(bridge string, decided rules.Flow, subject rules.Subject) ([]rules.Candidate, error) {
	n.read.Lock()
	defer n.read.Unlock()
	key := stageFor{bridge, decided.Table, decided.Metadata, subject.InPort, subject.OutPort}
	if found, known := n.read.candidates[key]; known {
		return found, nil
	}
	present := n.cookies(bridge, decided.Table)
	found, err := n.zone.rules.Candidates(decided, subject, func(cookie uint64) bool { return present[cookie] })
	if err != nil {
		return nil, err
	}
	if n.read.candidates == nil || len(n.read.candidates) >= maxStages {
		n.read.candidates = map[stageFor][]rules.Candidate{}
	}
	n.read.candidates[key] = found
	return found, nil
}

// tableOf is a table of a bridge.
type tableOf struct {
	bridge string
	table  int
}

// cookies returns the cookies of the recorded flows in a table of a bridge.
func (n *node) cookies(bridge string, table int) map[uint64]bool {
	key := tableOf{bridge, table}
	if found, known := n.read.cookies[key]; known {
		return found
	}
	found := map[uint64]bool{}
	if dump, err := os.Open(n.dir.DumpFile(bridge, workdir.Flows)); err == nil {
		defer dump.Close()
		text := fmt.Sprintf("table=%d,", table)
		for flow, problem := range openflow.FlowsIn(dump, func(line string) bool { return strings.Contains(line, text) }) {
			if cookie := flow.Key().Cookie; problem == nil && cookie != 0 {
				found[cookie] = true
			}
		}
	}
	if n.read.cookies == nil {
		n.read.cookies = map[tableOf]map[uint64]bool{}
	}
	n.read.cookies[key] = found
	return found
}
