package cmd

import (
	"context"
	"fmt"
	"io"
	"sync"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica/report"
	"ovs-offline/set"
)

// runSet starts the replicas of a set and prints one table about them.
func (o *startOptions) runSet(ctx context.Context, s *set.Set, _ []string) error {
	if err := endScratches(ctx, s); err != nil {
		return err
	}
	comparison := make(chan compared, 1)
	go func() { comparison <- compareDatabases(ctx, s) }() // reading takes as long as starting
	outcomes, err := o.startSet(ctx, s)
	if err != nil {
		return err
	}
	errs := failures(outcomes)
	for _, v := range values(outcomes) {
		errs = append(errs, o.incomplete(v.Value))
	}
	differences := <-comparison
	if ctx.Err() != nil {
		return worst(errs...)
	}
	return worst(append(errs, o.printSet(s, outcomes, differences))...)
}

// startSet starts the replicas of a set on this host or in a cluster. An error concerns all.
func (o *startOptions) startSet(ctx context.Context, s *set.Set) ([]set.Outcome[*report.Report], error) {
	if o.inPods != nil {
		return o.runSetInPods(ctx, s)
	}
	var mu sync.Mutex // the nodes start side by side
	p := o.progress()
	say := func(w io.Writer, n *set.Node, text string) {
		mu.Lock()
		defer mu.Unlock()
		p.end()
		fmt.Fprintf(w, "%s: %s\n", terminal.Escape(n.Name), terminal.Escape(text))
	}
	outcomes := s.Start(ctx, func(n *set.Node) set.StartOptions {
		return set.StartOptions{
			Runtime: o.runtime, Image: o.image, Versions: o.versions,
			Chosen: func(what string) { say(o.Err, n, "runtime: "+what) },
			Starting: func(role string) {
				if o.format == formatTable {
					say(o.Out, n, "Starting "+role)
				}
			},
			Progress: func(step string) {
				mu.Lock()
				defer mu.Unlock()
				p.print("%s: restoring: %s", n.Name, step)
			},
		}
	}, func(n *set.Node, memory string) { say(o.Err, n, "warning: "+memory) })
	p.end()
	return outcomes, nil
}

func (o *startOptions) printSet(s *set.Set, outcomes []set.Outcome[*report.Report], differences compared) error {
	started := values(outcomes)
	if o.format != formatTable {
		for _, v := range started {
			if !v.Value.Complete() {
				o.warn("node %s: %s in its report", v.Node.Name, notRestored)
			}
		}
		return o.printReports(s, outcomes, differences, nil)
	}
	if len(started) > 0 {
		o.headline("Offline OVS Debugging started")
	}
	if err := o.printReports(s, outcomes, differences, func() { o.printReportTable(outcomes) }); err != nil || len(started) == 0 {
		return err
	}
	for _, v := range started {
		o.warnIncomplete(v.Node, v.Value)
	}
	fmt.Fprintf(o.Out, "\nAll sockets, and how to use them: %s. What each replica lacks: %s.\nWho reaches whom, and which rule drops a packet: %s.\n", o.self("show"), o.self("report --node NODE"), o.self("trace FROM TO"))
	return nil
}

// warnIncomplete prints a warning for what is missing in the replica of a node.
func (o *IO) warnIncomplete(n *set.Node, r *report.Report) {
	prefix := n.Name + ": "
	for _, s := range r.Steps {
		if s.Status == report.Failed {
			o.warnEach(prefix+s.Step+" failed: ", details(s))
		}
	}
	if warning := r.TraceWarning("its OVN SB database"); warning != "" {
		o.warn("%s%s", prefix, warning)
	}
	if text := synthesised(r); text != "" {
		o.warn("%s%s", prefix, text)
	}
	o.warnLosses(prefix, r)
}
