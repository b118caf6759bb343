package cmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/image"
	"ovs-offline/replica/image/build"
	"ovs-offline/replica/runtime/engine"
)

type imagePushOptions struct {
	*options
	build.PushOptions
}

func newImagePush(shared *options) *cobra.Command {
	o := &imagePushOptions{options: shared, PushOptions: build.PushOptions{Version: version}}
	command := &cobra.Command{
		Use: "push DESTINATION", Short: "Write an image to a registry or to a file, for pods", Args: exactArgs("DESTINATION"),
		Long: "Write an image of this machine's tools, or with --image an image for local processes, to a\n" +
			"registry or to a file. It also holds this ovs-offline, so that pods can run replicas, or collect\n" +
			"from their cluster (\"oc adm must-gather\"). Neither podman nor docker is needed.\n\n" +
			"DESTINATION is one of:\n" +
			"  REGISTRY/NAME[:TAG], docker://REFERENCE   an image in a registry; credentials of docker login\n" +
			"                                            or podman login are used\n" +
			"  oci-archive:FILE[:NAME]                   a tar of an OCI layout\n" +
			"  docker-archive:FILE[:REFERENCE]           a file as docker save writes it\n\n" +
			"Without a TAG, the image is tagged with the versions of Open vSwitch and OVN in it.",
		Example: "  ovs-offline image push registry.example.org/net/ovs-offline\n" +
			"  ovs-offline image push registry.example.org/net/ovs-offline --image ovn-25.03\n" +
			"  ovs-offline image push oci-archive:ovs-offline.tar",
		RunE: func(command *cobra.Command, args []string) error { return o.run(command.Context(), args[0]) },
	}
	command.Flags().StringVar(&o.Image, "image", "", "image for local processes to push (default: one of this machine's tools)")
	command.Flags().BoolVar(&o.Replace, "force", false, forceFileUsage)
	local := choose.Process
	_ = command.RegisterFlagCompletionFunc("image", completeImages(&local))
	o.runtimeFlag(command)
	o.outputFlag(command)
	return command
}

func (o *imagePushOptions) run(ctx context.Context, destination string) error {
	if slices.Contains(engine.Names(), o.runtime) {
		return fault.Usagef("image push is for this machine's tools and images for local processes; images in %[1]s are pushed with %[1]s push", o.runtime)
	}
	to, err := image.ParseDestination(destination)
	if err != nil {
		return err
	}
	fmt.Fprintln(o.Err, "packing and writing the image")
	pushed, err := build.Push(ctx, to, o.PushOptions)
	if err != nil {
		return adviseForce(err)
	}
	o.page().WarnEach("left out: ", pushed.LeftOut)
	return o.emit(pushed, func(*show.Page) {
		fmt.Fprintf(o.Out, "%s\n%s, %d MB\n", terminal.Escape(pushed.Name), image.VersionsText(pushed.OVS, pushed.OVN), pushed.Size/1e6)
	})
}
