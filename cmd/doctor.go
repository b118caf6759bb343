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
	c := &cobra.Command{
		Use: "doctor", Short: "Check this machine and suggest fixes", Args: exactArgs(),
		Long: "Check what works on this machine (tools, namespaces, container engines and their images,\n" +
			"kubeconfig), and print the command that fixes what does not. Nothing is changed.\n\n" +
			"Exit code 1 means that no replica can be started here.",
		Example: "  ovs-offline doctor\n  ovs-offline doctor -o json | jq '.checks[] | select(.state != \"works\")'",
		RunE:    func(c *cobra.Command, _ []string) error { return o.doctor(c) },
	}
	o.outputFlag(c)
	return c
}

func (o *options) doctor(c *cobra.Command) error {
	r := doctor.Examine(c.Context(), o.workdir, o.runtime, version)
	if err := o.emit(r, func() { o.printDoctor(r) }); err != nil {
		return err
	}
	switch {
	case r.Start != "":
		return nil
	case o.runtime != choose.Auto:
		return fmt.Errorf("no replica can be started here with --runtime %s (or OVS_OFFLINE_RUNTIME): see above how to fix it", o.runtime)
	}
	return errors.New("no replica can be started here: it takes local tools, podman or docker; see above how to fix it")
}

func (o *options) printDoctor(r doctor.Report) {
	t := o.newTable("", "state", "details")
	for _, c := range r.Checks {
		t.AppendRow(table.Row{c.Name, c.State, terminal.Escape(c.What)})
		if c.Mend != "" {
			t.AppendRow(table.Row{"", "", "  fix: " + terminal.Escape(c.Mend)})
		}
	}
	t.Render()
	if r.Start != "" {
		fmt.Fprintf(o.Out, "\nstart would use %s\n", terminal.Escape(r.Start))
	}
}
