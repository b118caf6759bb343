package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/answer/flows"
	"ovs-offline/replica/set"
)

type topOptions struct {
	*options
	by    string
	limit int
}

func newTop(shared *options) *cobra.Command {
	o := &topOptions{options: shared}
	command := &cobra.Command{
		Use: "top", Short: "Show which rules cost the most flows, and which do nothing",
		Long: "Show which rule, ACL, policy, load balancer, route, stage or table costs how many of the\n" +
			"recorded flows of a node or of a set; which rules multiply out into many flows, one for each\n" +
			"combination of several lists of values, or into a conjunction; which have duplicates; and which\n" +
			"matched no packet on any node. No replica needs to run.\n\n" +
			"Exit code 3: a line of a dump can't be read.",
		Example: "  ovs-offline -w nodes top --by policy --limit 20",
		Args:    exactArgs(),
		RunE:    o.withNodes(o.run),
	}
	var kinds []string
	for _, kind := range flows.Kinds() {
		kinds = append(kinds, string(kind))
	}
	choiceFlag(command, &o.by, "by", "", "add up flows by "+strings.Join(kinds, ", "), kinds...)
	command.Flags().IntVar(&o.limit, "limit", 10, "list at most `N` of each kind; 0 for all")
	o.outputFlag(command)
	o.nodeFlag(command)
	return command
}

func (o *topOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	sources, err := flows.Sources(selected.Snapshot)
	if err != nil {
		return err
	}
	if err := checkLimit(o.limit); err != nil {
		return err
	}
	top, listed, err := flows.Count(ctx, sources, flows.By(o.by), o.limit)
	if err != nil {
		return err
	}
	defer top.Close()
	if o.format == formatTable { // before what takes longer
		top.PrintCosts(o.page())
	}
	if err := top.Examine(ctx); err != nil {
		return err
	}
	if err := o.emit(top, top.PrintFindings); err != nil {
		return err
	}
	o.page().WarnEach("", listed.Remarks)
	if listed.Lost > 0 {
		return errIncomplete
	}
	return nil
}
