package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"ovs-offline/answer/shrink"
	"ovs-offline/answer/whatif"
	"ovs-offline/internal/show"
	"ovs-offline/replica/set"
)

type shrinkOptions struct {
	*options
	trace    string
	log      string
	drift    string
	autotest bool
}

func newShrink(shared *options) *cobra.Command {
	o := &shrinkOptions{options: shared}
	command := &cobra.Command{
		Use: "shrink [NODE]... {--trace 'FROM TO [PROTOCOL]'|--log TEXT|--drift TEXT}", Short: "Find the smallest OVN NB database that still shows a fault",
		Long: "Find the smallest OVN NB database with which a packet still has the same verdict, for the same\n" +
			"reason and by the same rule, and print it as commands of ovn-nbctl, with the packet. Parts of the\n" +
			"database are left out, an ovn-northd and the ovn-controllers of the nodes' own release compute the\n" +
			"flows anew, and the packet is followed with them. No replica needs to run, and none is changed.\n\n" +
			"With --log, the smallest database is found about which ovn-northd or an ovn-controller still logs a\n" +
			"message with a text, or for which it still ends.\n\n" +
			"With --drift, the smallest database is found from which OVN still computes a flow, a group, a meter or\n" +
			"a logical flow that drift finds missing or altered: the first one whose line has the text.\n\n" +
			"Each NODE is one of a folder of several; without any, all are computed.\n\n" +
			"Exit code 3: the verdict is undetermined, or the flows can't be computed; the output has the reason.",
		Example: "  ovs-offline -w nodes shrink --trace 'vm1 vm2:80' >test.sh\n  ovs-offline -w nodes shrink --trace 'ns1/web-0 svc/ns2/db:5432' --autotest\n  ovs-offline -w nodes shrink --log 'error parsing match'\n  ovs-offline -w nodes shrink worker-2 --drift 'NetworkPolicy ns1/allow-web'",
		Args: func(_ *cobra.Command, args []string) error {
			o.nodes = append(o.nodes, args...)
			return nil
		},
		RunE:              o.withNodes(o.run),
		ValidArgsFunction: shared.completeNodes,
	}
	flags := command.Flags()
	flags.StringVar(&o.trace, "trace", "", "the packet, as trace has it: 'FROM TO [PROTOCOL]'")
	flags.StringVar(&o.log, "log", "", "instead of a packet: a `TEXT` that ovn-northd or an ovn-controller logs")
	flags.StringVar(&o.drift, "drift", "", "instead of a packet: a `TEXT` in what drift finds missing or altered")
	flags.BoolVar(&o.autotest, "autotest", false, "print a test in the style of OVN's own tests")
	kept := []string{"trace", "log", "drift"}
	command.MarkFlagsOneRequired(kept...)
	command.MarkFlagsMutuallyExclusive(kept...)
	o.runtimeFlag(command)
	o.nodeFlag(command)
	o.outputFlag(command)
	return command
}

func (o *shrinkOptions) run(ctx context.Context, selected *set.Set, _ []string) (err error) {
	progress := o.progress()
	question := shrink.Question{Log: o.log, Drift: o.drift, Question: whatif.Question{Runtime: o.runtime, Runtimes: runtimes(), Replica: replicaAt,
		Chosen:   func(what string) { progress.note("runtime: %s", what) },
		Progress: func(text string) { progress.print("%s", text) }}}
	if o.trace != "" {
		if question.Trace, err = readBetween(o.trace); err != nil {
			return err
		}
	}
	if question.Deployment, err = whatif.Of(ctx, selected.Snapshot); err != nil {
		return err
	}
	found, err := shrink.Find(ctx, question)
	progress.end()
	if err != nil {
		return err
	}
	o.page().WarnEach("", found.Remarks)
	return o.emit(found, func(page *show.Page) {
		if o.autotest {
			found.Autotest(page)
		} else {
			found.Script(page)
		}
	})
}
