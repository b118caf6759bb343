package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ovs-offline/replica/choose"
	"ovs-offline/replica/doctor"
)

type doctorOptions struct{ *options }

func newDoctor(shared *options) *cobra.Command {
	o := &doctorOptions{shared}
	command := &cobra.Command{
		Use: "doctor", Short: "Check this machine and suggest fixes", Args: exactArgs(),
		Long: "Check what works on this machine (tools, namespaces, container engines and their images,\n" +
			"kubeconfig), and print the command that fixes what does not. Nothing is changed.\n\n" +
			"Exit code 1 means that no replica can be started here.",
		Example: "  ovs-offline doctor\n  ovs-offline doctor -o json | jq '.checks[] | select(.state != \"works\")'",
		RunE:    func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	o.runtimeFlag(command)
	o.outputFlag(command)
	return command
}

func (o *doctorOptions) run(ctx context.Context) error {
	examined := doctor.Examine(ctx, o.workdir, o.runtime, version)
	if err := o.emit(examined, examined.Print); err != nil {
		return err
	}
	switch {
	case examined.Start != "":
		return nil
	case o.runtime != choose.Auto:
		return fmt.Errorf("no replica can be started here with --runtime %s (or OVS_OFFLINE_RUNTIME): see above how to fix it", o.runtime)
	}
	return errors.New("no replica can be started here: it takes local tools, podman or docker; see above how to fix it")
}
