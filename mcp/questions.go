package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/bisect"
	"ovs-offline/answer/check"
	"ovs-offline/answer/cluster"
	"ovs-offline/answer/compare"
	"ovs-offline/answer/drift"
	"ovs-offline/answer/flows"
	"ovs-offline/answer/history"
	"ovs-offline/answer/reach"
	"ovs-offline/answer/rule"
	"ovs-offline/answer/slow"
	"ovs-offline/answer/timeline"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/whatif"
	"ovs-offline/answer/why"
	"ovs-offline/internal/daemonlog"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// questions are the tools whose answers name what a user knows: pods, policies, routes. Each gives the document of a command.
type questions struct{ nodes }

func (q questions) add(t *toolbox) {
	addTool(t, &sdk.Tool{Name: "why", Annotations: readOnly(),
		Description: "Say why a packet between two endpoints (as for trace) does not arrive: the cause, what shows it, what was ruled out. Begin with it if you know the endpoints. The nodes have to be started."},
		[]string{"evidence", "also"}, q.why)
	addTool(t, &sdk.Tool{Name: "bisect", Annotations: readOnly(),
		Description: "Find since when a packet has its verdict, and which transaction of the northbound database changed it."},
		nil, q.bisect)
	addTool(t, &sdk.Tool{Name: "check", Annotations: readOnly(),
		Description: "Find out what is wrong in everything that was collected of nodes: ports, tunnels, control plane, addresses, load balancers, gateways, tables, flows, logs, versions. The worst findings come first, each with its consequence and the next command. Begin with it if you know no endpoints. No replica needs to run."},
		[]string{"findings"}, q.check)
	addTool(t, &sdk.Tool{Name: "slow", Annotations: readOnly(),
		Description: "Find out why packets or daemons are slow: lost packets, limits, masks, flows of the datapath that flap or explode, flows that are not offloaded, connections by zone and sender, rows that change again and again."},
		[]string{"findings"}, q.slow)
	addTool(t, &sdk.Tool{Name: "cluster", Annotations: readOnly(),
		Description: "Examine the clustered databases (RAFT): who leads, who is behind or does not answer, and the commands that repair it."},
		[]string{"clusters"}, q.cluster)
	addTool(t, &sdk.Tool{Name: "trace", Annotations: readOnly(),
		Description: "Follow a packet between two endpoints over all nodes, and the reply: whether it arrives, or else where it is dropped and by which rule (NetworkPolicy, security group, route, NAT). Endpoints: NAMESPACE/POD, svc/NAMESPACE/NAME[:PORT], node/NAME, external/ADDRESS, the name of a port or an instance, a MAC or IP address."},
		[]string{"stages"}, q.trace)
	addTool(t, &sdk.Tool{Name: "reach", Annotations: readOnly(),
		Description: "Show who reaches whom: the verdict of a trace for each pair of groups of endpoints that behave alike, and each port. Narrow it with from, to and ports; use pattern, for example \"UNREACHABLE\", to choose among the cells."},
		[]string{"cells"}, q.reach)
	addTool(t, &sdk.Tool{Name: "flows", Annotations: readOnly(),
		Description: "List the recorded flows of a node in names, with packets, stage, match and what each is for."},
		[]string{"flows"}, q.flows)
	addTool(t, &sdk.Tool{Name: "top", Annotations: readOnly(),
		Description: "Show which rules cost the most recorded flows, which matched no packet, and which are cross products, conjunctions or duplicates."},
		nil, q.top)
	addTool(t, &sdk.Tool{Name: "history", Annotations: readOnly(),
		Description: "Show who changed what in a recorded database, and when."},
		[]string{""}, q.history)
	addTool(t, &sdk.Tool{Name: "timeline", Annotations: readOnly(),
		Description: "Show what the daemons of all nodes logged and what changed in the databases, in order of time and in names."},
		[]string{""}, q.timeline)
	addTool(t, &sdk.Tool{Name: "what-if", Annotations: readOnly(),
		Description: "Compute on copies what a change of the northbound database does to the flows of nodes, and to a packet."},
		[]string{"added", "removed", "changed"}, q.whatIf)
	addTool(t, &sdk.Tool{Name: "drift", Annotations: readOnly(),
		Description: "Compare the flows, groups and meters that were recorded on a node with what the node's own release of OVN computes from the recorded databases. The result lists what is missing, extra or altered, with its policy, service or port. No replica needs to run."},
		[]string{"missing", "extra", "altered", "either", "changing"}, q.drift)
	if q.Root != "" {
		addTool(t, &sdk.Tool{Name: "compare", Annotations: readOnly(),
			Description: "Compare two captures of nodes below the server's root, in names: what was added, is gone or changed in OVN and Open vSwitch, and flows that nothing explains. Differences in numbers alone are left out."},
			[]string{"findings"}, q.compare)
	}
}

func (q questions) why(ctx context.Context, c *toolCall, in PacketParams) (*why.Document, error) {
	between, err := in.between()
	if err != nil {
		return nil, err
	}
	session, err := q.openSession(ctx, trace.Options{})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	found, err := why.Ask(ctx, session, c.chosen.Snapshot, between, q.checkOptions(c))
	if err != nil {
		return nil, err
	}
	c.say(string(found.Verdict) + ": " + found.Cause)
	c.remark(remarks(session)...)
	leaveOut(found.Trace, false)
	return found, nil
}

func (q questions) bisect(ctx context.Context, c *toolCall, in PacketParams) (*bisect.Document, error) {
	between, err := in.between()
	if err != nil {
		return nil, err
	}
	question := q.computed(c)
	question.Trace = &between
	if question.Deployment, err = whatif.Of(ctx, c.chosen.Snapshot); err != nil {
		return nil, err
	}
	found, err := bisect.Run(ctx, question)
	if err != nil {
		return nil, err
	}
	c.say(found.Headline())
	c.remark(found.Remarks...)
	for _, change := range found.Changes {
		leaveOut(change.Before.Trace, false)
		leaveOut(change.After.Trace, false)
	}
	return found, nil
}

// checkOptions returns the options of a check for a call.
func (q questions) checkOptions(c *toolCall) check.Options {
	return check.Options{Programs: rule.Programs{Runtime: q.runtime(), Runtimes: q.Runtimes}, Progress: c.progress}
}

// computed returns a question about flows that are computed, with the programs for a call.
func (q questions) computed(c *toolCall) whatif.Question {
	return whatif.Question{Runtime: q.runtime(), Runtimes: q.Runtimes, Progress: c.progress,
		Replica: func(path string) whatif.Replica { return set.At(path, q.Version) }}
}

func (q questions) check(ctx context.Context, c *toolCall, _ CheckParams) (*check.Report, error) {
	found, err := check.Run(ctx, c.chosen.Snapshot, q.checkOptions(c))
	if err == nil {
		c.say(found.Summary())
	}
	return found, err
}

func (q questions) slow(ctx context.Context, c *toolCall, _ CheckParams) (*slow.Report, error) {
	found, err := slow.Run(ctx, c.chosen.Snapshot, rule.Programs{Runtime: q.runtime(), Runtimes: q.Runtimes}, c.progress)
	if err == nil {
		c.remark(slices.Concat(found.Remarks, found.Missing)...)
	}
	return found, err
}

func (q questions) cluster(ctx context.Context, c *toolCall, _ CheckParams) (*cluster.Report, error) {
	return cluster.OfNodes(ctx, c.chosen.Snapshot)
}

func (q questions) trace(ctx context.Context, c *toolCall, in TraceParams) (*traced, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	session, err := q.openSession(ctx, trace.Options{Options: follow.Options{New: in.NewOnly}})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	var found *answer.Answer
	if in.Flow != "" {
		found, err = session.Flow(ctx, in.Name, in.Flow, in.Size)
	} else {
		found, err = session.Ask(ctx, in.between())
	}
	if err != nil {
		return nil, err
	}
	c.remark(remarks(session)...)
	c.rows.whole() // all stages
	err = c.sayAnswer(found)
	leaveOut(found, in.Stages)
	return (*traced)(found), err
}

// sayAnswer adds an answer about a packet in words.
func (c *toolCall) sayAnswer(found *answer.Answer) error {
	words := &chooser{LineParams: LineParams{Head: maxLines}}
	err := found.Write(terminal.NewLineWriter(words), answer.Options{})
	texts, _ := words.texts(maxOutput)
	c.Text = append(c.Text, texts...)
	return err
}

// leaveOut leaves what ofproto/trace printed out of an answer, and perhaps the stages.
func leaveOut(found *answer.Answer, stages bool) {
	if found == nil {
		return
	}
	for i := range found.Path {
		found.Path[i].Raw = ""
		if !stages {
			found.Path[i].Stages = []answer.Stage{}
		}
	}
	for _, reply := range append(slices.Clone(found.Replies), found.Return) {
		leaveOut(reply, stages)
	}
}

// remarks returns sentences about the nodes of a session, also about nodes whose replica can't be asked.
func remarks(session *trace.Session) []string {
	texts := slices.Concat(session.Doubts(), session.Remarks())
	for _, down := range session.Unavailable() {
		texts = append(texts, down.Error())
	}
	return texts
}

func (q questions) reach(ctx context.Context, c *toolCall, in ReachParams) (*reach.Document, error) {
	options, err := in.options()
	if err != nil {
		return nil, err
	}
	session, err := q.openSession(ctx, trace.Options{})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	matrix, err := reach.New(ctx, session, options)
	if err != nil {
		return nil, err
	}
	document := &reach.Document{Matrix: matrix}
	for cell := range matrix.Cells(ctx) {
		if err := c.rows.add(cell); err != nil {
			return nil, err
		}
		if document.Count(cell); document.Answered%500 < len(cell.Asked) {
			c.progress(fmt.Sprintf("asked %d of %d questions", document.Answered, matrix.Questions))
		}
	}
	c.say(document.Over())
	c.remark(remarks(session)...)
	return document, context.Cause(ctx)
}

func (q questions) flows(ctx context.Context, c *toolCall, in FlowsParams) (*flows.Document, error) {
	query, err := in.query()
	if err != nil {
		return nil, err
	}
	sources := []flows.Source{{Dir: c.wd}}
	listed, err := flows.List(ctx, sources, query, func(flow flows.Flow) error { return c.rows.add(flow) })
	if err == nil && listed.Flows == 0 {
		err = query.Known(ctx, sources)
	}
	c.remark(listed.Remarks...)
	return &flows.Document{Rest: flows.Rest{Lost: listed.Lost}}, err
}

func (q questions) top(ctx context.Context, c *toolCall, in TopParams) (*flows.Top, error) {
	const usual, most = 10, 100
	by := cmp.Or(flows.By(in.By), flows.ByRule)
	if !slices.Contains(flows.Kinds(), by) || in.Limit < 0 || in.Limit > most {
		return nil, fmt.Errorf("by is one of %v, and limit at most %d", flows.Kinds(), most)
	}
	var sources []flows.Source
	for _, node := range snapshot.WithSwitch(c.chosen.Nodes()) {
		wd, err := node.Workdir()
		if err != nil {
			return nil, err
		}
		sources = append(sources, flows.Source{Name: node.FolderName(), Dir: wd})
	}
	found, listed, err := flows.Count(ctx, sources, by, cmp.Or(in.Limit, usual))
	if err != nil {
		return nil, err
	}
	defer found.Close()
	c.remark(listed.Remarks...)
	return found, found.Examine(ctx)
}

func (q questions) history(ctx context.Context, c *toolCall, in HistoryParams) (events []history.Event, err error) {
	kind, known := map[string]workdir.Kind{"nbdb": workdir.NB, "sbdb": workdir.SB, "conf": workdir.OVS}[in.Database]
	if !known {
		return nil, wrongValue("database", in.Database, "nbdb", "sbdb", "conf")
	}
	query := history.Query{Table: in.Table, Record: in.Record, Column: in.Column}
	if query.Since, query.Until, err = history.ParseRange(in.Since, in.Until); err != nil {
		return nil, err
	}
	source, err := history.Of("", kind, c.wd, c.wd)
	if err != nil {
		return nil, err
	}
	if source.File == "" && len(source.Logs) == 0 {
		return nil, fmt.Errorf("no %s database was collected for node %s", kind.Title(), c.node.FolderName())
	}
	if err := history.FindDay(ctx, []history.Source{source}, time.Time{}, &query.Since, &query.Until); err != nil {
		return nil, err
	}
	results, err := history.Read(ctx, []history.Source{source}, query, func(event *history.Event) error { return c.rows.add(event) })
	for _, result := range results {
		c.remark(result.Remarks...)
		if result.Compacted {
			c.remark("the file holds one state only, of " + result.Base.UTC().Format(time.RFC3339))
		}
	}
	return events, err
}

func (q questions) timeline(ctx context.Context, c *toolCall, in TimelineParams) (entries []timeline.Entry, err error) {
	query := timeline.Query{Record: in.Record}
	if query.Since, query.Until, err = history.ParseRange(in.Since, in.Until); err != nil {
		return nil, err
	}
	var known bool
	if query.Level, known = daemonlog.ParseLevel(in.Level); !known && in.Level != "" {
		return nil, wrongValue("level", in.Level, daemonlog.Levels()...)
	}
	found, err := timeline.Open(ctx, c.chosen.Snapshot, query)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	result, err := found.Read(ctx, 0, func(entry *timeline.Entry) error { return c.rows.add(entry) })
	c.remark(result.Remarks...)
	return entries, err
}

func (q questions) whatIf(ctx context.Context, c *toolCall, in WhatIfParams) (*whatif.Result, error) {
	question := q.computed(c)
	err := in.ask(&question)
	if err != nil {
		return nil, err
	}
	if question.Deployment, err = whatif.Of(ctx, c.chosen.Snapshot); err != nil {
		return nil, err
	}
	found, err := whatif.Answer(ctx, question)
	if found == nil {
		return nil, err
	}
	if err != nil { // of the packet
		c.remark(err.Error())
	}
	for _, node := range found.Nodes {
		c.say(node.Node + ": " + node.Summary())
	}
	if traced := found.Trace; traced != nil {
		c.say(traced.Verdict)
		leaveOut(traced.Before, false)
		leaveOut(traced.After, false)
	}
	return found, nil
}

func (q questions) drift(ctx context.Context, c *toolCall, in DriftParams) (*drift.Report, error) {
	found, err := drift.Check(ctx, c.wd, drift.Options{Runtime: q.runtime(), Runtimes: q.Runtimes, Northd: in.Northd, Progress: c.progress})
	if err != nil {
		return nil, err
	}
	c.say(found.Summary())
	if found.Northd != nil {
		c.say("ovn-northd: " + found.Northd.Summary())
	}
	return found, nil
}

func (q questions) compare(ctx context.Context, c *toolCall, in CompareParams) (*compare.Comparison, error) {
	older, err := q.openCapture(ctx, c, in.Old)
	if err != nil {
		return nil, err
	}
	defer older.Close()
	newer, err := q.openCapture(ctx, c, in.New)
	if err != nil {
		return nil, err
	}
	defer newer.Close()
	return compare.Compare(ctx, older, newer)
}

// openCapture opens a capture below the root.
func (q questions) openCapture(ctx context.Context, c *toolCall, path string) (*compare.Side, error) {
	path, err := findBelow(q.Root, path)
	if err != nil {
		return nil, err
	}
	return compare.Open(ctx, path, compare.OpenOptions{Progress: reportReading(c.progress)})
}
