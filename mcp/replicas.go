package mcp

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

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
	Reports []*Trust     `json:"reports,omitempty" jsonschema:"how faithful the replicas are that were started"`
}

// replicaTools collect data, and start, stop and examine replicas.
type replicaTools struct{ nodes }

func (r replicaTools) add(t *toolbox) {
	open := false
	changes := &sdk.ToolAnnotations{DestructiveHint: &open, IdempotentHint: true, OpenWorldHint: &open}
	addTool(t, &sdk.Tool{Name: "list-nodes", Annotations: readOnly(),
		Description: "List the nodes that were collected: their names for all other tools, what was collected of each, and whether its replica runs."}, nil, r.list)
	addTool(t, &sdk.Tool{Name: "start", Annotations: changes,
		Description: "Start the replicas of nodes: real daemons on copies of the recorded data, isolated from any network. A replica that runs is replaced."}, nil, r.start)
	addTool(t, &sdk.Tool{Name: "stop", Annotations: changes,
		Description: "Stop the replicas of nodes. The collected data stays."}, nil, r.stop)
	addTool(t, &sdk.Tool{Name: "report", Annotations: readOnly(),
		Description: "Show how faithful the replica of a node is: what was restored, what was rejected and why."}, nil, r.report)
	if r.Root != "" {
		addTool(t, &sdk.Tool{Name: "collect", Annotations: changes,
			Description: "Collect data of nodes from an sos report, a must-gather, databases, or a folder of these, below the server's root. Nothing that was collected is replaced."}, nil, r.collect)
	}
}

func (r replicaTools) list(ctx context.Context, c *toolCall, _ NodesParams) (*NodesResult, error) {
	return statuses(ctx, c, c.chosen), nil
}

// statuses describes nodes.
func statuses(ctx context.Context, c *toolCall, chosen *set.Set) *NodesResult {
	out := &NodesResult{Nodes: []NodeStatus{}}
	c.remark(chosen.Remarks()...)
	for _, node := range chosen.Nodes() {
		out.Nodes = append(out.Nodes, statusOf(ctx, chosen.Node(node)))
	}
	return out
}

func statusOf(ctx context.Context, node *set.Node) NodeStatus {
	name := node.FolderName()
	status := NodeStatus{Name: name, Host: node.Host(), Collected: []string{}, State: "not started", Resources: resourcesOf(name)}
	wd, err := node.Workdir()
	if err != nil {
		status.Problem = err.Error()
		return status
	}
	if manifest, err := wd.Manifest(); err == nil {
		for _, collection := range manifest.Collections {
			status.Collected = append(status.Collected, fmt.Sprintf("%s: %d files", collection.Kind.Title(), len(collection.Files)))
		}
	}
	if recorded, err := replica.Recorded(ctx, wd); err == nil {
		status.Recorded = recorded.String()
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

func (r replicaTools) start(ctx context.Context, c *toolCall, in NodesParams) (*NodesResult, error) {
	options := func(node *snapshot.Node) set.StartOptions {
		report := func(text string) { c.progress(node.FolderName() + ": " + text) }
		return set.StartOptions{Runtime: r.runtime(), Starting: func(role string) { report("starting " + role) }, Progress: func(step string) { report("restoring: " + step) }}
	}
	outcomes := c.chosen.Start(ctx, options, func(node *snapshot.Node, memory string) { c.progress(node.FolderName() + ": " + memory) })
	out, err := r.after(ctx, c, in, snapshot.Failures(c.chosen.Snapshot, outcomes))
	for _, node := range c.chosen.Nodes() {
		if wd, wdErr := node.Workdir(); err == nil && wdErr == nil {
			out.Reports = append(out.Reports, trustIn(c.chosen.Node(node), wd))
		}
	}
	return out, err
}

func (r replicaTools) stop(ctx context.Context, c *toolCall, in NodesParams) (*NodesResult, error) {
	return r.after(ctx, c, in, snapshot.Failures(c.chosen.Snapshot, c.chosen.Stop(ctx, false)))
}

// after describes nodes, read again, after their replicas changed without failures.
func (r replicaTools) after(ctx context.Context, c *toolCall, in NodesParams, failures []error) (*NodesResult, error) {
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	chosen, err := r.choose(ctx, in.Names)
	if err != nil {
		return nil, err
	}
	return statuses(ctx, c, chosen), nil
}

func (r replicaTools) report(_ context.Context, c *toolCall, _ NodeParams) (*report.Report, error) {
	found, err := replica.Report(c.wd)
	if errors.Is(err, replica.ErrNoReport) {
		return nil, fmt.Errorf("no replica of node %s was started: call start", c.node.FolderName())
	}
	return found, err
}
