package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/bundle"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/images"
)

type loadOptions struct {
	*options
	force     bool
	withImage bool
	limits    archive.Limits
}

func newLoad(shared *options) *cobra.Command {
	o := &loadOptions{options: shared}
	c := &cobra.Command{
		Use: "load FILE", Short: "Make a working directory from a file that save wrote", Args: exactArgs("FILE"),
		Long: "Make a working directory from a file that save wrote. Every file in it is compared with its\n" +
			"digest in the manifest before the working directory is changed. FILE - is standard input.\n\n" +
			"With --with-image, the image that save --with-image put into the file is added to the images\n" +
			"for local processes, and start uses it. Its programs run on this machine.",
		Example: "  ovs-offline -w /tmp/compute1 load compute1.ovs-offline\n  ovs-offline -w /tmp/compute1 start",
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] != "-" {
				if _, err := archive.Stat(args[0]); err != nil {
					return err
				}
				f, err := os.Open(args[0])
				if err != nil {
					return explain(err, args[0])
				}
				defer f.Close()
				o.In = f
			}
			return o.withLock(o.run)(c, args)
		},
	}
	c.Flags().BoolVar(&o.force, "force", false, "replace all data in the working directory")
	c.Flags().BoolVar(&o.withImage, "with-image", false, "also add the image in FILE, whose programs a replica runs")
	limitFlags(c, &o.limits)
	return c
}

func (o *loadOptions) run(ctx context.Context, wd *workdir.Dir, args []string) error {
	name := args[0]
	if err := collect.Refuse(wd, o.force, false, workdir.Kinds()...); err != nil {
		return err
	}
	var add bundle.AddImage
	if o.withImage {
		add = func(ctx context.Context, i bundle.Image, archive io.Reader) (string, error) {
			return images.Receive(ctx, i, archive, name)
		}
	}
	loaded, err := bundle.Load(ctx, wd, interrupt.Pipe(ctx, o.In), o.limits, add)
	if err != nil {
		return fmt.Errorf("loading %s: %w", name, err)
	}
	o.headline("Offline OVS Debugging: %s loaded into %s", terminal.Escape(filepath.Base(name)), wd.Path())
	o.warnEach("", loaded.Remarks)
	o.printCollections(loaded.Collections)
	o.printImage(loaded, name)
	return incompleteIf(hasLost(loaded.Collections) || loaded.ImageError != nil || o.withImage && loaded.Image == nil)
}

// printImage prints what became of the image in the file.
func (o *loadOptions) printImage(loaded bundle.Loaded, name string) {
	i := loaded.Image
	switch {
	case i == nil && o.withImage:
		o.warn("%s holds no image: save --with-image puts one into it", name)
	case i == nil:
	case !o.withImage:
		o.warn("%s also holds an image of %s, which was not added: load --with-image adds it, and its programs then run on this machine", name, versionsOf(i.OVS, i.OVN))
	case loaded.ImageError != nil:
		o.warn("the image in %s was not added: %v", name, loaded.ImageError)
	default:
		fmt.Fprintf(o.Out, "The image of %s was added, and start uses it\n", versionsOf(i.OVS, i.OVN))
	}
}
