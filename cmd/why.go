package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/why"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
)

type whyOptions struct {
	*options
	question trace.Between
	families
}

func newWhy(shared *options) *cobra.Command {
	o := &whyOptions{options: shared}
	command := &cobra.Command{
		Use: "why FROM TO[:PORT] [PROTOCOL]", Short: "Say why a packet does not arrive, in one sentence",
		Args: betweenArgs("why"),
		Long: "Trace a packet and the reply to it, check what was collected, and say what keeps the packet from\n" +
			"arriving: the first line is the cause. Below it are what shows it, what else is wrong on the way, what\n" +
			"to do next, and what was ruled out. FROM, TO and PROTOCOL are those of trace. Replicas that do not run\n" +
			"are started.\n\n" +
			"-o md prints a block for a ticket.\n\n" +
			"Exit code 3: the verdict is UNDETERMINED.\n" +
			"Exit code 4: something is wrong.",
		Example: "  ovs-offline -w nodes why ns1/web-0 svc/ns2/db:5432\n" +
			"  ovs-offline -w nodes why vm-17 external/8.8.8.8 icmp -o md >ticket.md",
		PreRunE: func(*cobra.Command, []string) (err error) {
			o.question.Family, err = o.family()
			return err
		},
		RunE: o.withNodes(o.run),
	}
	o.families.add(command)
	o.runtimeFlag(command)
	choiceFlag(command, &o.format, "output", "o", "output format: table, json, yaml or md", formatTable, "json", "yaml", "md")
	return command
}

func (o *whyOptions) run(ctx context.Context, selected *set.Set, args []string) error {
	setPacket(&o.question, args)
	if err := o.startAll(ctx, selected); err != nil {
		return err
	}
	session, err := trace.OpenSet(ctx, selected.Snapshot, trace.Options{})
	if err != nil {
		return err
	}
	defer session.Close()
	o.page().WarnEach("", session.Remarks())
	defer warnUnavailable(o.page(), session, o.call)()
	progress := o.progress()
	document, err := why.Ask(ctx, session, selected.Snapshot, o.question, check.Options{
		Programs: rule.Programs{Runtime: o.runtime, Runtimes: runtimes()},
		Progress: func(text string) { progress.print("%s", text) },
	})
	progress.end()
	if err != nil {
		return err
	}
	if o.format == "md" {
		err = document.Markdown(o.Out, o.call)
	} else {
		err = o.emit(document, document.Print)
	}
	return worst(err, foundIf(document.Verdict != answer.Reachable || document.Rule != ""), incompleteIf(document.Trace.IsIncomplete()))
}

// startAll starts the replicas of a set of which none runs.
func (o *whyOptions) startAll(ctx context.Context, selected *set.Set) error {
	for _, node := range snapshot.WithSwitch(selected.Nodes()) {
		wd, err := node.Workdir()
		if err != nil {
			return err
		}
		if _, err := selected.Node(node).Running(ctx, wd); err == nil {
			return nil
		}
	}
	aside := *o.options
	aside.Out = aside.Err // the first line of the output is the cause
	start := &startOptions{options: &aside}
	outcomes, err := start.start(ctx, selected)
	if err != nil {
		return err
	}
	return worst(snapshot.Failures(selected.Snapshot, outcomes)...)
}
