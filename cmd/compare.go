package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"ovs-offline/answer/compare"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/show"
)

type compareOptions struct {
	*options
	detail bool
	limits archive.Limits
}

func newCompare(shared *options) *cobra.Command {
	o := &compareOptions{options: shared}
	command := &cobra.Command{
		Use: "compare OLD [NEW]", Short: "Compare two captures of nodes, in names", Args: cobra.RangeArgs(1, 2),
		Long: "Compare two captures: working directories, folders of several, files that save wrote, or what\n" +
			"collect takes, such as sos reports. Of one text into which outputs of a command were pasted\n" +
			"several times, the first is compared with the last.\n\n" +
			"What differs only in a number is not reported: a UUID, a port number, a tunnel key, a conntrack\n" +
			"zone, the id of a group, a meter or a conjunction.\n\n" +
			"The comparison covers the objects of OVN and of Open vSwitch, where ports are bound, link states,\n" +
			"errors, counters of faults, versions, and flows. A flow that differs because of another change is\n" +
			"counted with that change; only the others are listed.\n\n" +
			"Exit code 0: nothing differs (\"same\" in -o json).\n" +
			"Exit code 3: nothing differs in what could be compared, and a part could not be compared.\n" +
			"Exit code 4: something differs.",
		Example: "  ovs-offline compare before.ovs-offline sosreport-compute1.tar.xz\n" +
			"  ovs-offline compare case1 case2 -o html >changes.html",
		RunE: func(command *cobra.Command, args []string) error { return o.run(command.Context(), args) },
	}
	detailFlag(command, &o.detail, "print every change, and what follows from it")
	choiceFlag(command, &o.format, "output", "o", "output format: table, json, yaml or html", formatTable, "json", "yaml", formatHTML)
	limitFlags(command, &o.limits)
	return command
}

func (o *compareOptions) run(ctx context.Context, captures []string) error {
	older, newer := captures[0], captures[len(captures)-1]
	before, err := o.open(ctx, older, len(captures) == 1)
	if err != nil {
		return err
	}
	defer before.Close()
	after, err := o.open(ctx, newer, false)
	if err != nil {
		return err
	}
	defer after.Close()
	found, err := compare.Compare(ctx, before, after)
	if err != nil {
		return err
	}
	if o.format == formatHTML {
		err = found.HTML(o.Out)
	} else {
		err = o.emit(found, func(page *show.Page) { found.Print(page, o.detail) })
	}
	return worst(err, foundIf(!found.Same), incompleteIf(len(found.Missing) > 0))
}

func (o *compareOptions) open(ctx context.Context, path string, earlier bool) (*compare.Side, error) {
	progress := o.progress()
	defer progress.end()
	side, err := compare.Open(ctx, path, compare.OpenOptions{Limits: o.limits, Progress: progress.bytes, Earlier: earlier})
	if err != nil {
		return nil, explain(err, path)
	}
	return side, nil
}
