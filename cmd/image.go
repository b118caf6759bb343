package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica/images"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/process/store"
)

func newImage(o *options) *cobra.Command {
	c := &cobra.Command{
		Use: "image", Short: "Add, list, remove, build and push images of Open vSwitch and OVN", Args: cobra.NoArgs,
		Long: "Add, list, remove, build and push the images in which a replica runs, so that it is run by the\n" +
			"node's own versions of Open vSwitch and OVN.\n\n" +
			"Local processes use images that \"image add\" unpacks, without podman or docker. Container\n" +
			"engines use images that \"image build\" makes.",
		Example: "  ovs-offline image add docker.io/kubeovn/kube-ovn:v1.13.0\n  ovs-offline image list",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newImageAdd(o), newImageList(o), newImageRemove(o), newImagePush(o), newBuild(o))
	return c
}

type imageAddOptions struct {
	*options
	store.AddOptions
}

func newImageAdd(shared *options) *cobra.Command {
	o := &imageAddOptions{options: shared}
	c := &cobra.Command{
		Use: "add SOURCE", Short: "Add an image in which local processes can run a replica", Args: exactArgs("SOURCE"),
		Long: "Add an image in which local processes can run a replica, without podman or docker. Its files\n" +
			"are unpacked once, below $XDG_DATA_HOME/ovs-offline/images or ~/.local/share/ovs-offline/images.\n\n" +
			"SOURCE is one of:\n" +
			"  REGISTRY/NAME:TAG, docker://REFERENCE   an image in a registry; credentials of docker login\n" +
			"                                          or podman login are used\n" +
			"  FILE, docker-archive:FILE[:REFERENCE]   a file of docker save or podman save\n" +
			"  FILE, oci-archive:FILE[:NAME]           a tar of an OCI layout; both may be compressed\n" +
			"  DIR, oci:DIR[:NAME]                     an OCI layout\n" +
			"  DIR, dir:DIR                            a directory that holds a root file system\n\n" +
			"The image is named after its reference, or else after the versions of OVS and OVN in it.",
		Example: "  ovs-offline image add docker.io/kubeovn/kube-ovn:v1.13.0\n" +
			"  podman save IMAGE | gzip >ovn.tar.gz && ovs-offline image add ovn.tar.gz -t ovn-25.03\n" +
			"  ovs-offline image add /srv/roots/trixie",
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	c.Flags().StringVarP(&o.Name, "tag", "t", "", "name of the image")
	o.Limits = store.DefaultLimits()
	c.Flags().Int64Var(&o.Limits.Bytes, "max-size", o.Limits.Bytes, "refuse an image that is larger when unpacked, in bytes")
	o.outputFlag(c)
	return c
}

func (o *imageAddOptions) run(ctx context.Context, source string) error {
	if o.runtime != choose.Auto && o.runtime != choose.Process {
		return fmt.Errorf("%w: image add is for local processes; in %s, pull the image and name it with start --image", errUsage, o.runtime)
	}
	s, err := store.Open()
	if err != nil {
		return err
	}
	p := o.progress()
	o.Progress = p.bytes
	o.Renamed = func(before, now string) { o.warn("the image that was named %s is named %s now", before, now) }
	i, err := s.Add(ctx, source, o.AddOptions)
	p.end()
	if errors.Is(err, store.ErrName) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if err != nil {
		return err
	}
	return o.printAdded(i)
}

// printAdded prints an image that was added for local processes.
func (o *options) printAdded(i store.Image) error {
	o.warnEach("", i.Remarks)
	return o.emit(i, func() {
		fmt.Fprintf(o.Out, "%s\n%s, %d MB, in %s\n", terminal.Escape(i.Name), versionsOf(i.OVS, i.OVN), i.Size/1e6, terminal.Escape(i.Root))
	})
}

// versionsOf returns the versions in an image, for people.
func versionsOf(ovs, ovn string) string {
	text := "Open vSwitch " + terminal.Escape(ovs)
	if ovn != "" {
		text += ", OVN " + terminal.Escape(ovn)
	}
	return text
}

func newImageList(o *options) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the images in which a replica can run", Args: exactArgs(),
		Long: "List the images in which a replica can run: those that \"image add\" unpacked for local\n" +
			"processes, and those that \"image build\" made in podman and docker, as far as these answer.",
		Example: "  ovs-offline image list\n  ovs-offline --runtime process image list -o json | jq -r '.[].name'",
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := images.List(c.Context(), o.runtime)
			if all == nil {
				return err
			}
			return errors.Join(o.emit(all, func() { o.printImages(all) }), err)
		},
	}
	o.outputFlag(c)
	return c
}

func (o *options) printImages(all []images.Image) {
	if len(all) == 0 {
		fmt.Fprintln(o.Out, "There are no images: ovs-offline image add and ovs-offline image build make some.")
		return
	}
	t := o.newTable("name", "runtime", "OVS", "OVN", "size", "used by")
	for _, i := range all {
		t.AppendRow(table.Row{terminal.Escape(i.Name), i.Runtime, terminal.Escape(i.OVS), terminal.Escape(i.OVN), fmt.Sprintf("%d MB", i.Size/1e6), terminal.Escape(strings.Join(i.UsedBy, "\n"))})
	}
	t.Render()
}

func newImageRemove(o *options) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "rm NAME...", Aliases: []string{"remove"}, Short: "Remove images", ValidArgsFunction: o.completeImages,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("rm takes the NAME of each image")
			}
			return nil
		},
		Long: "Remove images, by their names or IDs. An image in which a replica runs is kept, unless --force\n" +
			"stops that replica.",
		Example: "  ovs-offline image rm ovs-3.5.0-ovn-25.03.0\n  ovs-offline --runtime podman image rm --force ovs-offline:ovs-3.1.0-ovn-23.03.1",
		RunE:    func(c *cobra.Command, args []string) error { return o.removeImages(c.Context(), args, force) },
	}
	c.Flags().BoolVarP(&force, "force", "f", false, "stop the replicas that run in the image")
	return c
}

func (o *options) removeImages(ctx context.Context, names []string, force bool) error {
	all, listed := images.List(ctx, o.runtime)
	var failed []error
	for _, name := range names {
		i, err := images.Remove(ctx, all, name, force, version)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(o.Out, "removed %s\n", terminal.Escape(i.Name))
	}
	if len(failed) > 0 {
		return errors.Join(append(failed, listed)...)
	}
	return nil
}

// completeImages returns the names of the images that are not on the command line yet.
// It returns nothing on error: completion must stay silent.
func (o *options) completeImages(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	all, _ := images.List(c.Context(), o.runtime)
	var names []string
	for _, i := range all {
		if plainWord.MatchString(i.Name) && !slices.Contains(args, i.Name) {
			names = append(names, i.Name+"\t"+versionsOf(i.OVS, i.OVN)+", "+i.Runtime)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
