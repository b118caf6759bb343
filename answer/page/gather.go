package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"path/filepath"
	"slices"
	"time"

	"ovs-offline/answer/check"
	"ovs-offline/answer/graph"
	"ovs-offline/answer/reach"
	"ovs-offline/answer/rule"
	"ovs-offline/answer/timeline"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/versions"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/workdir"
)

// Options are the options of Make.
type Options struct {
	Programs rule.Programs // of OVN
	Version  string        // of ovs-offline
	Checks   []trace.Check // the questions of the user
	// Call makes the command lines of the program on the set.
	Call show.Call
	// Progress takes what is being done; nil for none.
	Progress func(format string, args ...any)
}

// Page is a case with all that its page holds.
type Page struct {
	Case

	chunks  []chunk
	answers []*answer.Answer // of Traces, in their order; nil for a question that was not asked
	failed  bool
	call    show.Call
}

// chunk is data that the page's script reads when it is needed.
type chunk struct {
	ID   string
	Data template.HTML // base64
}

// Failed reports whether something that was collected could not be read, or a question could not be asked.
func (p *Page) Failed() bool { return p.failed }

// maker fills a page.
type maker struct {
	*Page
	options  Options
	snapshot *snapshot.Snapshot
	rules    *ruleIndex
}

// Make gathers everything about the nodes of a set. What can't be read, and what only running replicas could
// answer, is listed in Absent.
func Make(ctx context.Context, selected *snapshot.Snapshot, options Options) (*Page, error) {
	if options.Progress == nil {
		options.Progress = func(string, ...any) {}
	}
	options.Programs.Drifts = &rule.Drifts{}
	m := &maker{Page: &Page{call: options.Call}, options: options, snapshot: selected, rules: newRuleIndex()}
	m.Case = Case{Title: filepath.Base(selected.Folder()), Folder: selected.Folder(), Made: time.Now().UTC().Truncate(time.Second), Version: options.Version,
		Legend: reach.Legend(), Endpoints: []Endpoint{}, Rules: []*Rule{}, Timeline: []*timeline.Entry{}, Remarks: selected.Remarks()}
	if selected.Alone() {
		m.Title = selected.Nodes()[0].Name
	}
	for _, part := range []struct {
		name    string
		command []string
		do      func(context.Context) error
	}{
		{"Nodes", []string{"report"}, m.nodes},
		{"Findings", []string{"check"}, m.check},
		{"Bridges and ports", []string{"graph", "FILE"}, m.bridges},
		{"Logical network", []string{"graph", "--logical", "FILE"}, m.logical},
		{"Flows", []string{"flows"}, m.flows},
		{"Endpoints and rules", []string{"flows"}, m.names},
		{"Drift", []string{"drift"}, m.drift},
		{"Timeline", []string{"timeline"}, m.timeline},
		{partMatrix, []string{"start"}, m.ask},
	} {
		if err := part.do(ctx); err != nil && ctx.Err() == nil {
			m.absent(part.name, err, part.command...)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	slices.Sort(m.Remarks)
	m.Remarks = slices.Compact(m.Remarks)
	return m.Page, nil
}

// absent notes that a part is missing because of an error.
func (m *maker) absent(part string, err error, command ...string) {
	m.failed = true
	m.Absent = append(m.Absent, Absent{Part: part, Why: reasonOf(err), Next: m.options.Call.Line("", command...)})
}

// nodes describes what was collected of each node, and how faithful its replica is.
func (m *maker) nodes(ctx context.Context) error {
	outcomes := snapshot.Each(ctx, m.snapshot, func(_ context.Context, n *snapshot.Node, wd *workdir.Dir) (*Node, error) { return describe(n, wd) })
	for _, outcome := range outcomes {
		if outcome.Err != nil {
			outcome.Value = &Node{Name: outcome.Node.Name, Fidelity: "its working directory can't be read: " + outcome.Err.Error()}
			m.failed = true
		}
		if n := outcome.Value; n.ItemsLeftOut > 0 {
			m.Absent = append(m.Absent, Absent{Part: "Fidelity of " + n.Name, Why: fmt.Sprintf("%d entries that the replica lacks, or has otherwise, are not in the page", n.ItemsLeftOut), Next: m.options.Call.Line(n.Name, "report")})
		}
		m.Nodes = append(m.Nodes, outcome.Value)
	}
	return nil
}

func describe(n *snapshot.Node, wd *workdir.Dir) (*Node, error) {
	manifest, err := wd.Manifest()
	if err != nil {
		return nil, err
	}
	node := &Node{Name: n.Name, Host: n.Host(), Recorded: manifest.RecordedText(), Collected: []string{}}
	for _, c := range manifest.Collections {
		node.OVS, node.OVN = cmp.Or(node.OVS, c.OVSVersion), cmp.Or(node.OVN, c.OVNVersion)
		node.Collected = append(node.Collected, fmt.Sprintf("%s: %s, from %s %s", c.Kind.Title(), phrase.Count(len(c.Files), "file"), c.Source.Kind, filepath.Base(c.Source.Name)))
		node.Lost = append(node.Lost, c.Lost...)
	}
	if made := manifest.Synthesis(); made != nil {
		node.Synthesised = "made up from " + made.Origin()
	}
	found, err := replica.Report(wd)
	switch {
	case errors.Is(err, replica.ErrNoReport):
		node.Fidelity = "no replica was started: how faithful one would be is not known"
		return node, nil
	case err != nil:
		return nil, err
	}
	node.Report, node.Fidelity, node.Restored = found, found.Sentence(), found.RestoredShare()
	for _, list := range []*[]report.Item{&found.Rejected, &found.Rewritten, &found.Placeholders} {
		node.ItemsLeftOut += max(0, len(*list)-maxDifferences)
		*list = (*list)[:min(maxDifferences, len(*list))]
	}
	if recorded := found.Recorded; recorded != (versions.Pair{}) {
		node.OVS, node.OVN = cmp.Or(recorded.OVS, node.OVS), cmp.Or(recorded.OVN, node.OVN)
	}
	return node, nil
}

// check finds out what is wrong.
func (m *maker) check(ctx context.Context) (err error) {
	m.options.Progress("looking for what is wrong")
	m.Check, err = check.Run(ctx, m.snapshot, check.Options{Programs: m.options.Programs, Progress: func(text string) { m.options.Progress("looking for what is wrong: %s", text) }})
	if err != nil {
		m.Check = &check.Report{Findings: []rule.Finding{}}
		return err
	}
	m.failed = m.failed || len(m.Check.Unjudged) > 0
	return nil
}

// bridges reads the bridges and ports of all nodes. A node that can't be drawn costs that node.
func (m *maker) bridges(ctx context.Context) (err error) {
	m.options.Progress("reading bridges and ports")
	m.Physical, err = graph.OfNodes(ctx, m.snapshot)
	return withoutData(err)
}

// logical reads the logical network.
func (m *maker) logical(ctx context.Context) error {
	m.options.Progress("reading the logical network")
	drawn, remarks, err := graph.OfNetworks(ctx, m.snapshot)
	m.Logical = drawn
	m.Remarks = append(m.Remarks, remarks...)
	return withoutData(err)
}

// withoutData returns the parts of an error that say something else than that nothing was collected; nil without any.
func withoutData(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(slices.DeleteFunc(slices.Clone(joinedIn(err)), func(one error) bool { return errors.Is(one, graph.ErrNoDatabase) })...)
}

// maxEndpoints bounds the endpoints of a page.
const maxEndpoints = 20_000

// names reads the endpoints, and the rows of rules.
func (m *maker) names(ctx context.Context) error {
	m.options.Progress("reading names")
	deployments, remarks, err := m.snapshot.Deployments(ctx)
	if err != nil {
		return err
	}
	defer snapshot.CloseAll(deployments)
	m.Remarks = append(m.Remarks, remarks...)
	known, err := names.Load(ctx, deployments)
	if err != nil {
		return err
	}
	all := known.All()
	if len(all) > maxEndpoints {
		m.Absent = append(m.Absent, Absent{Part: "Endpoints", Why: fmt.Sprintf("%d of %d endpoints are not in the page", len(all)-maxEndpoints, len(all))})
		all = all[:maxEndpoints]
	}
	for _, e := range all {
		shown := Endpoint{Name: e.Name, Kind: string(e.Kind), LogicalPort: e.LogicalPort, Node: e.Node, Chassis: e.Chassis, MAC: e.MAC, Switch: e.Switch, Network: e.Network, Backends: e.Backends}
		for _, ip := range e.IPs {
			shown.IPs = append(shown.IPs, ip.String())
		}
		m.Endpoints = append(m.Endpoints, shown)
	}
	return m.rules.read(deployments)
}

// maxEntries bounds the timeline.
const maxEntries = 4000

func (m *maker) timeline(ctx context.Context) error {
	m.options.Progress("merging logs and transactions")
	opened, err := timeline.Open(ctx, m.snapshot, timeline.Query{})
	if errors.Is(err, timeline.ErrNothing) {
		m.Absent = append(m.Absent, Absent{Part: "Timeline", Why: err.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	defer opened.Close()
	result, err := opened.Read(ctx, maxEntries+1, func(entry *timeline.Entry) error {
		m.Timeline = append(m.Timeline, entry)
		return nil
	})
	if len(m.Timeline) > maxEntries {
		m.Timeline = m.Timeline[1:]
		first := m.Timeline[0].Time
		m.Absent = append(m.Absent, Absent{Part: "Timeline", Why: fmt.Sprintf("the entries before %s are not in the page", show.Time(first)), Next: m.options.Call.Line("", "timeline", "--until", first.UTC().Format(time.RFC3339))})
	}
	m.Remarks = append(m.Remarks, result.Remarks...)
	m.failed = m.failed || result.Lost
	return err
}
