package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/set"
)

// NodesParams select nodes.
type NodesParams struct {
	Names []string `json:"names,omitempty" jsonschema:"names of nodes; all without it"`
}

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

// CollectParams are the parameters of collect.
type CollectParams struct {
	Path string `json:"path" jsonschema:"sos report, must-gather, database or folder, relative to the server's root"`
	Node string `json:"node,omitempty" jsonschema:"name of a new folder for the node of path, if other nodes were or will be collected; without it, a node alone goes to the server's folder itself, and each of several to a folder with its name"`
}

// ReportResult is the result of report.
type ReportResult struct {
	Trust  Trust          `json:"trust"`
	Report map[string]any `json:"report" jsonschema:"the document report.json of ovs-offline"`
	More   string         `json:"more,omitempty"`
}

func (s *Server) addReplicaTools() {
	open := false
	changes := &sdk.ToolAnnotations{DestructiveHint: &open, IdempotentHint: true, OpenWorldHint: &open}
	sdk.AddTool(s.server, &sdk.Tool{Name: "list-nodes", Annotations: readOnly(),
		Description: "List the nodes that were collected: their names for all other tools, what was collected of each, and whether its replica runs."}, s.listNodes)
	sdk.AddTool(s.server, &sdk.Tool{Name: "start", Annotations: changes,
		Description: "Start the replicas of nodes: real daemons on copies of the recorded data, isolated from any network. A replica that runs is replaced."}, s.start)
	sdk.AddTool(s.server, &sdk.Tool{Name: "stop", Annotations: changes,
		Description: "Stop the replicas of nodes. The collected data stays."}, s.stop)
	sdk.AddTool(s.server, &sdk.Tool{Name: "report", Annotations: readOnly(),
		Description: "Show how faithful the replica of a node is: what was restored, what was rejected and why."}, s.report)
	sdk.AddTool(s.server, &sdk.Tool{Name: "trace", Annotations: readOnly(),
		Description: "Follow a packet between two endpoints over all nodes, and the reply: says whether it arrives, and else where it is dropped and by which rule (NetworkPolicy, security group, route, NAT). Endpoints: NAMESPACE/POD, svc/NAMESPACE/NAME[:PORT], node/NAME, external/ADDRESS, the name of a port or an instance, a MAC or IP address."}, s.trace)
	if s.Root != "" {
		sdk.AddTool(s.server, &sdk.Tool{Name: "collect", Annotations: changes,
			Description: "Collect data of nodes from an sos report, a must-gather, databases, or a folder of these, below the server's root. Nothing that was collected is replaced."}, s.collect)
	}
}

func (s *Server) listNodes(ctx context.Context, _ *sdk.CallToolRequest, in NodesParams) (*sdk.CallToolResult, NodesResult, error) {
	out, err := s.statuses(ctx, in.Names)
	return nil, out, err
}

// selected returns the nodes with the names, all without names, as a set if the folder is
// one.
func (s *Server) selected(names []string) (*set.Set, []*set.Node, error) {
	for _, n := range names {
		if err := name("name", n); err != nil {
			return nil, nil, err
		}
	}
	all, err := set.Open(s.Folder, s.Version, names)
	if err != nil {
		return nil, nil, err
	}
	if all != nil {
		return all, all.Nodes(), nil
	}
	one := set.At(s.Folder, s.Version)
	if _, err := one.Workdir(); err != nil {
		return nil, nil, fmt.Errorf("no node was collected yet: %w", err)
	}
	for _, n := range names {
		if n != nodeName(one) && n != one.Host() {
			return nil, nil, fmt.Errorf("no node is called %q; the node is: %s", n, nodeName(one))
		}
	}
	return nil, []*set.Node{one}, nil
}

// statuses describes nodes.
func (s *Server) statuses(ctx context.Context, names []string) (NodesResult, error) {
	out := NodesResult{Nodes: []NodeStatus{}, Notice: notice}
	all, nodes, err := s.selected(names)
	if err != nil {
		return out, err
	}
	if all != nil {
		out.Remarks = all.Remarks()
	}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, status(ctx, n))
	}
	return out, nil
}

func status(ctx context.Context, n *set.Node) NodeStatus {
	st := NodeStatus{Name: terminal.Escape(nodeName(n)), Host: terminal.Escape(n.Host()), Collected: []string{}, State: "not started", Resources: resourcesOf(nodeName(n))}
	wd, err := n.Workdir()
	if err != nil {
		st.Problem = terminal.Escape(err.Error())
		return st
	}
	if m, err := wd.Manifest(); err == nil {
		for _, c := range m.Collections {
			st.Collected = append(st.Collected, fmt.Sprintf("%s: %d files", c.Kind.Title(), len(c.Files)))
		}
	}
	if recorded, err := replica.Recorded(ctx, wd); err == nil {
		st.Recorded = terminal.Escape(recorded.String())
	}
	found, err := n.Status(ctx, wd)
	switch {
	case err == nil && found.Ready:
		st.State = "ready"
	case err == nil:
		st.State, st.Problem = "not ready", "start replaces it"
	}
	return st
}

func (s *Server) start(ctx context.Context, request *sdk.CallToolRequest, in NodesParams) (*sdk.CallToolResult, NodesResult, error) {
	all, nodes, err := s.selected(in.Names)
	if err != nil {
		return nil, NodesResult{}, err
	}
	say := progress(ctx, request)
	var mu sync.Mutex // nodes start side by side
	options := func(n *set.Node) set.StartOptions {
		report := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			say(nodeName(n) + ": " + text)
		}
		return set.StartOptions{Runtime: s.runtime(), Starting: func(role string) { report("starting " + role) }, Progress: func(step string) { report("restoring: " + step) }}
	}
	var failed error
	if all != nil {
		for _, o := range all.Start(ctx, options, func(n *set.Node, memory string) { say(nodeName(n) + ": " + memory) }) {
			if o.Err != nil {
				failed = errors.Join(failed, fmt.Errorf("node %s: %w", o.Node.Name, o.Err))
			}
		}
	} else {
		failed = s.locked(func(wd *workdir.Dir) error {
			_, err := nodes[0].Start(ctx, wd, options(nodes[0]))
			return err
		})
	}
	if failed != nil {
		return nil, NodesResult{}, failed
	}
	out, err := s.statuses(ctx, in.Names)
	for _, n := range nodes {
		if wd, err := n.Workdir(); err == nil {
			out.Reports = append(out.Reports, trust(n, wd))
		}
	}
	return nil, out, err
}

func (s *Server) runtime() string {
	if s.Runtime == "" {
		return choose.Auto
	}
	return s.Runtime
}

// locked calls do with the folder locked as the workdir of a node.
func (s *Server) locked(do func(wd *workdir.Dir) error) error {
	wd, err := workdir.Lock(s.Folder)
	if err != nil {
		return err
	}
	defer wd.Unlock()
	return do(wd)
}

func (s *Server) stop(ctx context.Context, _ *sdk.CallToolRequest, in NodesParams) (*sdk.CallToolResult, NodesResult, error) {
	all, nodes, err := s.selected(in.Names)
	if err != nil {
		return nil, NodesResult{}, err
	}
	if all != nil {
		for _, o := range all.Stop(ctx, false) {
			if o.Err != nil {
				err = errors.Join(err, fmt.Errorf("node %s: %w", o.Node.Name, o.Err))
			}
		}
	} else {
		err = s.locked(func(wd *workdir.Dir) error {
			_, err := nodes[0].Stop(ctx, wd)
			return err
		})
	}
	if err != nil {
		return nil, NodesResult{}, err
	}
	out, err := s.statuses(ctx, in.Names)
	return nil, out, err
}

// folderName matches the name of a folder that collect may make.
var folderName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (s *Server) collect(ctx context.Context, request *sdk.CallToolRequest, in CollectParams) (*sdk.CallToolResult, NodesResult, error) {
	path, err := below(s.Root, in.Path)
	if err != nil {
		return nil, NodesResult{}, err
	}
	folder := s.Folder
	if in.Node != "" {
		if !folderName.MatchString(in.Node) {
			return nil, NodesResult{}, fmt.Errorf("node takes letters, digits, dots and dashes, not %q", in.Node[:min(len(in.Node), 80)])
		}
		if folder, err = collect.Place(folder, in.Node, true); err != nil {
			return nil, NodesResult{}, err
		}
	}
	wd, err := workdir.Lock(folder)
	if err != nil {
		return nil, NodesResult{}, err
	}
	defer wd.Unlock()
	say := progress(ctx, request)
	_, found, err := collect.Collect(ctx, wd, collect.Files{Paths: []string{path}, Limits: archive.Default(), Progress: reading(say)}, collect.Options{Alone: in.Node != ""})
	if errors.Is(err, collect.ErrSeveral) {
		err = fmt.Errorf("%w: leave out node, and each gets a folder with its name", err)
	}
	if err != nil {
		return nil, NodesResult{}, err
	}
	out, err := s.statuses(ctx, nil)
	out.Remarks = append(out.Remarks, found.Remarks...)
	for _, lost := range found.Lost {
		out.Remarks = append(out.Remarks, "could not be read: "+lost)
	}
	out.Remarks = escaped(out.Remarks)
	return nil, out, err
}

// reading returns a function for the progress of a collection, which reports each 64 MiB.
func reading(say func(string)) archive.Progress {
	const step = 64 << 20
	var said int64
	return func(read, _ int64) {
		if read-said >= step {
			said = read
			say(fmt.Sprintf("read %d MiB", read>>20))
		}
	}
}

// below returns the path of a file below a root, with all symbolic links resolved.
func below(root, path string) (string, error) {
	if err := name("path", path); err != nil {
		return "", err
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	if filepath.IsAbs(path) {
		if path, err = filepath.Rel(root, filepath.Clean(path)); err != nil {
			return "", err
		}
	}
	if !filepath.IsLocal(path) {
		return "", fmt.Errorf("path %q is not below the server's root", path)
	}
	found, err := filepath.EvalSymlinks(filepath.Join(root, path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no file %q below the server's root", path)
	}
	if err != nil {
		return "", err
	}
	if relative, err := filepath.Rel(root, found); err != nil || !filepath.IsLocal(relative) {
		return "", fmt.Errorf("path %q is a link that leaves the server's root", path)
	}
	if _, err := os.Stat(found); err != nil {
		return "", err
	}
	return found, nil
}

func (s *Server) report(_ context.Context, _ *sdk.CallToolRequest, in NodeParams) (_ *sdk.CallToolResult, out ReportResult, err error) {
	n, wd, err := s.node(in.Name)
	if err != nil {
		return nil, out, err
	}
	r, err := replica.Report(wd)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, out, fmt.Errorf("no replica of node %s was started: call start", nodeName(n))
	}
	if err != nil {
		return nil, out, err
	}
	out = ReportResult{Trust: trust(n, wd), More: shorten(r, n)}
	raw, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(raw, &out.Report)
	}
	out.Report, _ = terminal.EscapeAll(out.Report).(map[string]any)
	return nil, out, err
}

// shorten leaves the first items of each list of a report.
func shorten(r *report.Report, n *set.Node) string {
	const most = 50
	cut := len(r.Rejected) > most || len(r.Rewritten) > most || len(r.Placeholders) > most || len(r.Ports) > most
	r.Rejected, r.Rewritten, r.Placeholders = r.Rejected[:min(most, len(r.Rejected))], r.Rewritten[:min(most, len(r.Rewritten))], r.Placeholders[:min(most, len(r.Placeholders))]
	r.Ports = r.Ports[:min(most, len(r.Ports))]
	if !cut {
		return ""
	}
	return fmt.Sprintf("lists are cut after %d items; the resource %s has all", most, resourceOf(nodeName(n), "report"))
}
