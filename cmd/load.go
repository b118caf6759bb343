package cmd

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/bundle"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/images"
	"ovs-offline/set"
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
			"A file of several nodes makes a working directory for each in the folder that -w names;\n" +
			"--node selects some.\n\n" +
			"With --with-image, the image that save --with-image put into the file is added to the images\n" +
			"for local processes, and start uses it. Its programs run on this machine.",
		Example: "  ovs-offline -w /tmp/compute1 load compute1.ovs-offline\n  ovs-offline -w /tmp/compute1 start",
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] != "-" {
				if _, err := archive.Stat(args[0]); err != nil {
					return err
				}
				f, err := interrupt.Open(c.Context(), args[0])
				if err != nil {
					return explain(err, args[0])
				}
				defer f.Close()
				o.In = f
			}
			return o.withLock(o.run)(c, args)
		},
	}
	o.nodeFlag(c)
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
	b, err := bundle.Open(ctx, interrupt.Pipe(ctx, o.In), o.limits)
	if err != nil {
		return fmt.Errorf("loading %s: %w", name, err)
	}
	defer b.Close()
	if nodes := b.Nodes(); nodes != nil {
		return o.loadSet(wd, b, name)
	}
	if err := o.checkSingle(wd); err != nil {
		return err
	}
	loaded, err := b.Load(wd, o.add(name))
	if err != nil {
		return fmt.Errorf("loading %s: %w", name, err)
	}
	o.printLoaded(loaded, name, wd.Path())
	o.printImage(loaded, name)
	return o.lacking(loaded)
}

// add returns the function that adds the image in a file; nil without --with-image.
func (o *loadOptions) add(name string) bundle.AddImage {
	if !o.withImage {
		return nil
	}
	return func(ctx context.Context, i bundle.Image, archive io.Reader) (string, error) {
		return images.Receive(ctx, i, archive, name)
	}
}

// checkSingle returns an error for a workdir or a flag that a file of one node is not for.
func (o *loadOptions) checkSingle(wd *workdir.Dir) error {
	s, err := set.Open(wd.Path(), version, nil)
	switch {
	case err != nil:
		return err
	case s != nil:
		return fmt.Errorf("%w: %s holds the working directories of several nodes; load this one beside them, into -w %s", errUsage, wd.Path(), shellWord(filepath.Join(wd.Path(), "NODE")))
	case len(o.nodes) > 0:
		return fmt.Errorf("%w: --node selects from a file of several nodes, and this one holds one", errUsage)
	}
	return nil
}

// loadSet loads the nodes of a file of several, each into a workdir of its own.
func (o *loadOptions) loadSet(folder *workdir.Dir, b *bundle.Reader, name string) error {
	if folder.Used() {
		return fmt.Errorf("%w: %s is the working directory of a node, and %s holds several; choose another folder with -w", errUsage, folder.Path(), name)
	}
	names, err := set.Select(b.Nodes(), o.nodes)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errUsage, name, err)
	}
	var nodes []bundle.Node
	defer func() {
		for _, n := range nodes {
			n.Dir.RemoveIfEmpty() // after an error
			n.Dir.Unlock()
		}
	}()
	for _, n := range names {
		wd, err := workdir.Lock(filepath.Join(folder.Path(), n))
		if err != nil {
			return err
		}
		nodes = append(nodes, bundle.Node{Name: n, Dir: wd})
		if err := collect.Refuse(wd, o.force, false, workdir.Kinds()...); err != nil {
			return err
		}
	}
	loaded, err := b.LoadSet(folder, nodes, o.add(name))
	if err != nil {
		return fmt.Errorf("loading %s: %w", name, err)
	}
	var errs []error
	for i, l := range loaded {
		o.printLoaded(l, name, nodes[i].Dir.Path())
		errs = append(errs, o.lacking(l))
	}
	o.printImage(loaded[0], name)
	return worst(errs...)
}

func (o *loadOptions) printLoaded(loaded bundle.Loaded, name, path string) {
	o.headline("Offline OVS Debugging: %s loaded into %s", terminal.Escape(filepath.Base(name)), path)
	o.warnEach("", loaded.Remarks)
	o.printCollections(loaded.Collections)
}

// lacking returns errIncomplete if a part of the file is missing or was not loaded.
func (o *loadOptions) lacking(loaded bundle.Loaded) error {
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
