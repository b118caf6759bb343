package cmd

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica/image"
	"ovs-offline/replica/image/build"
	"ovs-offline/workdir"
	"ovs-offline/workdir/bundle"
)

type loadOptions struct {
	*options
	force     bool
	withImage bool
	limits    archive.Limits
}

func newLoad(shared *options) *cobra.Command {
	o := &loadOptions{options: shared}
	command := &cobra.Command{
		Use: "load FILE", Short: "Make a working directory from a file that save wrote", Args: exactArgs("FILE"),
		Long: "Make a working directory from a file that save wrote. Every file in it is compared with its\n" +
			"digest in the manifest before the working directory is changed. FILE - is standard input.\n\n" +
			"A file of several nodes makes a working directory for each in the folder that -w names;\n" +
			"--node selects some.\n\n" +
			"With --with-image, the image that save --with-image put into the file is added to the images\n" +
			"for local processes, and start uses it. Its programs run on this machine.",
		Example: "  ovs-offline -w /tmp/compute1 load compute1.ovs-offline\n  ovs-offline -w /tmp/compute1 start",
		RunE: func(command *cobra.Command, args []string) error {
			if args[0] != "-" {
				if _, err := archive.Stat(args[0]); err != nil {
					return err
				}
				file, err := interrupt.Open(command.Context(), args[0])
				if err != nil {
					return explain(err, args[0])
				}
				defer file.Close()
				o.In = file
			}
			return o.withLock(o.run)(command, args)
		},
	}
	o.nodeFlag(command)
	command.Flags().BoolVar(&o.force, "force", false, "replace all data in the working directory")
	command.Flags().BoolVar(&o.withImage, "with-image", false, "also add the image in FILE, whose programs a replica runs")
	limitFlags(command, &o.limits)
	return command
}

func (o *loadOptions) run(ctx context.Context, wd *workdir.Dir, args []string) error {
	name := args[0]
	options := collect.LoadOptions{Name: name, Force: o.force, Nodes: o.nodes, Limits: o.limits}
	if o.withImage {
		options.AddImage = func(ctx context.Context, source bundle.Image, archive io.Reader) (string, error) {
			return build.Receive(ctx, source, archive, name)
		}
	}
	loaded, err := collect.Load(ctx, wd, interrupt.Pipe(ctx, o.In), options)
	if err != nil {
		return err
	}
	incomplete := o.withImage && loaded[0].Image == nil
	for _, node := range loaded {
		o.printLoaded(node, name)
		incomplete = incomplete || node.IsIncomplete()
	}
	o.printImage(loaded[0].Loaded, name)
	if loaded[0].Page && name != "-" {
		fmt.Fprintf(o.Out, "%s also holds a page of the case: tar --zstd -xf %s %s\n", terminal.Escape(name), show.Word(name), bundle.PageName)
	}
	return incompleteIf(incomplete)
}

func (o *loadOptions) printLoaded(node collect.LoadedNode, name string) {
	o.page().Headline("Offline OVS Debugging: %s loaded into %s", terminal.Escape(filepath.Base(name)), node.Path)
	o.page().WarnEach("", node.Remarks)
	collect.PrintCollections(o.page(), node.Collections)
}

// printImage prints what became of the image in the file.
func (o *loadOptions) printImage(loaded bundle.Loaded, name string) {
	held := loaded.Image
	switch {
	case held == nil && o.withImage:
		o.page().Warn("%s holds no image: save --with-image puts one into it", name)
	case held == nil:
	case !o.withImage:
		o.page().Warn("%s also holds an image of %s, which was not added: load --with-image adds it, and its programs then run on this machine", name, image.VersionsText(held.OVS, held.OVN))
	case loaded.ImageError != nil:
		o.page().Warn("the image in %s was not added: %v", name, loaded.ImageError)
	default:
		fmt.Fprintf(o.Out, "The image of %s was added, and start uses it\n", image.VersionsText(held.OVS, held.OVN))
	}
}
