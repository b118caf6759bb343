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
	"ovs-offline/replica/runtime"
	"ovs-offline/set"
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
		RunE:    o.workdirOrSet(o.run, o.runSet),
	}
	o.nodeFlag(c)
	o.outputFlag(c)
	c.Flags().BoolVar(&o.watch, "watch", false, "keep running, and print the status whenever it changes")
	return c
}

// run prints the status of a node.
func (o *statusOptions) run(ctx context.Context, wd *workdir.Dir, _ []string) error {
	return o.repeat(ctx, func() (readStatus, error) {
		s, err := o.node().Status(ctx, wd)
		r := readStatus{document: s, print: func() { o.printStatus(s) }}
		if !s.Ready {
			r.notReady = fmt.Errorf("%w: ovs-offline start restarts it", errNotReady)
		}
		return r, err
	})
}

// runSet prints the status of a set.
func (o *statusOptions) runSet(ctx context.Context, s *set.Set, _ []string) error {
	return o.repeat(ctx, func() (readStatus, error) {
		outcomes := set.Each(ctx, s, func(ctx context.Context, n *set.Node, wd *workdir.Dir) (replica.Status, error) {
			return n.Status(ctx, wd)
		})
		errs := failures(outcomes)
		for _, v := range values(outcomes) {
			if !v.Value.Ready {
				errs = append(errs, fmt.Errorf("node %s: %w: %s restarts it", v.Node.Name, errNotReady, o.self("start --node "+shellWord(v.Node.Name))))
			}
		}
		return readStatus{documentOf(s, outcomes), func() { o.printStatuses(s, outcomes) }, worst(errs...)}, nil
	})
}

// readStatus is a status that was read: as a document, and the function that prints it as
// tables.
type readStatus struct {
	document any
	print    func()
	notReady error // nil if each replica is ready
}

// repeat prints a status, and with --watch again whenever it changes, until ctx ends.
func (o *statusOptions) repeat(ctx context.Context, read func() (readStatus, error)) error {
	const interval = 2 * time.Second
	var printed any
	for {
		s, err := read()
		if o.watch && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(printed, s.document) {
			if o.watch && isTerminal(o.Out) && o.format == formatTable {
				fmt.Fprint(o.Out, "\033[H\033[2J") // clears the screen
			}
			if err := o.emit(s.document, s.print); err != nil {
				return err
			}
			printed = s.document
		}
		if !o.watch {
			return s.notReady
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// printStatuses prints a line for each node of a set, or the whole status of the only one.
func (o *statusOptions) printStatuses(s *set.Set, outcomes []set.Outcome[replica.Status]) {
	if len(s.Nodes()) == 1 {
		eachNode(&o.IO, values(outcomes), o.printStatus)
		return
	}
	fmt.Fprintf(o.Out, "Nodes in %s\n\n", terminal.Escape(s.Folder()))
	t := o.newTable("node", "state", "runtime", "daemons", "flows loaded", "flows now", "problem")
	for _, outcome := range outcomes {
		t.AppendRow(statusRow(outcome))
	}
	t.Render()
	o.warnEach("", s.Remarks())
}

// statusRow returns the line about a node.
func statusRow(outcome set.Outcome[replica.Status]) table.Row {
	name := terminal.Escape(outcome.Node.Name)
	if outcome.Err != nil {
		return table.Row{name, stateOf(outcome.Err), "", "", "", "", terminal.Escape(outcome.Err.Error())}
	}
	s, answering, loaded, now, problem := outcome.Value, 0, 0, 0, ""
	for _, d := range s.Daemons {
		if d.Answers {
			answering++
		}
		if d.Problem != "" {
			problem = cmp.Or(problem, d.Role+": "+d.Problem)
		}
	}
	for _, f := range s.Flows {
		loaded, now = loaded+f.Loaded, now+f.Now
		problem = cmp.Or(problem, f.Problem)
	}
	return table.Row{name, readiness(s), s.Runtime, fmt.Sprintf("%d of %d", answering, len(s.Daemons)), loaded, now, terminal.Escape(problem)}
}

// stateOf returns the state of a node that has no status or report.
func stateOf(err error) string {
	if errors.Is(err, runtime.ErrNotRunning) || errors.Is(err, errNoReport) {
		return "not started"
	}
	return "failed"
}

func readiness(s replica.Status) string {
	if s.Ready {
		return "ready"
	}
	return "NOT READY"
}

func (o *statusOptions) printStatus(s replica.Status) {
	fmt.Fprintf(o.Out, "Working directory %s, runtime %s: %s\n\n", terminal.Escape(s.Workdir), s.Runtime, readiness(s))
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
		t.AppendRow(table.Row{terminal.Escape(d.Role), state, localTime(d.Since), pid, d.Container, terminal.Escape(d.Version), terminal.Escape(cmp.Or(d.Problem, d.LastError))})
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
