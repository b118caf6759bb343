package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/engine"
)

// building are the flags of build.
type building struct {
	image.Build
	fromHost bool
	output   string
}

func newBuild(o *options) *cobra.Command {
	var b building
	c := &cobra.Command{
		Use: "build", Short: "Make the container image that a replica runs in", Args: exactly(),
		Long: "Make the container image that a replica runs in: from distribution packages, or with --repo or\n" +
			"--commit from OVN's source and the Open vSwitch that it pins, or with --from-host from the tools\n" +
			"installed here, in seconds and without a network.\n\n" +
			"The image is named ovs-offline, tagged with the OVS and OVN versions inside.",
		Example: "  ovs-offline build --from-host\n  ovs-offline --runtime docker build\n  ovs-offline build --commit branch-24.03",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := b.check(); err != nil {
				return err
			}
			e, err := o.imageEngine(c.Context())
			if err != nil {
				return err
			}
			made, err := o.build(c.Context(), e, b)
			if err != nil {
				return err
			}
			return o.printMade(made, b.output)
		},
	}
	c.Flags().BoolVar(&b.fromHost, "from-host", false, "make it from the tools installed on this machine")
	c.Flags().StringVarP(&b.Repo, "repo", "r", "", "git URL of OVN's source (default with --commit: "+image.DefaultRepo+")")
	c.Flags().StringVarP(&b.Commit, "commit", "c", "", "commit, tag or branch of it")
	c.Flags().BoolVarP(&b.NoCache, "no-cache", "n", false, "use no cached steps of an earlier build")
	c.Flags().StringVar(&b.Platform, "platform", "", "OS/ARCH to build for, where the engine can (default: its own)")
	c.Flags().StringVarP(&b.Name, "tag", "t", "", "name of the image (default: ovs-offline:ovs-VERSION-ovn-VERSION)")
	outputFlag(c, &b.output)
	return c
}

func (b *building) check() error {
	if b.fromHost && (b.Repo != "" || b.Commit != "" || b.NoCache || b.Platform != "") {
		return fmt.Errorf("%w: --from-host takes what is installed here: no --repo, --commit, --no-cache or --platform", errUsage)
	}
	if err := b.Check(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return nil
}

// imageEngine is the engine that the flags name.
func (o *options) imageEngine(ctx context.Context) (*engine.Engine, error) {
	switch o.runtime {
	case choose.Auto:
		return engine.ConnectAny(ctx)
	case choose.Process:
		return nil, fmt.Errorf("%w: local processes need no image; build takes --runtime podman or docker", errUsage)
	}
	return engine.Connect(ctx, o.runtime)
}

func (o *options) build(ctx context.Context, e *engine.Engine, b building) (image.Made, error) {
	if !b.fromHost {
		progress := &escaping{out: o.Err}
		made, err := b.Run(ctx, e, version, progress)
		return made, errors.Join(err, progress.end())
	}
	fmt.Fprintln(o.Err, "collecting the installed tools")
	host, err := image.FromHost(ctx)
	if err != nil {
		return image.Made{}, err
	}
	fmt.Fprintf(o.Err, "loading %d MB into %s\n", host.Size()/1e6, e.Name())
	return host.Load(ctx, e, b.Name, version)
}

func (o *options) printMade(made image.Made, output string) error {
	for _, what := range made.LeftOut {
		o.warn("left out: %s", what)
	}
	return o.emit(output, made, func() {
		fmt.Fprintf(o.Out, "%s\nOpen vSwitch %s, OVN %s, %d MB, in %s\n", terminal.Escape(made.Name), terminal.Escape(made.Versions.OVS), terminal.Escape(made.Versions.OVN), made.Size/1e6, made.Engine)
	})
}

// escaping makes what the steps of a build print safe for a terminal, line by
// line. A line waits for its end: a write may end within a character.
type escaping struct {
	out  io.Writer
	part []byte
}

func (e *escaping) Write(p []byte) (int, error) {
	e.part = append(e.part, p...)
	for {
		line, rest, whole := bytes.Cut(e.part, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if _, err := fmt.Fprintln(e.out, terminal.Escape(string(line))); err != nil {
			return 0, err
		}
		e.part = rest
	}
}

// end prints what has no end of a line.
func (e *escaping) end() error {
	if len(e.part) == 0 {
		return nil
	}
	_, err := e.Write([]byte("\n"))
	return err
}
