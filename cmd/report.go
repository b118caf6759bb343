package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"ovs-offline/answer/page"
	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/show"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

type reportOptions struct {
	*options
	questions string // the file of --trace
}

func newReport(shared *options) *cobra.Command {
	o := &reportOptions{options: shared}
	command := &cobra.Command{
		Use: "report", Short: "Show how faithful the replica is, or write the whole case as a page", Args: exactArgs(),
		Long: "Show how faithful the replica is: what was restored, what is missing, and which entries were\n" +
			"rejected and why, each with its file and line. All entries are counted; -o json lists the\n" +
			"first 10000 rejected and the first 10000 rewritten ones.\n\n" +
			"With -o html, write the whole case as one page, which needs no server and no network: what was\n" +
			"collected, what is wrong, the networks, the flows, who reaches whom, drift and the timeline.\n" +
			"No replica needs to run, but who reaches whom, and the questions of --trace, are asked of running\n" +
			"replicas. The page lists what it does not have.\n\n" +
			"Exit code 3 with -o html: something that was collected could not be read, or not judged.",
		Example: "  ovs-offline report\n  ovs-offline report -o json | jq '.rejected[]'\n" +
			"  ovs-offline -w nodes report -o html --trace checks.yaml >case.html",
		RunE: o.withNodes(o.run),
	}
	o.nodeFlag(command)
	o.runtimeFlag(command)
	choiceFlag(command, &o.format, "output", "o", "output format: table, json, yaml or html", formatTable, "json", "yaml", formatHTML)
	command.Flags().StringVar(&o.questions, "trace", "", "with -o html: also ask the questions in this `FILE`, as trace --file does; - is standard input")
	return command
}

// run prints a line for each node and the differences between the OVN databases of the nodes,
// or the whole report of the only node.
func (o *reportOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	if o.format == formatHTML {
		return o.writePage(ctx, selected)
	}
	if o.questions != "" {
		return fault.Usagef("--trace goes with -o html")
	}
	outcomes := snapshot.Each(ctx, selected.Snapshot, func(_ context.Context, _ *snapshot.Node, wd *workdir.Dir) (*report.Report, error) {
		return replica.Report(wd)
	})
	print := func(page *show.Page) {
		if len(selected.Nodes()) == 1 {
			snapshot.PrintEach(page, outcomes, func(page *show.Page, found *report.Report) { found.Print(page) })
		} else {
			set.PrintReports(page, outcomes)
		}
	}
	if selected.Alone() {
		return emitNodes(&o.IO, selected.Snapshot, outcomes, print)
	}
	err := emitReports(&o.IO, selected, outcomes, selected.CompareDatabases(ctx), print)
	return worst(append(snapshot.Failures(selected.Snapshot, outcomes), err)...)
}

// writePage writes the whole case as a page.
func (o *reportOptions) writePage(ctx context.Context, selected *set.Set) error {
	made, err := o.makePage(ctx, selected, o.questions)
	if err != nil {
		return err
	}
	if err := made.Write(o.Out); err != nil {
		return err
	}
	return incompleteIf(made.Failed())
}

// makePage gathers the whole case with the answers to the questions in a file, "" for none.
func (o *options) makePage(ctx context.Context, selected *set.Set, questions string) (*page.Page, error) {
	checks, err := o.readQuestions(ctx, questions)
	if err != nil {
		return nil, err
	}
	progress := o.progress()
	defer progress.end()
	return page.Make(ctx, selected.Snapshot, page.Options{Programs: rule.Programs{Runtime: o.runtime, Runtimes: runtimes()}, Version: version, Checks: checks,
		Call: o.caller(selected.Folder()).callOn(selected.Snapshot), Progress: progress.print})
}

// readQuestions reads a file of questions.
func (o *options) readQuestions(ctx context.Context, name string) (list []trace.Check, err error) {
	if name == "" {
		return nil, nil
	}
	file, err := o.openInput(ctx, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	checks, err := trace.ReadChecks(file)
	if err != nil {
		return nil, fault.Usagef("%s: %w", name, err)
	}
	for check, err := range checks {
		if err != nil {
			return nil, fault.Usagef("%s: %w", name, err)
		}
		list = append(list, check)
	}
	return list, nil
}

// emitReports prints the reports of the nodes of a set, and the differences between their OVN
// databases, as a document or with print.
func emitReports(out *IO, selected *set.Set, outcomes []snapshot.Outcome[*report.Report], databases snapshot.Comparison, print func(*show.Page)) error {
	document := snapshot.DocumentOf(selected.Snapshot, outcomes)
	if err := databases.Add(&document); err != nil {
		return err
	}
	return out.emit(document, func(page *show.Page) {
		print(page)
		document.PrintDatabases(page)
	})
}
