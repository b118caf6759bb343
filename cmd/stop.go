package cmd

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

func newStop(o *options) *cobra.Command {
	var purge bool
	c := &cobra.Command{
		Use: "stop", Short: "Stop the replica; collected data stays", Args: exactly(),
		Example: "  ovs-offline stop\n  ovs-offline stop --purge",
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := os.Stat(o.workdir); os.IsNotExist(err) {
				headline(o.Out, "Offline OVS Debugging stopped")
				return nil
			}
			return o.locked(func(wd *workdir.Dir) error { return o.stop(c, wd, purge) })
		},
	}
	c.Flags().BoolVar(&purge, "purge", false, "also remove the collected data, and never a file that ovs-offline did not write")
	return c
}

func (o *options) stop(c *cobra.Command, wd *workdir.Dir, purge bool) error {
	runtimes := o.runtimes(wd)
	if err := o.reachable(c.Context(), runtimes, wd); err != nil {
		return err
	}
	if err := replica.Stop(c.Context(), wd, runtimes.All(c.Context())...); err != nil {
		return err
	}
	headline(o.Out, "Offline OVS Debugging stopped")
	if !purge {
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
