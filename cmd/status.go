package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

// errNotReady ends status with exit code 1 for scripts.
var errNotReady = errors.New("the replica is not ready")

func newStatus(o *options) *cobra.Command {
	var format string
	var watch bool
	c := &cobra.Command{
		Use: "status", Short: "Tell how the replica's daemons are", Args: exactly(),
		Long: "Tell how the replica's daemons are: since when each runs, whether it answers, its last\n" +
			"error; and whether the flows are still there that start had loaded.\n\n" +
			"Exit code 0: ready. 1: no replica runs, a daemon does not answer, or flows are gone.",
		Example: "  ovs-offline status\n  ovs-offline status --watch\n  ovs-offline status >/dev/null || ovs-offline start",
		RunE: func(c *cobra.Command, _ []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			if watch {
				return o.watch(c.Context(), wd, format)
			}
			s, err := o.status(c.Context(), wd)
			if err != nil {
				return err
			}
			if err := o.emit(format, s, func() { o.printStatus(s) }); err != nil {
				return err
			}
			if !s.Ready {
				return fmt.Errorf("%w: ovs-offline start makes it anew", errNotReady)
			}
			return nil
		},
	}
	outputFlag(c, &format)
	c.Flags().BoolVar(&watch, "watch", false, "go on, and tell when something changes")
	return c
}

func (o *options) status(ctx context.Context, wd *workdir.Dir) (replica.Status, error) {
	runtimes := o.runtimes(wd)
	state, err := o.running(ctx, runtimes, wd)
	if err != nil {
		return replica.Status{}, err
	}
	rt, err := runtimes.Named(ctx, state.Runtime)
	if err != nil {
		return replica.Status{}, fmt.Errorf("the replica in %s runs in %s: %w", wd.Path(), state.Runtime, err)
	}
	return replica.Look(ctx, wd, state, rt)
}

// watch prints the status whenever it changes, until it is interrupted.
func (o *options) watch(ctx context.Context, wd *workdir.Dir, format string) error {
	const pause = 2 * time.Second
	var before replica.Status
	for first := true; ; first = false {
		s, err := o.status(ctx, wd)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if first || !reflect.DeepEqual(before, s) {
			if isTerminal(os.Stdout) && format == "table" {
				fmt.Fprint(o.Out, "\033[H\033[2J")
			}
			if err := o.emit(format, s, func() { o.printStatus(s) }); err != nil {
				return err
			}
			before = s
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (o *options) printStatus(s replica.Status) {
	ready := "ready"
	if !s.Ready {
		ready = "NOT READY"
	}
	fmt.Fprintf(o.Out, "Working directory %s, runtime %s: %s\n\n", terminal.Escape(s.Workdir), s.Runtime, ready)
	t := newTable(o.Out, "daemon", "state", "since", "pid", "container", "version", "last error")
	for _, d := range s.Daemons {
		state := "answers"
		switch {
		case !d.Running:
			state = "down"
		case !d.Answers:
			state = "silent"
		}
		last := d.LastError
		if d.Problem != "" {
			last = d.Problem
		}
		t.AppendRow(table.Row{d.Role, state, age(d.Since), number(d.PID), d.Container, terminal.Escape(d.Version), terminal.Escape(last)})
	}
	t.Render()
	if len(s.Flows) == 0 {
		return
	}
	fmt.Fprintln(o.Out)
	t = newTable(o.Out, "bridge", "flows loaded", "flows now", "")
	for _, f := range s.Flows {
		t.AppendRow(table.Row{terminal.Escape(f.Bridge), f.Loaded, f.Now, terminal.Escape(f.Problem)})
	}
	t.Render()
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return when(t)
}
