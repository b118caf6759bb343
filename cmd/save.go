package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"ovs-offline/internal/bundle"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/images"
)

type saveOptions struct {
	*options
	force     bool
	withImage bool
}

func newSave(shared *options) *cobra.Command {
	o := &saveOptions{options: shared}
	c := &cobra.Command{
		Use: "save FILE", Short: "Save the collected data in one file", Args: exactArgs("FILE"),
		Long: "Save the collected data in one compressed file (tar and zstd), from which load makes the\n" +
			"same working directory on another machine. It contains nothing of a running replica.\n" +
			"FILE - is standard output.\n\n" +
			"With --with-image, it also contains the programs of Open vSwitch and OVN that the running\n" +
			"replica uses, so that a replica elsewhere is run by the same ones.",
		Example: "  ovs-offline save compute1.ovs-offline\n  ovs-offline save - | ssh host ovs-offline load -",
		RunE: o.oneOrSet(func(c *cobra.Command, args []string) error {
			if wd, err := workdir.Find(o.workdir); err != nil || !wd.Exists() { // locking would create the workdir
				return cmp.Or(err, fmt.Errorf("%w: %s does not exist; collect something first", bundle.ErrNothing, o.workdir))
			}
			return o.withLock(o.run)(c, args)
		}, refuseSet),
	}
	c.Flags().BoolVar(&o.force, "force", false, "replace FILE if it exists")
	c.Flags().BoolVar(&o.withImage, "with-image", false, "also save the image, or the tools of this host, that the replica runs with")
	return c
}

func (o *saveOptions) run(ctx context.Context, wd *workdir.Dir, args []string) error {
	name := args[0]
	image, err := o.image(ctx, wd)
	if err != nil {
		return err
	}
	if name == "-" {
		remarks, err := bundle.Save(ctx, wd, version, image, o.Out)
		o.warnEach("", remarks)
		return err
	}
	size, remarks, err := bundle.SaveFile(ctx, wd, version, image, name, o.force)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; --force replaces it", err)
	}
	if err != nil {
		return err
	}
	o.warnEach("", remarks)
	load := "load"
	if image != nil {
		load += " --with-image"
	}
	fmt.Fprintf(o.Out, "Saved in %s (%d KiB). Elsewhere: ovs-offline %s %s\n", terminal.Escape(name), (size+1023)/1024, load, shellWord(filepath.Base(name)))
	return nil
}

// image returns the image to save; nil without --with-image.
func (o *saveOptions) image(ctx context.Context, wd *workdir.Dir) (*bundle.ImageSource, error) {
	if !o.withImage {
		return nil, nil
	}
	state, err := o.running(ctx, wd)
	if err != nil {
		return nil, fmt.Errorf("--with-image saves the image of a running replica: %w", err)
	}
	return images.Used(ctx, wd, state)
}
