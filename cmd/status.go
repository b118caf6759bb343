package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

// errNotReady gives status the exit code 1.
var errNotReady = errors.New("the replica is not ready")

type statusOptions struct {
	*options
	watch bool
}

func newStatus(shared *options) *cobra.Command {
	o := &statusOptions{options: shared}
	c := &cobra.Command{
		Use: "status", Short: "Show the status of the replica's daemons", Args: exactArgs(),
		Long: "Show the status of the replica's daemons: when each was started, whether it answers and its\n" +
			"last error; and whether the flows that start loaded are still there.\n\n" +
			"Exit code 0: ready. 1: no replica is running, a daemon does not answer, or flows are missing.",
		Example: "  ovs-offline status\n  ovs-offline status --watch\n  ovs-offline status >/dev/null || ovs-offline start",
		RunE:    o.withWorkdir(o.run),
	}
	o.outputFlag(c)
	c.Flags().BoolVar(&o.watch, "watch", false, "keep running, and print the status whenever it changes")
	return c
}

// run prints the status, and with --watch again whenever it changes, until ctx ends.
func (o *statusOptions) run(ctx context.Context, wd *workdir.Dir, _ []string) error {
	const interval = 2 * time.Second
	var printed *replica.Status
	for {
		s, err := o.status(ctx, wd)
		if o.watch && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if printed == nil || !reflect.DeepEqual(*printed, s) {
			if err := o.emit(s, func() { o.printStatus(s) }); err != nil {
				return err
			}
			printed = &s
		}
		switch {
		case o.watch:
		case s.Ready:
			return nil
		default:
			return fmt.Errorf("%w: ovs-offline start restarts it", errNotReady)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

func (o *statusOptions) status(ctx context.Context, wd *workdir.Dir) (replica.Status, error) {
	state, err := o.running(ctx, wd)
	if err != nil {
		return replica.Status{}, err
	}
	rt, err := o.runtimes(wd).Named(ctx, state.Runtime)
	if err != nil {
		return replica.Status{}, fmt.Errorf("the replica in %s runs in %s: %w", wd.Path(), state.Runtime, err)
	}
	return replica.ReadStatus(ctx, wd, state, rt)
}

func (o *statusOptions) printStatus(s replica.Status) {
	if o.watch && isTerminal(o.Out) {
		fmt.Fprint(o.Out, "\033[H\033[2J") // clears the screen
	}
	ready := "ready"
	if !s.Ready {
		ready = "NOT READY"
	}
	fmt.Fprintf(o.Out, "Working directory %s, runtime %s: %s\n\n", terminal.Escape(s.Workdir), s.Runtime, ready)
	t := o.newTable("daemon", "state", "since", "pid", "container", "version", "last error")
	for _, d := range s.Daemons {
		state, pid := "answers", ""
		switch {
		case !d.Running:
			state = "down"
		case !d.Answers:
			state = "silent"
		}
		if d.PID != 0 {
			pid = strconv.Itoa(d.PID)
		}
		t.AppendRow(table.Row{d.Role, state, localTime(d.Since), pid, d.Container, terminal.Escape(d.Version), terminal.Escape(cmp.Or(d.Problem, d.LastError))})
	}
	t.Render()
	if len(s.Flows) == 0 {
		return
	}
	fmt.Fprintln(o.Out)
	t = o.newTable("bridge", "flows loaded", "flows now", "")
	for _, f := range s.Flows {
		t.AppendRow(table.Row{terminal.Escape(f.Bridge), f.Loaded, f.Now, terminal.Escape(f.Problem)})
	}
	t.Render()
}
