package cmd

import (
	"bufio"
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
)

func newSave(o *options) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "save FILE", Short: "Save what was collected in one file, for a colleague", Args: exactly("FILE"),
		Long: "Save what was collected in one compressed file (tar and zstd), from which load makes the\n" +
			"same working directory elsewhere. Nothing of a running replica is in it. - is standard output.",
		Example: "  ovs-offline save compute1.ovs-offline\n  ovs-offline save - | ssh host ovs-offline load -",
		RunE: func(c *cobra.Command, args []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			if !wd.Exists() {
				return fmt.Errorf("%w: %s is not there; collect something first", bundle.ErrNothing, wd.Path())
			}
			return o.locked(func(wd *workdir.Dir) error { return o.save(c, wd, args[0], force) })
		},
	}
	c.Flags().BoolVar(&force, "force", false, "replace FILE if it is there")
	return c
}

func (o *options) save(c *cobra.Command, wd *workdir.Dir, name string, force bool) error {
	if name == "-" {
		remarks, err := bundle.Save(c.Context(), wd, version, o.Out)
		o.warnAll(remarks)
		return err
	}
	if _, err := os.Lstat(name); err == nil && !force {
		return fmt.Errorf("%s is there already; --force replaces it", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it has its name
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	remarks, err := bundle.Save(c.Context(), wd, version, out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("saving %s: %w", name, err)
	}
	o.warnAll(remarks)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Saved in %s (%d KiB). Elsewhere: ovs-offline load %s\n", terminal.Escape(name), (info.Size()+1023)/1024, shellWord(filepath.Base(name)))
	return nil
}

func (o *options) warnAll(remarks []string) {
	for _, r := range remarks {
		o.warn("%s", r)
	}
}

func newLoad(o *options) *cobra.Command {
	var force bool
	var limits archive.Limits
	c := &cobra.Command{
		Use: "load FILE", Short: "Make a working directory of what save wrote", Args: exactly("FILE"),
		Long: "Make a working directory of what save wrote. Every file is compared with the digest in its\n" +
			"manifest before anything is put in place. - is standard input.",
		Example: "  ovs-offline -w /tmp/compute1 load compute1.ovs-offline\n  ovs-offline -w /tmp/compute1 start",
		RunE: func(c *cobra.Command, args []string) error {
			in := io.Reader(c.InOrStdin())
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return explain(err, args[0])
				}
				defer f.Close()
				in = f
			}
			return o.locked(func(wd *workdir.Dir) error {
				return o.load(c, wd, args[0], interrupt.Pipe(c.Context(), in), force, limits)
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "replace all data that the workdir holds")
	limitFlags(c, &limits)
	return c
}

func (o *options) load(c *cobra.Command, wd *workdir.Dir, name string, in io.Reader, force bool, limits archive.Limits) error {
	if err := collect.Refuse(wd, force, false, workdir.Kinds()...); err != nil {
		return err
	}
	collections, remarks, err := bundle.Load(c.Context(), wd, in, limits)
	if err != nil {
		return fmt.Errorf("loading %s: %w", name, err)
	}
	headline(o.Out, fmt.Sprintf("Offline OVS Debugging: %s loaded into %s", terminal.Escape(filepath.Base(name)), wd.Path()))
	o.warnAll(remarks)
	lost := false
	for _, one := range collections {
		o.printCollection(one)
		lost = lost || len(one.Lost) > 0
	}
	if lost {
		return errIncomplete
	}
	return nil
}
