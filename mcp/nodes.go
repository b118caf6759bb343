package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"ovs-offline/answer/trace"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/set"
	"ovs-offline/workdir"
)

// NodeParams name a node.
type NodeParams struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"ignored: for prompts that were written for a live cluster"`
	Name      string `json:"name" jsonschema:"name of the node, as list-nodes returns it"`
}

func (p NodeParams) nodeName() string { return p.Name }

// NodesParams select nodes.
type NodesParams struct {
	Names []string `json:"names,omitempty" jsonschema:"names of nodes; all without it"`
}

func (p NodesParams) nodeNames() []string { return p.Names }

// nodes are the nodes in the folder of a server.
type nodes struct{ Options }

// find returns the node with a name, which may also be the name of its host, and its workdir.
func (n nodes) find(ctx context.Context, name string) (*set.Node, *workdir.Dir, error) {
	all, err := n.choose(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, node := range all.Nodes() {
		if name == node.FolderName() || name == node.Host() {
			wd, err := node.Workdir()
			return all.Node(node), wd, err
		}
		names = append(names, node.FolderName())
	}
	return nil, nil, fmt.Errorf("no node is called %q; the nodes are: %s", name, strings.Join(names, ", "))
}

// choose returns the nodes with these names, all without names. What is read of them stays open until the request is answered.
func (n nodes) choose(ctx context.Context, names []string) (*set.Set, error) {
	for _, name := range names {
		if err := checkText("name", name); err != nil {
			return nil, err
		}
	}
	chosen, err := set.OpenNodes(n.Folder, n.Version, names)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, chosen.Close)
	if !chosen.Alone() {
		return chosen, nil
	}
	node := chosen.Nodes()[0]
	for _, name := range names {
		if name != node.FolderName() && name != node.Host() {
			return nil, fmt.Errorf("no node is called %q; the node is: %s", name, node.FolderName())
		}
	}
	return chosen, nil
}

// runtime returns the runtime of replicas.
func (n nodes) runtime() string { return cmp.Or(n.Runtime, runtime.Auto) }

// openSession opens a session on all nodes.
func (n nodes) openSession(ctx context.Context, options trace.Options) (*trace.Session, error) {
	return trace.OpenFolder(ctx, n.Folder, options)
}
