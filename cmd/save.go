package cmd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/outfile"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica/set"
	"ovs-offline/workdir"
	"ovs-offline/workdir/anonymise"
	"ovs-offline/workdir/bundle"
)

type saveOptions struct {
	*options
	force     bool
	withImage bool
	withPage  bool
	anonymise bool
	questions string // the file of --trace
}

func newSave(shared *options) *cobra.Command {
	o := &saveOptions{options: shared}
	command := &cobra.Command{
		Use: "save FILE", Short: "Save the collected data in one file", Args: exactArgs("FILE"),
		Long: "Save the collected data in one compressed file (tar and zstd), from which load makes the\n" +
			"same working directory on another machine. It contains nothing of a running replica.\n" +
			"FILE - is standard output.\n\n" +
			"The folder of several nodes' working directories is saved as a whole, in one file.\n\n" +
			"With --with-image, it also contains the programs of Open vSwitch and OVN that the running\n" +
			"replica uses, so that a replica elsewhere is run by the same ones.\n\n" +
			"With --with-page, it also contains the page of the case that report -o html writes, as\n" +
			bundle.PageName + ": a person without ovs-offline unpacks it with tar --zstd -xf FILE " + bundle.PageName + ".\n\n" +
			"With --anonymise, names, addresses, MAC addresses and UUIDs are replaced, everywhere in the same way,\n" +
			"so that the data gives the same answers. FILE" + anonymise.MapSuffix + " has what was replaced: keep it. What can't be\n" +
			"replaced is left out, and listed.",
		Example: "  ovs-offline save compute1.ovs-offline\n  ovs-offline -w nodes save nodes.ovs-offline\n  ovs-offline save - | ssh host ovs-offline load -\n  ovs-offline -w nodes save --anonymise case.ovs-offline",
		RunE:    o.withNodes(o.run),
	}
	o.nodeFlag(command)
	command.Flags().BoolVar(&o.force, "force", false, forceFileUsage)
	command.Flags().BoolVar(&o.withImage, "with-image", false, "also save the image, or the tools of this host, that the replica runs with")
	command.Flags().BoolVar(&o.withPage, "with-page", false, "also save the page of the case, as report -o html writes it")
	command.Flags().StringVar(&o.questions, "trace", "", "with --with-page: also ask the questions in this `FILE`, as trace --file does; - is standard input")
	command.Flags().BoolVar(&o.anonymise, "anonymise", false, "replace names, addresses, MAC addresses and UUIDs, and write FILE"+anonymise.MapSuffix+" with the originals")
	o.runtimeFlag(command)
	return command
}

// run saves the nodes in one file. Their workdirs are locked meanwhile.
func (o *saveOptions) run(ctx context.Context, selected *set.Set, args []string) error {
	if wd, err := workdir.Find(o.workdir); err != nil || !wd.Exists() { // locking would create the workdir
		return cmp.Or(err, fmt.Errorf("%w: %s does not exist; collect something first", bundle.ErrNothing, o.workdir))
	}
	if o.anonymise && (o.withPage || args[0] == "-") {
		return fault.Usagef("--anonymise needs a FILE, beside which the map of the names is written, and takes no --with-page: a page has the names")
	}
	page, incomplete, err := o.casePage(ctx, selected)
	if err != nil {
		return err
	}
	nodes, unlock, err := selected.LockToRead()
	if err != nil {
		return err
	}
	defer unlock()
	extras := bundle.Extras{Page: page}
	if o.withImage {
		if extras.Image, err = selected.Image(ctx); err != nil {
			return err
		}
	}
	save := func(nodes []bundle.Workdir, put putter) error {
		return o.write(args[0], put, func(w io.Writer) ([]string, error) {
			if selected.Alone() {
				return bundle.Save(ctx, nodes[0].Dir, version, extras, w)
			}
			return bundle.SaveSet(ctx, nodes, version, extras, w)
		})
	}
	if o.anonymise {
		return o.saveAnonymised(ctx, args[0], nodes, save)
	}
	return worst(save(nodes, outfile.Write), incomplete)
}

// putter writes a file with what write writes, and returns its size.
type putter = func(name string, replace bool, write func(io.Writer) error) (size int64, err error)

// saveAnonymised saves copies of the nodes with other names, and the map of these.
func (o *saveOptions) saveAnonymised(ctx context.Context, name string, nodes []bundle.Workdir, save func([]bundle.Workdir, putter) error) error {
	progress := o.progress()
	defer progress.end()
	return anonymise.With(ctx, nodes, func(text string) { progress.print("%s", text) }, func(made *anonymise.Result) error {
		progress.end()
		if err := save(made.Nodes, made.Map.Save); err != nil {
			return err
		}
		o.page().WarnEach("", made.Remarks)
		o.page().Printf("%s has the names and addresses that were replaced: keep it, and do not send it along\n", show.Word(name+anonymise.MapSuffix))
		return nil
	})
}

// casePage returns the page of the case, nil without --with-page, and an error for what it lacks because something
// could not be read.
func (o *saveOptions) casePage(ctx context.Context, selected *set.Set) (text []byte, incomplete, err error) {
	if !o.withPage {
		if o.questions != "" {
			err = fault.Usagef("--trace goes with --with-page")
		}
		return nil, nil, err
	}
	made, err := o.makePage(ctx, selected, o.questions)
	if err != nil {
		return nil, nil, err
	}
	var page bytes.Buffer
	err = made.Write(&page)
	return page.Bytes(), incompleteIf(made.Failed()), err
}

// write writes a bundle to the file of that name with put, or to standard output for "-".
func (o *saveOptions) write(name string, put putter, save func(io.Writer) (remarks []string, err error)) error {
	if name == "-" {
		remarks, err := save(o.Out)
		o.page().WarnEach("", remarks)
		return err
	}
	var remarks []string
	size, err := put(name, o.force, func(w io.Writer) (err error) {
		remarks, err = save(w)
		return err
	})
	if err != nil {
		return adviseForce(err)
	}
	o.page().WarnEach("", remarks)
	load := "load"
	if o.withImage {
		load += " --with-image"
	}
	fmt.Fprintf(o.Out, "Saved in %s (%d KiB). Elsewhere: ovs-offline %s %s\n", terminal.Escape(name), (size+1023)/1024, load, show.Word(filepath.Base(name)))
	return nil
}
