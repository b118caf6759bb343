package cmd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"ovs-offline/internal/show"
	"ovs-offline/replica"
	"ovs-offline/replica/pods/link"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

type diffOptions struct {
	*options
	columns []string
}

func newDiff(shared *options) *cobra.Command {
	o := &diffOptions{options: shared}
	command := &cobra.Command{
		Use: "diff [NAME]...", Short: "Compare the node's OVS database with the replica's",
		Long: "Compare the OVS database of the node with the one of the running replica: statistics, states,\n" +
			"errors and port numbers. Columns that describe this machine, and columns that ovs-offline\n" +
			"changed to isolate the replica, are compared only if --columns names them.\n" +
			"Each NAME is an interface, port or bridge; without any, all records are compared.\n\n" +
			"Exit code 4: something differs.",
		Example:           "  ovs-offline diff --columns link_state,error,ofport\n  ovs-offline diff eth0 -o yaml",
		ValidArgsFunction: o.completeNames,
		RunE:              o.withChosenNode(o.orInPod(always, o.withNodes(o.run))),
	}
	o.nodeFlag(command)
	o.outputFlag(command)
	command.Flags().StringSliceVar(&o.columns, "columns", nil, "compare only these columns")
	_ = command.RegisterFlagCompletionFunc("columns", cobra.FixedCompletions(
		[]string{"admin_state", "bfd_status", "error", "link_state", "mac_in_use", "ofport", "statistics", "status"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// run compares the databases of each node.
func (o *diffOptions) run(ctx context.Context, selected *set.Set, names []string) error {
	var mu sync.Mutex
	own := map[string]bool{}
	outcomes := snapshot.Each(ctx, selected.Snapshot, func(ctx context.Context, _ *snapshot.Node, wd *workdir.Dir) (list []replica.Difference, err error) {
		if link.Linked(wd) {
			args := append([]string{"diff", "--columns=" + strings.Join(o.columns, ",")}, names...)
			return list, set.DocumentInPod(ctx, wd, &list, args...)
		}
		found, err := replica.Diff(ctx, wd, replica.Selection{Records: names, Columns: o.columns})
		mu.Lock()
		defer mu.Unlock()
		for _, column := range found.Own {
			own[column] = true
		}
		return found.Differences, err
	})
	err := emitNodes(&o.IO, selected.Snapshot, outcomes, func(page *show.Page) { snapshot.PrintEach(page, outcomes, replica.PrintDifferences) })
	o.printOwn(slices.Sorted(maps.Keys(own)))
	differs := slices.ContainsFunc(outcomes, func(outcome snapshot.Outcome[[]replica.Difference]) bool { return len(outcome.Value) > 0 })
	return worst(err, foundIf(differs))
}

func (o *diffOptions) printOwn(columns []string) {
	if len(columns) > 0 {
		fmt.Fprintf(o.Err, "Not compared, because the replica sets them itself (--columns compares them): %s\n", strings.Join(columns, ", "))
	}
}
