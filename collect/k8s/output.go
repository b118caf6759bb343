package k8s

import (
	"cmp"
	"fmt"

	"ovs-offline/collect"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/workdir"
)

// The outcomes of a node.
const (
	outcomeWhole      = "whole"
	outcomeIncomplete = "incomplete"
	outcomeFailed     = "failed"
)

// Output is the JSON output of collect-k8s, for one node or several.
type Output struct {
	Cluster string       `json:"cluster"`
	Nodes   []OutputNode `json:"nodes"`
}

// OutputNode is the JSON output for one node: the output of collect with more fields.
type OutputNode struct {
	collect.CollectedNode
	Layout  string   `json:"layout,omitempty"`
	Outcome string   `json:"outcome"`
	OVS     string   `json:"ovs_version,omitempty"`
	OVN     string   `json:"ovn_version,omitempty"`
	Bridges int      `json:"bridges"`
	Files   int      `json:"files"`
	Size    int64    `json:"size"`
	Lost    []string `json:"lost"`
	Error   string   `json:"error,omitempty"`
}

func newOutputNode(r Result) OutputNode {
	n := OutputNode{CollectedNode: collect.CollectedNode{Name: r.Node, Workdir: r.Workdir, Collections: append([]workdir.Collection{}, r.Collections...)}, Layout: r.Layout, Outcome: outcomeWhole, Lost: []string{}}
	for _, c := range r.Collections {
		n.Bridges += len(c.Bridges)
		n.Files += len(c.Files)
		n.Lost = append(n.Lost, c.Lost...)
		for _, f := range c.Files {
			n.Size += f.Size
		}
		n.OVS, n.OVN = cmp.Or(n.OVS, c.OVSVersion), cmp.Or(n.OVN, c.OVNVersion)
	}
	if len(n.Lost) > 0 {
		n.Outcome = outcomeIncomplete
	}
	if r.Err != nil {
		n.Outcome, n.Error = outcomeFailed, r.Err.Error()
	}
	return n
}

// NewOutput returns the output about the nodes of a cluster.
func NewOutput(cluster string, results []Result) Output {
	out := Output{Cluster: cluster, Nodes: []OutputNode{}}
	for _, r := range results {
		out.Nodes = append(out.Nodes, newOutputNode(r))
	}
	return out
}

// Print prints what was collected, and for several nodes a summary first.
func (out Output) Print(p *show.Page, several bool) {
	nodes := out.Nodes
	if several {
		t := p.Table("node", "layout", "ovs", "ovn", "bridges", "files", "size", "collected")
		for _, n := range nodes {
			t.AppendRow([]any{terminal.Escape(n.Name), n.Layout, terminal.Escape(n.OVS), terminal.Escape(n.OVN), n.Bridges, n.Files, fmt.Sprintf("%.1f MiB", show.MiB(n.Size)), n.Outcome})
		}
		t.Render()
		p.Printf("\n")
	}
	for _, n := range nodes {
		if n.Outcome != outcomeFailed {
			p.Headline("Offline OVS Debugging: data collected and stored in %s", n.Workdir)
			collect.PrintCollections(p, n.Collections)
		}
	}
}
