// Package slow finds out why packets are slow: flows of the datapath that flap or explode, flows that are
// not offloaded, connections that fill conntrack, and rows of the databases that change again and again. Only
// flapping flows need a running replica.
package slow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"ovs-offline/answer/flows"
	"ovs-offline/answer/history"
	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/appctl"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovn/names"
	"ovs-offline/internal/workdir"
)

// Report is what is slow on nodes.
type Report struct {
	Nodes    []*Node        `json:"nodes"`
	Churn    []*Churn       `json:"churn"`
	Findings []rule.Finding `json:"findings"`
	// Missing says what could not be judged, since it was not recorded or can't be read.
	Missing []string `json:"missing"`
}

// Node is what is slow on one node. What was not recorded is nil.
type Node struct {
	Node       string              `json:"node,omitempty"`
	Datapath   *Datapath           `json:"datapath,omitempty"`
	Flapping   []flows.Megaflow    `json:"flapping"`
	Replayed   bool                `json:"replayed"` // a replica runs, so that flapping flows are known
	Explosions []flows.Explosion   `json:"explosions"`
	Offload    *Offload            `json:"offload,omitempty"`
	Conntrack  *Conntrack          `json:"conntrack,omitempty"`
	Engine     []appctl.EngineNode `json:"engine,omitempty"` // of ovn-controller, the most recomputes first
}

// Datapath counts the recorded flows of a datapath.
type Datapath struct {
	Flows   int    `json:"flows"`
	Packets uint64 `json:"packets"`
	Masks   int    `json:"masks"`
	Lost    int    `json:"lost"` // lines that can't be read
}

// recordedEngine is the output of inc-engine/show-stats of ovn-controller.
const recordedEngine = "ovn-controller.inc-engine.show-stats"

// Examine examines the nodes of a case, and the databases of sources.
func Examine(ctx context.Context, of *rule.Case, sources []history.Source, progress func(string)) (*Report, error) {
	r := &Report{Nodes: []*Node{}, Churn: []*Churn{}, Findings: []rule.Finding{}, Missing: []string{}}
	for _, d := range of.Deployments {
		known := Names(ctx, d)
		for _, n := range d.Nodes {
			progress(cmp.Or(n.Name, "the node"))
			examined, err := r.examine(ctx, n, known)
			if err != nil {
				return nil, nodeError(n.Name, err)
			}
			r.Nodes = append(r.Nodes, examined)
		}
	}
	for _, source := range sources {
		churn, err := readChurn(ctx, source)
		if err != nil {
			return nil, err
		}
		if churn == nil {
			continue
		}
		if churn.lost {
			r.Missing = append(r.Missing, churn.Database+": a part of the database can't be read")
		}
		r.Churn = append(r.Churn, churn)
		r.Findings = append(r.Findings, churnFindings(churn)...)
		churn.Rows = churn.Rows[:min(len(churn.Rows), mostRows)]
	}
	rule.Sort(r.Findings)
	return r, nil
}

// Names returns the names of a deployment, which are read when they are first needed.
func Names(ctx context.Context, d *rule.Deployment) func() (*names.Names, error) {
	return sync.OnceValues(func() (*names.Names, error) { return names.Load(ctx, []*ovn.Deployment{d.Deployment}) })
}

// examine examines a node.
func (r *Report) examine(ctx context.Context, n *rule.Node, known func() (*names.Names, error)) (*Node, error) {
	examined := &Node{Node: n.Name, Flapping: []flows.Megaflow{}, Explosions: []flows.Explosion{}}
	missing := func(what string) { r.Missing = append(r.Missing, prefix(n.Name)+what) }
	survey, offload, err := readDatapath(ctx, n)
	switch {
	case errors.Is(err, flows.ErrNoMegaflows):
		missing("flows of the datapath were not recorded (dpctl/dump-flows -m)")
	case err != nil:
		return nil, err
	default:
		if err := examined.examineFlows(ctx, n, survey, offload); err != nil {
			return nil, err
		}
		if survey.Lost > 0 {
			missing("lines of dpctl/dump-flows can't be read")
		}
	}
	if examined.Conntrack, err = readConntrack(ctx, n, known); err != nil {
		return nil, err
	}
	switch c := examined.Conntrack; {
	case c == nil:
		missing("connections were not recorded (dpctl/dump-conntrack)")
	case c.Lost > 0:
		missing("lines of dpctl/dump-conntrack can't be read")
	}
	if examined.Engine, err = readEngine(n); err != nil {
		return nil, err
	}
	for _, found := range [][]rule.Finding{flapFindings(examined.Node, examined.Flapping), explosionFindings(examined.Explosions), offloadFindings(examined.Offload), conntrackFindings(examined.Conntrack)} {
		r.Findings = append(r.Findings, found...)
	}
	return examined, nil
}

// examineFlows examines the flows of the datapath.
func (n *Node) examineFlows(ctx context.Context, of *rule.Node, survey *flows.Survey, offload *Offload) (err error) {
	n.Datapath, n.Offload = &Datapath{survey.Flows, survey.Packets, survey.Masks, survey.Lost}, offload
	source := sourceOf(of)
	found, err := flows.Explosions(ctx, source, survey)
	if err != nil {
		return err
	}
	n.Explosions = append(n.Explosions, found...)
	replayed, err := replay(ctx, source, survey)
	if err != nil || replayed == nil {
		return err
	}
	n.Replayed = true
	for _, m := range replayed.Flows {
		if m.State == flows.Flapping {
			n.Flapping = append(n.Flapping, m)
		}
	}
	return nil
}

// replay replays the recorded flows of the datapath of a node; nil where no replica runs, or where there
// are too many.
func replay(ctx context.Context, source flows.Source, survey *flows.Survey) (*flows.Replayed, error) {
	if survey.Flows > mostReplayed {
		return nil, nil
	}
	replayed, err := flows.Replay(ctx, []flows.Source{source})
	if unavailable := (*host.UnavailableError)(nil); errors.As(err, &unavailable) || errors.Is(err, flows.ErrNoFlows) {
		return nil, nil
	}
	return replayed, err
}

// mostRows bounds the rows of a database that are listed.
const mostRows = 200

// mostReplayed bounds the flows of the datapath that are replayed: each takes a millisecond, and memory.
const mostReplayed = 50_000

func sourceOf(n *rule.Node) flows.Source { return flows.Source{Name: n.Name, Dir: n.Dir} }

// readDatapath reads the recorded flows of the datapath once. The Offload is nil on a node that offloads
// nothing and is not configured to.
func readDatapath(ctx context.Context, n *rule.Node) (*flows.Survey, *Offload, error) {
	enabled, err := hwOffload(n)
	if err != nil {
		return nil, nil, err
	}
	count := newOffloadCount(enabled || n.OVS == nil)
	survey, err := flows.ReadSurvey(ctx, n.Dir, func(m appctl.Megaflow) { count.add(&m) })
	if err != nil || !count.layers || !enabled && count.Offloaded+count.Partial == 0 {
		return survey, nil, err
	}
	count.Node, count.Enabled = n.Name, enabled
	return survey, count.finish(), nil
}

// readEngine reads how often ovn-controller computed everything again.
func readEngine(n *rule.Node) ([]appctl.EngineNode, error) {
	file, ok, err := workdir.OpenCollected(n.Dir.HostRecorded(recordedEngine))
	if err != nil || !ok {
		return nil, err
	}
	defer file.Close()
	nodes, err := appctl.Engine(file)
	slices.SortStableFunc(nodes, func(a, b appctl.EngineNode) int { return b.Recompute - a.Recompute })
	return nodes, err
}

func prefix(node string) string {
	if node == "" {
		return ""
	}
	return "node " + node + ": "
}
