package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"slices"

	"ovs-offline/answer/flows"
	"ovs-offline/internal/webpage"
)

// Bounds of what is read of the flows of a node. Flows with more packets come first, and the size of the page can leave
// out more.
const (
	maxOfStage  = 3000
	maxDatapath = 5000
)

// The size of a page in bytes: what the flows of all nodes may take.
const (
	usualNodes  = 10
	usualSize   = 3500 << 10 // for usualNodes or fewer
	furtherSize = 100 << 10  // for each further node
	largestSize = 16 << 20
)

// sizeOf returns how many bytes the flows of one of some nodes may take.
func sizeOf(nodes int) int {
	return min(usualSize+furtherSize*max(0, nodes-usualNodes), largestSize) / max(1, nodes)
}

// flows reads the flows of each node into a chunk of its own.
func (m *maker) flows(ctx context.Context) error {
	sources, err := flows.Sources(m.snapshot)
	if err != nil {
		return err
	}
	var failed []error
	for _, source := range sources {
		if err := ctx.Err(); err != nil {
			return err
		}
		index := m.index(source)
		m.options.Progress("naming the flows of %s", m.Nodes[index].Name)
		if err := m.flowsOf(ctx, index, source); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.Nodes[index].Name, err))
		}
	}
	m.Rules = m.rules.list
	return errors.Join(failed...)
}

// index returns the index of the node of a source: the node of a set that has only one has no name.
func (m *maker) index(source flows.Source) int {
	return max(0, slices.IndexFunc(m.Nodes, func(n *Node) bool { return n.Name == source.Name }))
}

// flowsOf reads the flows of a node. A node without recorded flows has none.
func (m *maker) flowsOf(ctx context.Context, index int, source flows.Source) error {
	node := m.Nodes[index]
	read := &reading{node: node, index: index, rules: m.rules, content: NodeFlows{Stages: []Stage{}, Flows: [][11]any{}, Datapath: []DatapathFlow{}}}
	listed, err := flows.Tree(ctx, []flows.Source{source}, flows.Query{Sort: flows.ByPackets, Limit: maxOfStage}, read.stage, read.flow)
	if err != nil && !errors.Is(err, flows.ErrNoFlows) {
		return err
	}
	m.failed = m.failed || listed.Lost > 0
	m.Remarks = append(m.Remarks, listed.Remarks...)
	lost, err := flows.ReadRecorded(ctx, source, read.datapath)
	if err != nil && !errors.Is(err, flows.ErrNoMegaflows) && !errors.Is(err, flows.ErrNoFlows) {
		return err
	}
	m.failed = m.failed || lost > 0
	data, err := read.fit(sizeOf(len(m.Nodes)))
	if err != nil || data == "" {
		return err
	}
	node.Chunk = fmt.Sprint("flows-", index)
	m.chunks = append(m.chunks, chunk{node.Chunk, template.HTML(data)})
	m.lackingFlows(node)
	return nil
}

// lackingFlows names the flows of a node that are not in the page.
func (m *maker) lackingFlows(node *Node) {
	if lacks := node.Flows - node.Shown; lacks > 0 {
		m.Absent = append(m.Absent, Absent{Part: "Flows of " + node.Name, Why: fmt.Sprintf("%d of %d flows are not in the page: in each stage, the flows that matched the fewest packets are left out", lacks, node.Flows), Next: m.options.Call.Line(node.Name, "flows")})
	}
	if lacks := node.Datapath - node.DatapathShown; lacks > 0 {
		m.Absent = append(m.Absent, Absent{Part: "Datapath flows of " + node.Name, Why: fmt.Sprintf("%d of %d flows are not in the page: the flows that matched the fewest packets are left out", lacks, node.Datapath), Next: m.options.Call.Line(node.Name, "flows", "--datapath")})
	}
}

// reading fills the flows of a node.
type reading struct {
	node    *Node
	index   int
	rules   *ruleIndex
	content NodeFlows
}

func (r *reading) stage(s flows.Stage) error {
	r.content.Stages = append(r.content.Stages, Stage{Bridge: s.Bridge, Table: s.Table, Name: s.Name, Flows: s.Flows, NeverHit: s.NeverHit, Packets: s.Packets})
	r.node.Flows += s.Flows
	r.node.Packets += s.Packets
	return nil
}

func (r *reading) flow(f flows.Flow) error {
	rule := r.rules.add(r.index, &f)
	r.content.Flows = append(r.content.Flows, [11]any{len(r.content.Stages) - 1, f.Priority, f.Packets, f.Bytes, f.Datapath, f.InPort, f.OutPort, f.Match, rule, f.For, f.Text})
	return nil
}

func (r *reading) datapath(f flows.Recorded) error {
	r.node.Datapath++
	r.content.Datapath = append(r.content.Datapath, DatapathFlow{Recirc: f.Recirculation, Next: f.Next, Packets: f.Packets, Bytes: f.Bytes, Used: f.Used, From: f.From, Match: f.Match, Actions: f.Actions})
	if len(r.content.Datapath) >= 2*maxDatapath {
		r.leastDatapath(maxDatapath)
	}
	return nil
}

// leastDatapath keeps some flows of the datapath, those with the most packets.
func (r *reading) leastDatapath(keep int) {
	slices.SortStableFunc(r.content.Datapath, func(a, b DatapathFlow) int { return cmp.Compare(b.Packets, a.Packets) })
	r.content.Datapath = r.content.Datapath[:min(keep, len(r.content.Datapath))]
}

// fit returns the flows as data for the page, "" if there are none. While the data has more than size bytes, fit leaves
// out the flows that matched the fewest packets.
func (r *reading) fit(size int) (string, error) {
	r.leastDatapath(maxDatapath)
	for {
		r.node.Shown, r.node.DatapathShown = len(r.content.Flows), len(r.content.Datapath)
		if r.node.Shown+r.node.DatapathShown == 0 {
			return "", nil
		}
		data, err := webpage.Data(r.content)
		if err != nil || len(data) <= size {
			return data, err
		}
		r.thin(float64(size) / float64(len(data)) * 0.9)
	}
}

// thin keeps a share of the flows: of each stage, and of the datapath, those with the most packets.
func (r *reading) thin(share float64) {
	count := make([]int, len(r.content.Stages))
	for _, f := range r.content.Flows {
		count[f[0].(int)]++
	}
	for i := range count {
		count[i] = int(float64(count[i]) * share)
	}
	r.content.Flows = slices.DeleteFunc(r.content.Flows, func(f [11]any) bool {
		count[f[0].(int)]--
		return count[f[0].(int)] < 0
	})
	r.leastDatapath(int(float64(len(r.content.Datapath)) * share))
}
