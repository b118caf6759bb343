package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"ovs-offline/desired/drift"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/pods/link"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/set"
)

type driftOptions struct {
	*options
	every  bool
	northd bool
}

func newDrift(shared *options) *cobra.Command {
	o := &driftOptions{options: shared}
	c := &cobra.Command{
		Use: "drift [NODE]...", Short: "Find out whether a node has the flows that it should have",
		Long: "Compute the flows, groups and meters of OVN's integration bridge from the collected databases,\n" +
			"with an ovn-controller of the node's own release, and compare the recorded ones with them. What is\n" +
			"missing, extra or altered has the name of its policy, load balancer, route or port.\n" +
			"No replica needs to run. Each NODE is one of a folder of several; without any, all are compared.\n\n" +
			"Exit code 3: it can't be determined, for example without that release of OVN; the output says why.\n" +
			"Exit code 4: something differs.",
		Example: "  ovs-offline drift\n  ovs-offline -w nodes drift worker-2 -v\n  ovs-offline drift --northd -o json | jq '.missing[].what'",
		Args: func(_ *cobra.Command, args []string) error {
			o.nodes = append(o.nodes, args...)
			return nil
		},
		ValidArgsFunction: shared.completeNodes,
		RunE:              o.orInPod(o.isForPods, o.workdirOrSet(o.run, o.runSet)),
	}
	c.Flags().BoolVar(&o.northd, "northd", false, "also compare the logical flows with those that ovn-northd computes from the NB database")
	c.Flags().BoolVarP(&o.every, "verbose", "v", false, "print each flow that differs")
	o.nodeFlag(c)
	o.outputFlag(c)
	return c
}

func (o *driftOptions) run(ctx context.Context, wd *workdir.Dir, _ []string) error {
	p := o.progress()
	r, err := drift.Check(ctx, wd, drift.Options{Runtime: o.runtime, Version: version, Northd: o.northd,
		Chosen:   func(what string) { fmt.Fprintf(o.Err, "runtime: %s\n", terminal.Escape(what)) },
		Progress: func(text string) { p.print("%s", text) }})
	p.end()
	if err != nil {
		return err
	}
	if err := o.emit(r, func() { o.print("", r) }); err != nil {
		return err
	}
	return errorOf(r)
}

func (o *driftOptions) runSet(ctx context.Context, s *set.Set, _ []string) error {
	var mu sync.Mutex // the nodes are compared side by side
	p := o.progress()
	outcomes := set.Each(ctx, s, func(ctx context.Context, n *set.Node, wd *workdir.Dir) (*drift.Report, error) {
		locked := func(do func()) {
			mu.Lock()
			defer mu.Unlock()
			do()
		}
		if o.isForPods() && link.Linked(wd) {
			return o.inPod(ctx, wd)
		}
		return drift.Check(ctx, wd, drift.Options{Runtime: o.runtime, Version: version, Northd: o.northd,
			Chosen: func(what string) {
				locked(func() {
					p.end()
					fmt.Fprintf(o.Err, "%s: runtime: %s\n", terminal.Escape(n.Name), terminal.Escape(what))
				})
			},
			Progress: func(text string) { locked(func() { p.print("%s: %s", n.Name, text) }) }})
	})
	p.end()
	errs := failures(outcomes)
	for _, v := range values(outcomes) {
		errs = append(errs, errorOf(v.Value))
	}
	if ctx.Err() != nil {
		return worst(errs...)
	}
	return worst(append(errs, o.emit(documentOf(s, outcomes), func() {
		for _, v := range values(outcomes) {
			o.print(v.Node.Name+": ", v.Value)
		}
	}))...)
}

// isForPods reports whether a node whose replica runs in a pod is compared there, by the
// programs of its image: the user named no runtime of this machine.
func (o *driftOptions) isForPods() bool { return o.runtime == choose.Auto }

// inPod returns what drift finds out in the pod of a workdir's replica.
func (o *driftOptions) inPod(ctx context.Context, wd *workdir.Dir) (*drift.Report, error) {
	args := []string{"drift"}
	if o.northd {
		args = append(args, "--northd")
	}
	r := &drift.Report{}
	return r, set.DocumentInPod(ctx, wd, r, args...)
}

// errorOf returns the error that stands for a report's exit code.
func errorOf(r *drift.Report) error {
	switch r.Verdict {
	case drift.Found:
		return errDrift
	case drift.Undetermined:
		return errIncomplete
	}
	return nil
}

// print prints a report, each paragraph behind a prefix.
func (o *driftOptions) print(prefix string, r *drift.Report) {
	fmt.Fprintf(o.Out, "%s%s\n", terminal.Escape(prefix), terminal.Escape(r.Summary()))
	o.printList("missing", r.Missing)
	o.printList("extra", r.Extra)
	o.printList("altered", r.Altered)
	o.printList("either is correct", r.Either)
	if len(r.Either) > 0 {
		fmt.Fprintln(o.Out, "    (several logical flows or router ports match the same packets: the order in which ovn-controller sees them decides)")
	}
	for _, l := range r.LeftOut {
		fmt.Fprintf(o.Out, "  not compared: %s\n", terminal.Escape(l.String()))
	}
	if n := r.Northd; n != nil {
		fmt.Fprintf(o.Out, "%sovn-northd: %s\n", terminal.Escape(prefix), n.Summary())
		o.printList("missing", n.Missing)
		o.printList("extra", n.Extra)
		o.printList("altered", n.Altered)
	}
	o.warnEach(prefix, r.Remarks)
}

func (o *driftOptions) printList(how string, list []drift.Difference) {
	for _, d := range list {
		fmt.Fprintf(o.Out, "  %s: %s\n", how, terminal.Escape(d.String()))
		if o.every {
			printEntries(o.Out, d)
		}
	}
}

// printEntries prints the entries of a difference.
func printEntries(w io.Writer, d drift.Difference) {
	for _, e := range d.Entries {
		for _, line := range e.Lines() {
			fmt.Fprintf(w, "      %s\n", terminal.Escape(strings.TrimSpace(line)))
		}
	}
}
