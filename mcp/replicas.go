package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
)

// NodeStatus describes a node.
type NodeStatus struct {
	Name      string   `json:"name"`
	Host      string   `json:"host,omitempty"`
	Collected []string `json:"collected" jsonschema:"what was collected"`
	Recorded  string   `json:"recorded_versions,omitempty"`
	State     string   `json:"state" jsonschema:"ready, not ready, or not started"`
	Resources []string `json:"resources"`
	Problem   string   `json:"problem,omitempty"`
}

// NodesResult is the result of list-nodes, start and stop.
type NodesResult struct {
	Nodes   []NodeStatus `json:"nodes"`
	Reports []Trust      `json:"reports,omitempty" jsonschema:"how faithful the replicas are that were started"`
	Remarks []string     `json:"remarks,omitempty"`
	Notice  string       `json:"notice"`
}

// ReportResult is the result of report.
type ReportResult struct {
	Trust  Trust          `json:"trust"`
	Report map[string]any `json:"report" jsonschema:"the document report.json of ovs-offline"`
	More   string         `json:"more,omitempty"`
}

// replicaTools collect data, and start, stop and examine replicas.
type replicaTools struct{ nodes }

func (r replicaTools) add(server *sdk.Server) {
	open := false
	changes := &sdk.ToolAnnotations{DestructiveHint: &open, IdempotentHint: true, OpenWorldHint: &open}
	addTool(server, &sdk.Tool{Name: "list-nodes", Annotations: readOnly(),
		Description: "List the nodes that were collected: their names for all other tools, what was collected of each, and whether its replica runs."}, r.list)
	addTool(server, &sdk.Tool{Name: "start", Annotations: changes,
		Description: "Start the replicas of nodes: real daemons on copies of the recorded data, isolated from any network. A replica that runs is replaced."}, r.start)
	addTool(server, &sdk.Tool{Name: "stop", Annotations: changes,
		Description: "Stop the replicas of nodes. The collected data stays."}, r.stop)
	addTool(server, &sdk.Tool{Name: "report", Annotations: readOnly(),
		Description: "Show how faithful the replica of a node is: what was restored, what was rejected and why."}, r.report)
	if r.Root != "" {
		addTool(server, &sdk.Tool{Name: "collect", Annotations: changes,
			Description: "Collect data of nodes from an sos report, a must-gather, databases, or a folder of these, below the server's root. Nothing that was collected is replaced."}, r.collect)
	}
}

func (r replicaTools) list(ctx context.Context, _ *sdk.CallToolRequest, in NodesParams) (*sdk.CallToolResult, NodesResult, error) {
	out, err := r.statuses(ctx, in.Names)
	return nil, out, err
}

// statuses describes nodes.
func (r replicaTools) statuses(ctx context.Context, names []string) (NodesResult, error) {
	out := NodesResult{Nodes: []NodeStatus{}, Notice: notice}
	all, err := r.choose(ctx, names)
	if err != nil {
		return out, err
	}
	out.Remarks = all.Remarks()
	for _, node := range all.Nodes() {
		out.Nodes = append(out.Nodes, statusOf(ctx, all.Node(node)))
	}
	return out, nil
}

func statusOf(ctx context.Context, node *set.Node) NodeStatus {
	name := node.FolderName()
	status := NodeStatus{Name: terminal.Escape(name), Host: terminal.Escape(node.Host()), Collected: []string{}, State: "not started", Resources: resourcesOf(name)}
	wd, err := node.Workdir()
	if err != nil {
		status.Problem = terminal.Escape(err.Error())
		return status
	}
	if manifest, err := wd.Manifest(); err == nil {
		for _, collection := range manifest.Collections {
			status.Collected = append(status.Collected, fmt.Sprintf("%s: %d files", collection.Kind.Title(), len(collection.Files)))
		}
	}
	if recorded, err := replica.Recorded(ctx, wd); err == nil {
		status.Recorded = terminal.Escape(recorded.String())
	}
	found, err := node.Status(ctx, wd)
	switch {
	case err == nil && found.Ready:
		status.State = "ready"
	case err == nil:
		status.State, status.Problem = "not ready", "start replaces it"
	}
	return status
}

func (r replicaTools) start(ctx context.Context, request *sdk.CallToolRequest, in NodesParams) (*sdk.CallToolResult, NodesResult, error) {
	all, err := r.choose(ctx, in.Names)
	if err != nil {
		return nil, NodesResult{}, err
	}
	notify := progress(ctx, request)
	options := func(node *snapshot.Node) set.StartOptions {
		report := func(text string) { notify(node.FolderName() + ": " + text) }
		return set.StartOptions{Runtime: r.runtime(), Starting: func(role string) { report("starting " + role) }, Progress: func(step string) { report("restoring: " + step) }}
	}
	outcomes := all.Start(ctx, options, func(node *snapshot.Node, memory string) { notify(node.FolderName() + ": " + memory) })
	if err := errors.Join(snapshot.Failures(all.Snapshot, outcomes)...); err != nil {
		return nil, NodesResult{}, err
	}
	out, err := r.statuses(ctx, in.Names)
	for _, node := range all.Nodes() {
		if wd, err := node.Workdir(); err == nil {
			out.Reports = append(out.Reports, trustIn(all.Node(node), wd))
		}
	}
	return nil, out, err
}

func (r replicaTools) stop(ctx context.Context, _ *sdk.CallToolRequest, in NodesParams) (*sdk.CallToolResult, NodesResult, error) {
	all, err := r.choose(ctx, in.Names)
	if err != nil {
		return nil, NodesResult{}, err
	}
	if err := errors.Join(snapshot.Failures(all.Snapshot, all.Stop(ctx, false))...); err != nil {
		return nil, NodesResult{}, err
	}
	out, err := r.statuses(ctx, in.Names)
	return nil, out, err
}

func (r replicaTools) report(ctx context.Context, _ *sdk.CallToolRequest, in NodeParams) (_ *sdk.CallToolResult, out ReportResult, err error) {
	node, wd, err := r.find(ctx, in.Name)
	if err != nil {
		return nil, out, err
	}
	found, err := replica.Report(wd)
	if errors.Is(err, replica.ErrNoReport) {
		return nil, out, fmt.Errorf("no replica of node %s was started: call start", node.FolderName())
	}
	if err != nil {
		return nil, out, err
	}
	out = ReportResult{Trust: trustIn(node, wd), More: shorten(found, node)}
	out.Report, err = escapeDocument(found)
	return nil, out, err
}

// escapeDocument returns a document whose texts are safe to print.
func escapeDocument(value any) (document map[string]any, err error) {
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, &document)
	}
	document, _ = terminal.EscapeAll(document).(map[string]any)
	return document, err
}

// shorten leaves the first items of each list of a report.
func shorten(found *report.Report, node *set.Node) string {
	const most = 50
	cut := len(found.Rejected) > most || len(found.Rewritten) > most || len(found.Placeholders) > most || len(found.Ports) > most
	found.Rejected, found.Rewritten = found.Rejected[:min(most, len(found.Rejected))], found.Rewritten[:min(most, len(found.Rewritten))]
	found.Placeholders, found.Ports = found.Placeholders[:min(most, len(found.Placeholders))], found.Ports[:min(most, len(found.Ports))]
	if !cut {
		return ""
	}
	return fmt.Sprintf("lists are cut after %d items; the resource %s has all", most, resourceURI(node.FolderName(), "report"))
}
