package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"ovs-offline/internal/oci"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica/images"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/engine"
)

type imagePushOptions struct {
	*options
	images.PushOptions
}

func newImagePush(shared *options) *cobra.Command {
	o := &imagePushOptions{options: shared, PushOptions: images.PushOptions{Version: version}}
	c := &cobra.Command{
		Use: "push DESTINATION", Short: "Write an image to a registry or to a file, for pods", Args: exactArgs("DESTINATION"),
		Long: "Write an image of this machine's tools, or with --image an image for local processes, to a\n" +
			"registry or to a file. It holds this ovs-offline too, so that pods can run replicas, collect from\n" +
			"their cluster (\"oc adm must-gather\"), and people the commands. Neither podman nor docker is needed.\n\n" +
			"DESTINATION is one of:\n" +
			"  REGISTRY/NAME[:TAG], docker://REFERENCE   an image in a registry; credentials of docker login\n" +
			"                                            or podman login are used\n" +
			"  oci-archive:FILE[:NAME]                   a tar of an OCI layout\n" +
			"  docker-archive:FILE[:REFERENCE]           a file as docker save writes it\n\n" +
			"Without a TAG, the image is tagged with the versions of Open vSwitch and OVN in it.",
		Example: "  ovs-offline image push registry.example.org/net/ovs-offline\n" +
			"  ovs-offline image push registry.example.org/net/ovs-offline --image ovn-25.03\n" +
			"  ovs-offline image push oci-archive:ovs-offline.tar",
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	c.Flags().StringVar(&o.Image, "image", "", "image for local processes to push (default: one of this machine's tools)")
	c.Flags().BoolVar(&o.Replace, "force", false, "replace FILE if it exists")
	_ = c.RegisterFlagCompletionFunc("image", func(c *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		o.runtime = choose.Process
		return o.completeImages(c, args, start)
	})
	o.outputFlag(c)
	return c
}

func (o *imagePushOptions) run(ctx context.Context, destination string) error {
	if slices.Contains(engine.Names(), o.runtime) {
		return fmt.Errorf("%w: image push is for this machine's tools and images for local processes; images in %[2]s are pushed with %[2]s push", errUsage, o.runtime)
	}
	to, err := oci.ParseDestination(destination)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	fmt.Fprintln(o.Err, "packing and writing the image")
	pushed, err := images.Push(ctx, to, o.PushOptions)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; --force replaces it", err)
	}
	if err != nil {
		return err
	}
	o.warnEach("left out: ", pushed.LeftOut)
	return o.emit(pushed, func() {
		fmt.Fprintf(o.Out, "%s\n%s, %d MB\n", terminal.Escape(pushed.Name), versionsOf(pushed.OVS, pushed.OVN), pushed.Size/1e6)
	})
}
