package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"ovs-offline/answer/rule"
	"ovs-offline/answer/slow"
	"ovs-offline/internal/show"
	"ovs-offline/replica/set"
)

type slowOptions struct {
	*options
	limit int
}

func newSlow(shared *options) *cobra.Command {
	o := &slowOptions{options: shared}
	command := &cobra.Command{
		Use: "slow [NODE]...", Short: "Find out why packets or daemons are slow",
		Long: "Examine the recorded flows of the datapath, connections and databases: flows that each\n" +
			"revalidation deletes (flapping), fields that make many flows of few (explosions) and the rule\n" +
			"that looks at them, flows that are not offloaded and why, connections by zone and sender,\n" +
			"and rows of the databases that change again and again. Flapping flows are judged where a\n" +
			"replica runs. Each NODE is one of a folder of several; without any, all are examined.\n\n" +
			"Exit code 3: something was not recorded or can't be read, so that it is not judged.\n" +
			"Exit code 4: something is found.",
		Example: "  ovs-offline slow\n  ovs-offline -w nodes slow worker-2 --limit 20\n  ovs-offline slow -o json | jq '.findings[].what'",
		Args: func(_ *cobra.Command, args []string) error {
			o.nodes = append(o.nodes, args...)
			return nil
		},
		ValidArgsFunction: shared.completeNodes,
		RunE:              o.withNodes(o.run),
	}
	command.Flags().IntVar(&o.limit, "limit", 10, "print at most `N` rows of each list; 0 for all")
	o.outputFlag(command)
	o.nodeFlag(command)
	return command
}

func (o *slowOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	if err := checkLimit(o.limit); err != nil {
		return err
	}
	progress := o.progress()
	found, err := slow.Run(ctx, selected.Snapshot, rule.Programs{Runtime: o.runtime, Runtimes: runtimes()}, func(node string) { progress.print("examining %s", node) })
	progress.end()
	if err != nil {
		return err
	}
	err = o.emit(found, func(page *show.Page) { found.Print(page, o.limit) })
	o.page().WarnEach("", found.Remarks)
	o.page().WarnEach("not judged: ", found.Missing)
	return worst(err, foundIf(len(found.Findings) > 0), incompleteIf(len(found.Missing) > 0))
}
