package cmd

import (
	"github.com/spf13/cobra"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

func newShow(o *options) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "show", Short: "Show how to talk to the running replica", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			if _, err := o.running(c.Context(), o.place(wd), wd); err != nil {
				return err
			}
			sockets, err := replica.Show(wd)
			if err != nil {
				return err
			}
			report, err := replica.Report(wd)
			if err != nil {
				return err
			}
			return o.emit(output, map[string]any{"sockets": sockets, "ports": report.Ports}, func() {
				sockets.Print(o.Out)
				printPorts(o.Out, report)
			})
		},
	}
	outputFlag(c, &output)
	return c
}

func (o *options) show(wd *workdir.Dir) error {
	sockets, err := replica.Show(wd)
	if err != nil {
		return err
	}
	sockets.Print(o.Out)
	return nil
}
