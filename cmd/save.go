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
)

type saveOptions struct {
	*options
	force bool
}

func newSave(shared *options) *cobra.Command {
	o := &saveOptions{options: shared}
	c := &cobra.Command{
		Use: "save FILE", Short: "Save the collected data in one file", Args: exactArgs("FILE"),
		Long: "Save the collected data in one compressed file (tar and zstd), from which load makes the\n" +
			"same working directory on another machine. It contains nothing of a running replica.\n" +
			"FILE - is standard output.",
		Example: "  ovs-offline save compute1.ovs-offline\n  ovs-offline save - | ssh host ovs-offline load -",
		RunE: func(c *cobra.Command, args []string) error {
			if wd, err := workdir.Find(o.workdir); err != nil || !wd.Exists() { // locking would create the workdir
				return cmp.Or(err, fmt.Errorf("%w: %s does not exist; collect something first", bundle.ErrNothing, o.workdir))
			}
			return o.withLock(o.run)(c, args)
		},
	}
	c.Flags().BoolVar(&o.force, "force", false, "replace FILE if it exists")
	return c
}

func (o *saveOptions) run(ctx context.Context, wd *workdir.Dir, args []string) error {
	name := args[0]
	if name == "-" {
		remarks, err := bundle.Save(ctx, wd, version, o.Out)
		o.warnEach("", remarks)
		return err
	}
	size, remarks, err := bundle.SaveFile(ctx, wd, version, name, o.force)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; --force replaces it", err)
	}
	if err != nil {
		return err
	}
	o.warnEach("", remarks)
	fmt.Fprintf(o.Out, "Saved in %s (%d KiB). Elsewhere: ovs-offline load %s\n", terminal.Escape(name), (size+1023)/1024, shellWord(filepath.Base(name)))
	return nil
}
