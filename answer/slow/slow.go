// Package slow finds out why packets are slow: flows of the datapath that flap or explode, flows that are
// not offloaded, connections that fill conntrack, and rows of the databases that change again and again. Only
// flapping flows need a running replica.
package slow

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"ovs-offline/answer/flows"
	"ovs-offline/answer/history"
	"ovs-offline/answer/rule"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/workdir"
)

// Report is what is slow on nodes.
type Report struct {
	Nodes    []*Node        `json:"nodes"`
	Churn    []*Churn       `json:"churn"`
	Findings []rule.Finding `json:"findings"`
	// Missing says what could not be judged, since it was not recorded or can't be read.
	Missing []string `json:"missing"`
	// Remarks are sentences about the databases.
	Remarks []string `json:"remarks,omitempty"`
}

// Node is what is slow on one node. What was not recorded is nil.
type Node struct {
	Node string `json:"node,omitempty"`
	counters
	Datapath *Datapath        `json:"datapath,omitempty"`
	Flapping []flows.Megaflow `json:"flapping"`
	// NotReplayed says why the flows of the datapath were not replayed, so that flapping ones are not known.
	NotReplayed string              `json:"not_replayed,omitempty"`
	Explosions  []flows.Explosion   `json:"explosions"`
	Offload     *Offload            `json:"offload,omitempty"`
	Conntrack   *Conntrack          `json:"conntrack,omitempty"`
	Engine      []appctl.EngineNode `json:"engine,omitempty"` // of ovn-controller, the most recomputes first
}

// Datapath counts the recorded flows of a datapath.
type Datapath struct {
	Flows   int    `json:"flows"`
	Packets uint64 `json:"packets"`
	Masks   int    `json:"masks"`
	Lost    int    `json:"lost"` // lines that can't be read
}

// Run examines the nodes of a set and their databases. progress takes the name of each node.
func Run(ctx context.Context, selected *snapshot.Snapshot, programs rule.Programs, progress func(node string)) (*Report, error) {
	deployments, remarks, err := selected.Deployments(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.CloseAll(deployments)
	if selected.Alone() {
		for _, d := range deployments {
			d.Nodes[0].Name = ""
		}
	}
	sources, more, err := history.Sources(ctx, selected, workdir.Kinds()...)
	if err != nil {
		return nil, err
	}
	r, err := examine(ctx, rule.Of(deployments, programs), sources, progress)
	if err != nil {
		return nil, err
	}
	r.Remarks = slices.Concat(remarks, more)
	return r, nil
}

// examine examines the nodes of a case, and the databases of sources.
func examine(ctx context.Context, of *rule.Case, sources []history.Source, progress func(node string)) (*Report, error) {
	r := &Report{Nodes: []*Node{}, Churn: []*Churn{}, Findings: []rule.Finding{}, Missing: []string{}}
	for _, d := range of.Deployments {
		known := namesOf(ctx, d)
		for _, n := range d.Nodes {
			progress(cmp.Or(n.Name, "the node"))
			recorded, err := readNode(ctx, n, known)
			if err == nil {
				err = recorded.failed
			}
			if err != nil {
				return nil, nodeError(n.Name, err)
			}
			r.addNode(n.Name, recorded)
		}
	}
	for _, source := range sources {
		churn, err := readChurn(ctx, source)
		if err != nil {
			return nil, err
		}
		if churn != nil {
			r.addChurn(churn)
		}
	}
	for i, f := range r.Findings {
		r.Findings[i] = f.Placed(nil, func(step rule.Next) bool { return len(step.Args) > 0 && step.Args[0] == "slow" })
	}
	rule.Sort(r.Findings)
	return r, nil
}

// namesOf returns a function that returns the names of a deployment, and reads them when it is first called.
func namesOf(ctx context.Context, d *rule.Deployment) func() (*names.Names, error) {
	return sync.OnceValues(func() (*names.Names, error) { return names.Load(ctx, []*snapshot.Deployment{d.Deployment}) })
}

// addNode adds what was recorded of a node.
func (r *Report) addNode(name string, recorded *recordedNode) {
	n := &Node{Node: name, counters: recorded.counters, Flapping: []flows.Megaflow{}, Explosions: append([]flows.Explosion{}, recorded.explosions...),
		Offload: recorded.offload, Conntrack: recorded.conntrack, Engine: recorded.engine}
	missing := func(what string) { r.Missing = append(r.Missing, prefix(name)+what) }
	if survey := recorded.survey; survey == nil {
		missing("flows of the datapath were not recorded (dpctl/dump-flows -m)")
	} else {
		n.Datapath = &Datapath{survey.Flows, survey.Packets, survey.Masks, survey.Lost}
		n.NotReplayed = recorded.notReplayed
		n.Flapping = append(n.Flapping, recorded.ofState(flows.Flapping)...)
		if survey.Lost > 0 {
			missing("lines of dpctl/dump-flows can't be read")
		}
	}
	switch c := recorded.conntrack; {
	case c == nil:
		missing("connections were not recorded (dpctl/dump-conntrack)")
	case c.Lost > 0:
		missing("lines of dpctl/dump-conntrack can't be read")
	}
	r.Nodes = append(r.Nodes, n)
	r.Findings = append(append(r.Findings, flapFindings(name, n.Flapping)...), recorded.findings(name)...)
}

// addChurn adds the changes of the rows of a database, the most frequent ones.
func (r *Report) addChurn(churn *Churn) {
	if churn.lost {
		r.Missing = append(r.Missing, churn.Database+": a part of the database can't be read")
	}
	r.Findings = append(r.Findings, churnFindings(churn)...)
	churn.Rows = churn.Rows[:min(len(churn.Rows), mostRows)]
	r.Churn = append(r.Churn, churn)
}

// mostRows bounds the rows of a database that are listed.
const mostRows = 200

func prefix(node string) string {
	if node == "" {
		return ""
	}
	return "node " + node + ": "
}
