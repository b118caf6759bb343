package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"ovs-offline/internal/show"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/set"
)

type reportOptions struct{ *options }

func newReport(shared *options) *cobra.Command {
	o := &reportOptions{shared}
	command := &cobra.Command{
		Use: "report", Short: "Show how faithful the replica is", Args: exactArgs(),
		Long: "Show how faithful the replica is: what was restored, what is missing, and which entries were\n" +
			"rejected and why, each with its file and line. All entries are counted; -o json lists the\n" +
			"first 10000 rejected and the first 10000 rewritten ones.",
		Example: "  ovs-offline report\n  ovs-offline report -o json | jq '.rejected[]'",
		RunE:    o.withNodes(o.run),
	}
	o.nodeFlag(command)
	o.outputFlag(command)
	return command
}

// run prints a line for each node and the differences between the OVN databases of the nodes,
// or the whole report of the only node.
func (o *reportOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	outcomes := set.Each(ctx, selected, func(_ context.Context, _ *set.Node, wd *workdir.Dir) (*report.Report, error) {
		return replica.Report(wd)
	})
	print := func(page *show.Page) {
		if len(selected.Nodes()) == 1 {
			set.PrintEach(page, outcomes, func(page *show.Page, found *report.Report) { found.Print(page) })
		} else {
			set.PrintReports(page, outcomes)
		}
	}
	if selected.Alone() {
		return emitNodes(&o.IO, selected, outcomes, print)
	}
	err := emitReports(&o.IO, selected, outcomes, selected.CompareDatabases(ctx), print)
	return worst(append(set.Failures(selected, outcomes), err)...)
}

// emitReports prints the reports of the nodes of a set, and the differences between their OVN
// databases, as a document or with print.
func emitReports(out *IO, selected *set.Set, outcomes []set.Outcome[*report.Report], databases set.Comparison, print func(*show.Page)) error {
	document := set.DocumentOf(selected, outcomes)
	if err := databases.Add(&document); err != nil {
		return err
	}
	return out.emit(document, func(page *show.Page) {
		print(page)
		document.PrintDatabases(page)
	})
}
