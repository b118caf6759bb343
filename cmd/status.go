package cmd

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/internal/show"
	"ovs-offline/replica"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// errNotReady gives status the exit code 1.
var errNotReady = errors.New("the replica is not ready")

type statusOptions struct {
	*options
	watch bool
}

func newStatus(shared *options) *cobra.Command {
	o := &statusOptions{options: shared}
	command := &cobra.Command{
		Use: "status", Short: "Show the status of the replica's daemons", Args: exactArgs(),
		Long: "Show the status of the replica's daemons: when each was started, whether it answers and its\n" +
			"last error; and whether the flows that start loaded are still there.\n\n" +
			"Exit code 0: ready. 1: no replica is running, a daemon does not answer, or flows are missing.",
		Example: "  ovs-offline status\n  ovs-offline status --watch\n  ovs-offline status >/dev/null || ovs-offline start",
		RunE:    o.withNodes(o.run),
	}
	o.nodeFlag(command)
	o.outputFlag(command)
	command.Flags().BoolVar(&o.watch, "watch", false, "keep running, and print the status whenever it changes")
	return command
}

func (o *statusOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	return o.repeat(ctx, func() (readStatus, error) {
		outcomes := snapshot.Each(ctx, selected.Snapshot, func(ctx context.Context, node *snapshot.Node, wd *workdir.Dir) (replica.Status, error) {
			return selected.Node(node).Status(ctx, wd)
		})
		if only := outcomes[0]; selected.Alone() {
			status := readStatus{document: only.Value, print: only.Value.Print}
			if !only.Value.Ready {
				status.notReady = fmt.Errorf("%w: ovs-offline start restarts it", errNotReady)
			}
			return status, only.Err
		}
		errs := snapshot.Failures(selected.Snapshot, outcomes)
		for _, outcome := range snapshot.Values(outcomes) {
			if !outcome.Value.Ready {
				errs = append(errs, fmt.Errorf("node %s: %w: %s restarts it", outcome.Node.Name, errNotReady, o.self("start --node "+show.Word(outcome.Node.Name))))
			}
		}
		return readStatus{snapshot.DocumentOf(selected.Snapshot, outcomes), func(page *show.Page) { set.PrintStatuses(page, selected.Snapshot, outcomes) }, worst(errs...)}, nil
	})
}

// readStatus is a status that was read: as a document, and the function that prints it as
// tables.
type readStatus struct {
	document any
	print    func(*show.Page)
	notReady error // nil if each replica is ready
}

// repeat prints a status, and with --watch again whenever it changes, until ctx ends.
func (o *statusOptions) repeat(ctx context.Context, read func() (readStatus, error)) error {
	const interval = 2 * time.Second
	var printed any
	for {
		status, err := read()
		if o.watch && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(printed, status.document) {
			if o.watch && isTerminal(o.Out) && o.format == formatTable {
				fmt.Fprint(o.Out, "\033[H\033[2J") // clears the screen
			}
			if err := o.emit(status.document, status.print); err != nil {
				return err
			}
			printed = status.document
		}
		if !o.watch {
			return status.notReady
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}
