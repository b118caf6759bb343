package cmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/show"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// nodeFlag adds --node to a command that takes a set.
func (o *options) nodeFlag(command *cobra.Command) {
	o.nodeFlagFor(command, "only these nodes of a folder of several (can be repeated)")
}

// oneNode is the usage of --node for a command that takes one node.
const oneNode = "the node of a folder of several"

// nodeFlagFor adds --node with its own usage.
func (o *options) nodeFlagFor(command *cobra.Command, usage string) {
	command.Flags().StringSliceVar(&o.nodes, "node", nil, usage)
	_ = command.RegisterFlagCompletionFunc("node", o.completeNodes)
}

// completeNodes returns the nodes of the set in the workdir.
func (o *options) completeNodes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	selected, err := snapshot.OpenNodes(o.workdir, nil)
	if err != nil || selected.Alone() {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, node := range selected.Nodes() {
		if show.IsPlain(node.Name) {
			names = append(names, node.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// setFunc is the function of a command that works on a set.
type setFunc func(ctx context.Context, selected *set.Set, args []string) error

// withNodes returns a cobra function that calls run with the set in the workdir, or with the
// set of one node whose workdir it is.
func (o *options) withNodes(run setFunc) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		selected, err := o.openNodes(o.workdir)
		if err != nil {
			return err
		}
		defer selected.Close()
		if len(o.nodes) == 0 {
			o.call = o.caller(o.workdir).callOn(selected.Snapshot)
		}
		return run(command.Context(), selected, args)
	}
}

// openNodes returns the nodes in a folder that --node selects, or the set of one node whose
// workdir it is.
func (o *options) openNodes(folder string) (*set.Set, error) {
	selected, err := set.OpenNodes(folder, version, o.nodes)
	if err == nil && selected.Alone() && len(o.nodes) > 0 {
		err = fault.Usagef("--node selects from a folder of several nodes, and %s is not one", folder)
	}
	return selected, err
}

// nodeFunc is the function of a command that works on one node.
type nodeFunc func(ctx context.Context, node *set.Node, wd *workdir.Dir, args []string) error

// refuseSet returns the error of commands that work on one node: it lists the nodes.
func refuseSet(selected *snapshot.Snapshot) error {
	const most = 50
	var lines []string
	nodes := selected.Nodes()
	for _, node := range nodes[:min(most, len(nodes))] {
		lines = append(lines, "  --node "+show.Word(node.Name))
	}
	if more := len(nodes) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return fault.Usagef("%s is not the working directory of a node; choose one of the nodes in it:\n%s", selected.Folder(), strings.Join(lines, "\n"))
}

// withNode returns a cobra function that calls run with the node of the workdir.
func (o *options) withNode(run nodeFunc) func(*cobra.Command, []string) error {
	return o.withNodes(func(ctx context.Context, selected *set.Set, args []string) error {
		if !selected.Alone() {
			return refuseSet(selected.Snapshot)
		}
		node := selected.Node(selected.Nodes()[0])
		wd, err := node.Workdir()
		if err != nil {
			return err
		}
		return run(ctx, node, wd, args)
	})
}

// withChosenNode makes --node NODE select the workdir of a node from a set, as -w FOLDER/NODE does,
// for a command that takes one workdir.
func (o *options) withChosenNode(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		if len(o.nodes) > 0 {
			selected, err := snapshot.OpenNodes(o.workdir, o.nodes)
			if err == nil && !selected.Alone() && len(selected.Nodes()) == 1 {
				o.workdir, o.nodes = filepath.Join(selected.Folder(), selected.Nodes()[0].Name), nil
			}
		} // withNodes refuses other nodes
		return run(command, args)
	}
}

// withLock returns a cobra function that calls run with the workdir locked, for commands that
// change it. It creates a missing workdir, and removes it after an error if nothing came into it.
func (o *options) withLock(run func(ctx context.Context, wd *workdir.Dir, args []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		_, missing := os.Lstat(o.workdir)
		wd, err := workdir.Lock(o.workdir)
		if err != nil {
			return err
		}
		defer wd.Unlock()
		if err = run(command.Context(), wd, args); err != nil && missing != nil {
			wd.RemoveIfEmpty()
		}
		return err
	}
}

// emitNodes prints the outcome of each node, as a document or with print. For a workdir that stands
// alone, it prints the document of the node, not of a set. It returns the errors of nodes that failed.
func emitNodes[T any](out *IO, selected *snapshot.Snapshot, outcomes []snapshot.Outcome[T], print func(*show.Page)) error {
	if !selected.Alone() {
		err := out.emit(snapshot.DocumentOf(selected, outcomes), print)
		return worst(append(snapshot.Failures(selected, outcomes), err)...)
	}
	if err := outcomes[0].Err; err != nil {
		return err
	}
	return out.emit(outcomes[0].Value, print)
}
