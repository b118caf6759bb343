package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
)

type stopOptions struct {
	*options
	purge bool
}

func newStop(shared *options) *cobra.Command {
	o := &stopOptions{options: shared}
	c := &cobra.Command{
		Use: "stop", Short: "Stop the replica and keep the collected data", Args: exactArgs(),
		Example: "  ovs-offline stop\n  ovs-offline stop --purge",
		RunE: o.oneNode(func(c *cobra.Command, args []string) error {
			if _, err := os.Stat(o.workdir); os.IsNotExist(err) {
				fmt.Fprintf(o.Out, "No replica runs in %s.\n", shellWord(o.workdir))
				return nil
			}
			return o.withLock(o.run)(c, args)
		}),
	}
	c.Flags().BoolVar(&o.purge, "purge", false, "also remove the collected data; files that ovs-offline did not write are kept")
	return c
}

func (o *stopOptions) run(ctx context.Context, wd *workdir.Dir, _ []string) error {
	if err := o.checkReachable(ctx, wd); err != nil {
		return err
	}
	started, err := o.started(ctx, wd)
	if err != nil {
		return err
	}
	if err := replica.Stop(ctx, wd, o.runtimes(wd).All(ctx)...); err != nil {
		return err
	}
	if started {
		o.headline("Offline OVS Debugging stopped")
	} else {
		fmt.Fprintf(o.Out, "No replica runs in %s.\n", shellWord(wd.Path()))
	}
	if !o.purge {
		fmt.Fprintf(o.Out, "Collected data stays in %s; %s removes it.\n", shellWord(wd.Path()), o.self("stop --purge"))
		return nil
	}
	return o.purgeData(wd)
}

// started reports whether a replica of the workdir was started and not stopped.
func (o *stopOptions) started(ctx context.Context, wd *workdir.Dir) (bool, error) {
	if name, err := replica.LastRuntime(wd); name != "" || err != nil {
		return true, nil // a damaged replica.json is that of a replica
	}
	_, err := o.running(ctx, wd)
	if errors.Is(err, runtime.ErrNotRunning) {
		return false, nil
	}
	return err == nil, err
}

// purgeData removes the collected data, and prints which files stay.
func (o *stopOptions) purgeData(wd *workdir.Dir) error {
	left, err := wd.Purge()
	if err != nil {
		return err
	}
	if len(left) > 0 {
		fmt.Fprintf(o.Out, "These files in %s were not written by ovs-offline and stay:\n", wd.Path())
		for _, name := range left {
			fmt.Fprintf(o.Out, "  %s\n", terminal.Escape(name))
		}
	}
	return nil
}
