package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/engine"
)

type buildOptions struct {
	*options
	image.Build
	fromHost bool
}

func newBuild(shared *options) *cobra.Command {
	o := &buildOptions{options: shared}
	c := &cobra.Command{
		Use: "build", Short: "Build the container image that a replica runs in", Args: exactArgs(),
		Long: "Build the container image that a replica runs in: from distribution packages, or with --repo\n" +
			"or --commit from OVN's source and the Open vSwitch version that it pins, or with --from-host\n" +
			"from the tools installed here, within seconds and without a network.\n\n" +
			"The image is named ovs-offline and tagged with the versions of OVS and OVN in it.\n\n" +
			"\"ovs-offline build\" and \"ovs-offline image build\" are the same.",
		Example: "  ovs-offline image build --from-host\n  ovs-offline --runtime docker image build\n  ovs-offline image build --commit branch-24.03",
		RunE:    func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	c.Flags().BoolVar(&o.fromHost, "from-host", false, "build from the tools installed on this machine")
	c.Flags().StringVarP(&o.Repo, "repo", "r", "", "git URL of OVN's source (default with --commit: "+image.DefaultRepo+")")
	c.Flags().StringVarP(&o.Commit, "commit", "c", "", "commit, tag or branch of OVN's source")
	c.Flags().BoolVarP(&o.NoCache, "no-cache", "n", false, "don't reuse steps of an earlier build")
	c.Flags().StringVar(&o.Platform, "platform", "", "OS/ARCH to build for, if the engine can (default: its own)")
	c.Flags().StringVarP(&o.Name, "tag", "t", "", "name of the image (default: ovs-offline:ovs-VERSION-ovn-VERSION)")
	o.outputFlag(c)
	return c
}

func (o *buildOptions) run(ctx context.Context) error {
	if o.fromHost && (o.Repo != "" || o.Commit != "" || o.NoCache || o.Platform != "") {
		return fmt.Errorf("%w: --from-host can't be combined with --repo, --commit, --no-cache or --platform", errUsage)
	}
	if err := o.Build.Check(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	e, err := o.engine(ctx)
	if err != nil {
		return err
	}
	made, err := o.build(ctx, e)
	if err != nil {
		return err
	}
	o.warnEach("left out: ", made.LeftOut)
	return o.emit(made, func() {
		fmt.Fprintf(o.Out, "%s\nOpen vSwitch %s, OVN %s, %d MB, in %s\n", terminal.Escape(made.Name), terminal.Escape(made.Versions.OVS), terminal.Escape(made.Versions.OVN), made.Size/1e6, made.Engine)
	})
}

// engine connects to the engine that --runtime chooses.
func (o *buildOptions) engine(ctx context.Context) (*engine.Engine, error) {
	switch o.runtime {
	case choose.Auto:
		return engine.ConnectAny(ctx)
	case choose.Process:
		return nil, fmt.Errorf("%w: local processes need no image; build takes --runtime podman or docker", errUsage)
	}
	return engine.Connect(ctx, o.runtime)
}

func (o *buildOptions) build(ctx context.Context, e *engine.Engine) (image.Made, error) {
	if !o.fromHost {
		log := terminal.NewLineWriter(o.Err)
		made, err := o.Build.Run(ctx, e, version, log)
		return made, errors.Join(err, log.Close())
	}
	fmt.Fprintln(o.Err, "collecting the installed tools")
	host, err := image.FromHost(ctx)
	if err != nil {
		return image.Made{}, err
	}
	fmt.Fprintf(o.Err, "loading %d MB into %s\n", host.Size()/1e6, e.Name())
	return host.Load(ctx, e, o.Name, version)
}
