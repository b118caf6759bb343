package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"ovs-offline/answer/check"
	"ovs-offline/answer/check/rule"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica/set"
)

type checkOptions struct {
	*options
	detail bool
}

func newCheck(shared *options) *cobra.Command {
	o := &checkOptions{options: shared}
	command := &cobra.Command{
		Use: "check [NODE]...", Short: "Find out what is wrong",
		Long: "Look for what is wrong in everything that was collected: ports, tunnels, the control plane,\n" +
			"addresses, load balancers, gateways, tables, flows, logs and versions. The worst findings come\n" +
			"first, each with what follows from it and the next command to run. No replica needs to run.\n" +
			"Each NODE is one of a folder of several; without any, all are checked.\n\n" +
			"Exit code 3: nothing was found, and something could not be judged.\n" +
			"Exit code 4: something was found.",
		Example: "  ovs-offline check\n  ovs-offline -w nodes check worker-2 --detail\n" +
			"  ovs-offline check -o json | jq -r '.findings[].what'",
		Args: func(_ *cobra.Command, args []string) error {
			o.nodes = append(o.nodes, args...)
			return nil
		},
		ValidArgsFunction: shared.completeNodes,
		RunE:              o.withNodes(o.run),
	}
	detailFlag(command, &o.detail, "print the evidence and the sources of each finding")
	o.runtimeFlag(command)
	o.nodeFlag(command)
	o.outputFlag(command)
	return command
}

func (o *checkOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	progress := o.progress()
	found, err := check.Run(ctx, selected, check.Options{
		Programs: rule.Programs{Runtime: o.runtime, Version: version},
		Found:    func(f rule.Finding) { progress.print("found: %s", terminal.Escape(check.Line(f))) },
		Progress: func(text string) { progress.print("%s", text) },
	})
	progress.end()
	if err != nil {
		return err
	}
	if err := o.emit(found, func(page *show.Page) { found.Print(page, o.detail) }); err != nil {
		return err
	}
	switch {
	case len(found.Findings) > 0:
		return errFound
	case len(found.Unjudged) > 0:
		return errIncomplete
	}
	return nil
}
