package trace

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/trace/answer"
	"ovs-offline/trace/rules"
)

// explainLacking turns a drop by a flow that all packets match, or by none, into one by a
// missing flow, if the databases call for flows that the node lacks and that let the packet
// pass. Only the flows of the stage where the packet ended are compared; drift compares all.
func (w *writer) explainLacking(d *drop) error {
	switch rules.Reason(d.Reason) {
	case rules.ACL, rules.NoRoute, rules.NoSuchPort, rules.Unresolved, rules.MissingFlow, rules.Explicit:
	default:
		return nil
	}
	n := w.nodes[d.Node]
	p, err := n.pipelines()
	if err != nil || d.flow == nil || n.trust.Synthesised {
		return err
	}
	layout, ovn := p.layouts[d.flow.Bridge]
	if !ovn || !layout.IsLogical(d.flow.Table) || d.metadata == 0 {
		return nil
	}
	f := rules.Flow{Table: d.flow.Table, Priority: d.flow.Priority, Metadata: d.metadata, Layout: layout}
	if d.flow.Miss {
		f.Priority = -1
	}
	s := rules.Subject{Packet: d.packet, InPort: n.portName(d.metadata, d.in), OutPort: n.portName(d.metadata, d.out)}
	candidates, err := n.candidates(d.flow.Bridge, f, s)
	if err != nil || len(candidates) == 0 {
		return err
	}
	lacking, err := n.zone.rules.Lacking(candidates, f.Priority, s)
	if err != nil || len(lacking) == 0 {
		return err
	}
	d.Drop = lackingDrop(d.Drop, lacking)
	return nil
}

// lackingDrop returns a drop whose reason is that the node lacks flows.
func lackingDrop(d answer.Drop, lacking []rules.Rule) answer.Drop {
	called := "logical flow"
	if len(lacking) > 1 {
		called += "s"
	}
	text := fmt.Sprintf("%s: the databases let the packet pass, and the node lacks %d %s of this stage for it: see ovs-offline drift", lacking[0].Words, len(lacking), called)
	if d.Rule != "" {
		text += "; dropped by " + d.Named()
	}
	d.Reason, d.Rule, d.Row, d.RuleName, d.ACL = string(rules.MissingFlow), text, "", "", nil
	return d
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
func (n *node) candidates(bridge string, f rules.Flow, s rules.Subject) ([]rules.Candidate, error) {
	n.read.Lock()
	defer n.read.Unlock()
	key := stageFor{bridge, f.Table, f.Metadata, s.InPort, s.OutPort}
	if found, known := n.read.candidates[key]; known {
		return found, nil
	}
	present := n.cookies(bridge, f.Table)
	found, err := n.zone.rules.Candidates(f, s, func(cookie uint64) bool { return present[cookie] })
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
	if f, err := os.Open(n.dir.DumpFile(bridge, workdir.Flows)); err == nil {
		defer f.Close()
		text := fmt.Sprintf("table=%d,", table)
		for flow, problem := range openflow.FlowsIn(f, func(line string) bool { return strings.Contains(line, text) }) {
			cookie, _ := flow.Identity()
			if number, err := strconv.ParseUint(cookie, 0, 64); problem == nil && err == nil {
				found[number] = true
			}
		}
	}
	if n.read.cookies == nil {
		n.read.cookies = map[tableOf]map[uint64]bool{}
	}
	n.read.cookies[key] = found
	return found
}
