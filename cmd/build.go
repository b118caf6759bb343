package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/image"
	"ovs-offline/replica/image/build"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process"
)

type buildOptions struct {
	*options
	build.Build
	fromHost bool
}

func newBuild(shared *options) *cobra.Command {
	o := &buildOptions{options: shared}
	command := &cobra.Command{
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
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	command.Flags().BoolVar(&o.fromHost, "from-host", false, "build from the tools installed on this machine")
	command.Flags().StringVarP(&o.Repo, "repo", "r", "", "git URL or folder of OVN's source (default with --commit: "+build.DefaultRepo+")")
	command.Flags().StringVarP(&o.Commit, "commit", "c", "", "commit, tag or branch of OVN's source (default: HEAD of a URL, the files of a folder)")
	command.Flags().BoolVarP(&o.NoCache, "no-cache", "n", false, "don't reuse steps of an earlier build")
	command.Flags().StringVar(&o.Platform, "platform", "", "OS/ARCH to build for, if the engine can (default: its own)")
	command.Flags().StringVarP(&o.Name, "tag", "t", "", "name of the image (default: ovs-offline:ovs-VERSION-ovn-VERSION)")
	o.runtimeFlag(command)
	o.outputFlag(command)
	return command
}

func (o *buildOptions) run(ctx context.Context) error {
	if o.fromHost && (o.Repo != "" || o.Commit != "" || o.NoCache || o.Platform != "") {
		return fault.Usagef("--from-host can't be combined with --repo, --commit, --no-cache or --platform")
	}
	if err := o.Build.Check(); err != nil {
		return err
	}
	if o.runtime == choose.Process {
		return o.compile(ctx)
	}
	connected, err := o.connect(ctx)
	if err != nil {
		return err
	}
	made, err := o.build(ctx, connected)
	if err != nil {
		return err
	}
	o.page().WarnEach("left out: ", made.LeftOut)
	return o.emit(made, func(*show.Page) {
		fmt.Fprintf(o.Out, "%s\nOpen vSwitch %s, OVN %s, %d MB, in %s\n", terminal.Escape(made.Name), terminal.Escape(made.Versions.OVS), terminal.Escape(made.Versions.OVN), made.Size/1e6, made.Engine)
	})
}

// compile compiles the source here, for local processes.
func (o *buildOptions) compile(ctx context.Context) error {
	if !o.FromSource() || o.NoCache || o.Platform != "" {
		return fault.Usagef("for local processes, build takes --repo or --commit, and neither --no-cache nor --platform; other images take --runtime podman or docker")
	}
	if err := process.Supported(); err != nil {
		return err
	}
	store, err := image.OpenStore()
	if err != nil {
		return err
	}
	progress := o.progress()
	added, err := o.Build.Compile(ctx, store, version, progress.step)
	progress.end()
	if err != nil {
		return err
	}
	return printAdded(&o.IO, added)
}

// connect connects to the engine that --runtime chooses.
func (o *buildOptions) connect(ctx context.Context) (engine.Engine, error) {
	if o.runtime == choose.Auto {
		return engine.ConnectAny(ctx)
	}
	return engine.Connect(ctx, o.runtime)
}

func (o *buildOptions) build(ctx context.Context, with engine.Engine) (build.Made, error) {
	if !o.fromHost {
		log := terminal.NewLineWriter(o.Err)
		made, err := o.Build.Run(ctx, with, version, log)
		return made, errors.Join(err, log.Close())
	}
	fmt.Fprintln(o.Err, "collecting the installed tools")
	host, err := build.FromHost(ctx)
	if err != nil {
		return build.Made{}, err
	}
	if err := host.AddSelf(ctx, version); err != nil {
		return build.Made{}, err
	}
	fmt.Fprintf(o.Err, "loading %d MB into %s\n", host.Size()/1e6, with.Name())
	return host.Load(ctx, with, o.Name, version)
}
