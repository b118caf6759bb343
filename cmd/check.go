package cmd

import (
	"context"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/internal/show"
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

// checkMemory is the heap size in bytes above which the garbage collector runs more often while a check
// runs. A check of a million flows has 150 MB in use; with the limit of main, half of its time would go
// into collecting garbage.
const checkMemory = 220 << 20

func (o *checkOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(checkMemory))
	}
	progress := o.progress()
	early := newEarly(progress)
	early.erased = isTerminal(o.Out)
	found, err := check.Run(ctx, selected.Snapshot, check.Options{
		Programs: rule.Programs{Runtime: o.runtime, Runtimes: runtimes()},
		Found:    early.add,
		Progress: func(text string) { progress.print("%s", text) },
	})
	early.stop()
	progress.end()
	if err != nil {
		return err
	}
	err = o.emit(found, func(page *show.Page) { found.Print(page, o.detail) })
	return worst(err, foundIf(len(found.Findings) > 0), incompleteIf(len(found.Unjudged) > 0))
}

// early prints the first findings to stderr while a check takes long: all of them follow in their order.
type early struct {
	progress *progress
	timer    *time.Timer

	mu    sync.Mutex
	kept  []string // until the check has taken long
	long  bool
	shown int

	erased bool // lines are only progress: a terminal shows each finding once, in the result
}

// How long a check may take before it prints findings, and how many it prints.
const (
	longCheck = 2 * time.Second
	mostEarly = 10
)

func newEarly(progress *progress) *early {
	e := &early{progress: progress}
	e.timer = time.AfterFunc(longCheck, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.long = true
		for _, text := range e.kept {
			e.show(text)
		}
		e.kept = nil
	})
	return e
}

// add takes a finding.
func (e *early) add(f rule.Finding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := check.Line(f)
	switch {
	case e.long:
		e.show(text)
	case len(e.kept) < mostEarly:
		e.kept = append(e.kept, text)
	}
}

// show prints a finding, unless there were many.
func (e *early) show(text string) {
	if e.shown++; e.shown <= mostEarly && !e.erased {
		e.progress.note("found: %s", text)
	} else {
		e.progress.print("found: %s", text)
	}
}

// stop ends the printing.
func (e *early) stop() { e.timer.Stop() }
