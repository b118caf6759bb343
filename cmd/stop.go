package cmd

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

const stopped = "Offline OVS Debugging stopped"

type stopOptions struct {
	*options
	purge bool
}

func newStop(shared *options) *cobra.Command {
	o := &stopOptions{options: shared}
	c := &cobra.Command{
		Use: "stop", Short: "Stop the replica and keep the collected data", Args: exactArgs(),
		Example: "  ovs-offline stop\n  ovs-offline stop --purge",
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := os.Stat(o.workdir); os.IsNotExist(err) {
				o.headline(stopped)
				return nil
			}
			return o.withLock(o.run)(c, args)
		},
	}
	c.Flags().BoolVar(&o.purge, "purge", false, "also remove the collected data; files that ovs-offline did not write are kept")
	return c
}

func (o *stopOptions) run(ctx context.Context, wd *workdir.Dir, _ []string) error {
	if err := o.checkReachable(ctx, wd); err != nil {
		return err
	}
	if err := replica.Stop(ctx, wd, o.runtimes(wd).All(ctx)...); err != nil {
		return err
	}
	o.headline(stopped)
	if !o.purge {
		fmt.Fprintf(o.Out, "Collected data stays in %s; ovs-offline stop --purge removes it.\n", wd.Path())
		return nil
	}
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
