package cmd

import (
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica/doctor"
	"ovs-offline/replica/runtime/choose"
)

func newDoctor(o *options) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "doctor", Short: "Tell what works on this machine, and what mends the rest", Args: exactly(),
		Long: "Tell what works on this machine (tools, namespaces, container engines and their images,\n" +
			"kubeconfig), what does not, and the command that mends it. Nothing is changed.\n\n" +
			"Exit code 1 says that no replica could be started here.",
		Example: "  ovs-offline doctor\n  ovs-offline doctor -o json | jq '.checks[] | select(.state != \"works\")'",
		RunE: func(c *cobra.Command, _ []string) error {
			r := doctor.Examine(c.Context(), o.workdir, o.runtime, version)
			if err := o.emit(format, r, func() { o.printDoctor(r) }); err != nil {
				return err
			}
			if r.Start == "" && o.runtime != choose.Auto {
				return fmt.Errorf("no replica can be started here with --runtime %s (or OVS_OFFLINE_RUNTIME): see above what mends it", o.runtime)
			}
			if r.Start == "" {
				return errors.New("no replica can be started here: one of local tools, podman or docker is needed; see above what mends it")
			}
			return nil
		},
	}
	outputFlag(c, &format)
	return c
}

func (o *options) printDoctor(r doctor.Report) {
	t := newTable(o.Out, "", "state", "what")
	for _, c := range r.Checks {
		t.AppendRow(table.Row{c.Name, c.State, terminal.Escape(c.What)})
		if c.Mend != "" {
			t.AppendRow(table.Row{"", "", "  mend: " + terminal.Escape(c.Mend)})
		}
	}
	t.Render()
	if r.Start != "" {
		fmt.Fprintf(o.Out, "\nstart would use %s\n", terminal.Escape(r.Start))
	}
}
