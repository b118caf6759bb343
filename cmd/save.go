package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"ovs-offline/internal/bundle"
	"ovs-offline/internal/outfile"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/images"
	"ovs-offline/set"
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
			"The folder of several nodes' working directories is saved as a whole, in one file.\n\n" +
			"With --with-image, it also contains the programs of Open vSwitch and OVN that the running\n" +
			"replica uses, so that a replica elsewhere is run by the same ones.",
		Example: "  ovs-offline save compute1.ovs-offline\n  ovs-offline -w nodes save nodes.ovs-offline\n  ovs-offline save - | ssh host ovs-offline load -",
		RunE: o.oneOrSet(func(c *cobra.Command, args []string) error {
			if wd, err := workdir.Find(o.workdir); err != nil || !wd.Exists() { // locking would create the workdir
				return cmp.Or(err, fmt.Errorf("%w: %s does not exist; collect something first", bundle.ErrNothing, o.workdir))
			}
			return o.withLock(o.run)(c, args)
		}, o.runSet),
	}
	o.nodeFlag(c)
	c.Flags().BoolVar(&o.force, "force", false, "replace FILE if it exists")
	c.Flags().BoolVar(&o.withImage, "with-image", false, "also save the image, or the tools of this host, that the replica runs with")
	return c
}

func (o *saveOptions) run(ctx context.Context, wd *workdir.Dir, args []string) error {
	image, err := o.image(ctx, o.node(), wd)
	if err != nil {
		return err
	}
	return o.write(args[0], image != nil, func(w io.Writer) ([]string, error) { return bundle.Save(ctx, wd, version, image, w) })
}

// runSet saves the nodes of a set in one file. Their workdirs are locked meanwhile.
func (o *saveOptions) runSet(ctx context.Context, s *set.Set, args []string) error {
	nodes, unlock, err := s.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	image, err := o.imageOfSet(ctx, s)
	if err != nil {
		return err
	}
	return o.write(args[0], image != nil, func(w io.Writer) ([]string, error) {
		return bundle.SaveSet(ctx, nodes, version, image, w)
	})
}

// write writes a bundle to the file of that name, or to standard output for "-".
func (o *saveOptions) write(name string, withImage bool, save func(io.Writer) (remarks []string, err error)) error {
	if name == "-" {
		remarks, err := save(o.Out)
		o.warnEach("", remarks)
		return err
	}
	var remarks []string
	size, err := outfile.Write(name, o.force, func(w io.Writer) (err error) {
		remarks, err = save(w)
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; --force replaces it", err)
	}
	if err != nil {
		return err
	}
	o.warnEach("", remarks)
	load := "load"
	if withImage {
		load += " --with-image"
	}
	fmt.Fprintf(o.Out, "Saved in %s (%d KiB). Elsewhere: ovs-offline %s %s\n", terminal.Escape(name), (size+1023)/1024, load, shellWord(filepath.Base(name)))
	return nil
}

// image returns the image to save with a node; nil without --with-image.
func (o *saveOptions) image(ctx context.Context, n *set.Node, wd *workdir.Dir) (*bundle.ImageSource, error) {
	if !o.withImage {
		return nil, nil
	}
	state, err := n.Running(ctx, wd)
	if err != nil {
		return nil, fmt.Errorf("--with-image saves the image of a running replica: %w", err)
	}
	return images.Used(ctx, wd, state)
}

// imageOfSet returns the image in which all replicas of a set run; nil without
// --with-image.
func (o *saveOptions) imageOfSet(ctx context.Context, s *set.Set) (image *bundle.ImageSource, err error) {
	if !o.withImage {
		return nil, nil
	}
	outcomes := set.Each(ctx, s, o.image)
	if errs := failures(outcomes); len(errs) > 0 {
		return nil, worst(errs...)
	}
	first := outcomes[0]
	for _, other := range outcomes[1:] {
		if other.Value.Name != first.Value.Name || other.Value.ID != first.Value.ID {
			return nil, fmt.Errorf("the replicas of %s and %s run in different images, and a file holds one: save them one by one with --node", first.Node.Name, other.Node.Name)
		}
	}
	return first.Value, nil
}
