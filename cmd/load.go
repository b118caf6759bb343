package cmd

import (
	"context"
	"fmt"
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

type loadOptions struct {
	*options
	force  bool
	limits archive.Limits
}

func newLoad(shared *options) *cobra.Command {
	o := &loadOptions{options: shared}
	c := &cobra.Command{
		Use: "load FILE", Short: "Make a working directory from a file that save wrote", Args: exactArgs("FILE"),
		Long: "Make a working directory from a file that save wrote. Every file in it is compared with its\n" +
			"digest in the manifest before the working directory is changed. FILE - is standard input.",
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
	limitFlags(c, &o.limits)
	return c
}

func (o *loadOptions) run(ctx context.Context, wd *workdir.Dir, args []string) error {
	name := args[0]
	if err := collect.Refuse(wd, o.force, false, workdir.Kinds()...); err != nil {
		return err
	}
	collections, remarks, err := bundle.Load(ctx, wd, interrupt.Pipe(ctx, o.In), o.limits)
	if err != nil {
		return fmt.Errorf("loading %s: %w", name, err)
	}
	o.headline("Offline OVS Debugging: %s loaded into %s", terminal.Escape(filepath.Base(name)), wd.Path())
	o.warnEach("", remarks)
	o.printCollections(collections)
	return incompleteIf(hasLost(collections))
}
