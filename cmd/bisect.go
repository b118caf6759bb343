package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/answer/bisect"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/whatif"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot/names"
)

type bisectOptions struct {
	*options
	packet trace.Between
	families
}

func newBisect(shared *options) *cobra.Command {
	o := &bisectOptions{options: shared}
	command := &cobra.Command{
		Use: "bisect FROM TO[:PORT] [PROTOCOL]", Short: "Find which change of the OVN NB database changed a verdict",
		Args: betweenArgs("bisect"),
		Long: "Find since when a packet has its verdict, and which transaction of the OVN NB database changed it.\n" +
			"An ovn-northd and an ovn-controller of the nodes' own release compute the flows from states that the\n" +
			"log of the database holds, halving between them. FROM, TO and PROTOCOL are written as for trace. The\n" +
			"nodes keep the ports that they had when they were collected. No replica needs to run, and none is\n" +
			"changed.\n\n" +
			"Exit code 3: a verdict that decides the answer is UNDETERMINED.\n" +
			"Exit code 4: the verdict has changed.",
		Example: "  ovs-offline -w nodes bisect vm1 vm2:22\n" +
			"  ovs-offline -w nodes bisect ns1/web-0 svc/ns2/db:5432 -o json",
		PreRunE: func(*cobra.Command, []string) (err error) {
			o.packet.Family, err = o.family()
			return err
		},
		RunE: o.withNodes(o.run),
	}
	o.families.add(command)
	o.runtimeFlag(command)
	o.nodeFlag(command)
	o.outputFlag(command)
	return command
}

// betweenArgs returns the check of the arguments of a command that takes a packet.
func betweenArgs(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 2 || len(args) > 3 || len(args) == 3 && !slices.Contains(names.Protocols(), args[2]) {
			return fmt.Errorf("%s takes FROM, TO[:PORT], and if wanted a protocol: %s", command, strings.Join(names.Protocols(), ", "))
		}
		return nil
	}
}

// setPacket takes the packet from arguments that betweenArgs has checked.
func setPacket(packet *trace.Between, args []string) {
	packet.From, packet.To = args[0], args[1]
	if len(args) == 3 {
		packet.Protocol = args[2]
	}
}

func (o *bisectOptions) run(ctx context.Context, selected *set.Set, args []string) error {
	setPacket(&o.packet, args)
	deployment, err := whatif.Of(ctx, selected.Snapshot)
	if err != nil {
		return err
	}
	progress := o.progress()
	found, err := bisect.Run(ctx, whatif.Question{Deployment: deployment, Trace: &o.packet,
		Runtime: o.runtime, Runtimes: runtimes(), Replica: replicaAt,
		Chosen:   func(what string) { progress.note("runtime: %s", what) },
		Progress: func(text string) { progress.print("%s", text) }})
	progress.end()
	if err != nil {
		return err
	}
	o.page().WarnEach("", found.Remarks)
	return worst(o.emit(found, found.Print), foundIf(len(found.Changes) > 0), incompleteIf(found.IsIncomplete()))
}
