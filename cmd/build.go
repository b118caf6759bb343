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
	"ovs-offline/replica/runtime/process"
	"ovs-offline/replica/runtime/process/store"
)

type buildOptions struct {
	*options
	image.Build
	fromHost bool
}

func newBuild(shared *options) *cobra.Command {
	o := &buildOptions{options: shared}
	c := &cobra.Command{
		Use: "build", Short: "Build the image that a replica runs in", Args: exactArgs(),
		Long: "Build the container image that a replica runs in: from distribution packages, or with --repo\n" +
			"or --commit from OVN's source and the Open vSwitch version that it pins, or with --from-host\n" +
			"from the tools installed here, within seconds and without a network.\n\n" +
			"The image is named ovs-offline and tagged with the versions of OVS and OVN in it.\n\n" +
			"With --runtime process, the source is compiled on this machine, as an ordinary user and without\n" +
			"a container, and the result is an image for local processes.\n\n" +
			"\"ovs-offline build\" and \"ovs-offline image build\" are the same.",
		Example: "  ovs-offline image build --from-host\n  ovs-offline --runtime docker image build\n" +
			"  ovs-offline --runtime process image build --commit v24.03.2\n  ovs-offline image build --repo ~/src/ovn",
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	c.Flags().BoolVar(&o.fromHost, "from-host", false, "build from the tools installed on this machine")
	c.Flags().StringVarP(&o.Repo, "repo", "r", "", "git URL or folder of OVN's source (default with --commit: "+image.DefaultRepo+")")
	c.Flags().StringVarP(&o.Commit, "commit", "c", "", "commit, tag or branch of OVN's source (default: HEAD of a URL, the files of a folder)")
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
	if o.runtime == choose.Process {
		return o.compile(ctx)
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

// compile compiles the source here, for local processes.
func (o *buildOptions) compile(ctx context.Context) error {
	if !o.FromSource() || o.NoCache || o.Platform != "" {
		return fmt.Errorf("%w: for local processes, build takes --repo or --commit, and neither --no-cache nor --platform; other images take --runtime podman or docker", errUsage)
	}
	if err := process.Supported(); err != nil {
		return err
	}
	s, err := store.Open()
	if err != nil {
		return err
	}
	p := o.progress()
	i, err := o.Build.Compile(ctx, s, version, p.step)
	p.end()
	if err != nil {
		return err
	}
	return o.printAdded(i)
}

// engine connects to the engine that --runtime chooses.
func (o *buildOptions) engine(ctx context.Context) (*engine.Engine, error) {
	if o.runtime == choose.Auto {
		return engine.ConnectAny(ctx)
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
	if err := host.AddSelf(ctx, version); err != nil {
		return image.Made{}, err
	}
	fmt.Fprintf(o.Err, "loading %d MB into %s\n", host.Size()/1e6, e.Name())
	return host.Load(ctx, e, o.Name, version)
}
