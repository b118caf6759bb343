package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/image"
	"ovs-offline/workdir"
)

func newImage(o *options) *cobra.Command {
	command := &cobra.Command{
		Use: "image", Short: "Add, list, remove, build and push images of Open vSwitch and OVN", Args: cobra.NoArgs,
		Long: "Add, list, remove, build and push the images in which a replica runs, so that it is run by the\n" +
			"node's own versions of Open vSwitch and OVN.\n\n" +
			"Local processes use images that \"image add\" unpacks, without podman or docker. Container\n" +
			"engines use images that \"image build\" makes.",
		Example: "  ovs-offline image add docker.io/kubeovn/kube-ovn:v1.13.0\n  ovs-offline image list",
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newImageAdd(o), newImageList(o), newImageRemove(o), newImagePush(o), newBuild(o))
	return command
}

type imageAddOptions struct {
	*options
	image.AddOptions
}

func newImageAdd(shared *options) *cobra.Command {
	o := &imageAddOptions{options: shared}
	command := &cobra.Command{
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
		RunE: func(command *cobra.Command, args []string) error { return o.run(command.Context(), args[0]) },
	}
	command.Flags().StringVarP(&o.Name, "tag", "t", "", "name of the image")
	o.Limits = image.DefaultLimits()
	sizeFlag(command, &o.Limits.Bytes, "max-size", "refuse an image that is larger when unpacked")
	o.runtimeFlag(command)
	o.outputFlag(command)
	return command
}

func (o *imageAddOptions) run(ctx context.Context, source string) error {
	if o.runtime != choose.Auto && o.runtime != choose.Process {
		return fault.Usagef("image add is for local processes; in %s, pull the image and name it with start --image", o.runtime)
	}
	store, err := image.OpenStore()
	if err != nil {
		return err
	}
	progress := o.progress()
	o.Progress = progress.bytes
	o.Renamed = func(before, now string) { o.page().Warn("the image that was named %s is named %s now", before, now) }
	added, err := store.Add(ctx, source, o.AddOptions)
	progress.end()
	if err != nil {
		return err
	}
	return printAdded(&o.IO, added)
}

// printAdded prints an image that was added for local processes.
func printAdded(out *IO, added image.Image) error {
	out.page().WarnEach("", added.Remarks)
	return out.emit(added, func(*show.Page) {
		fmt.Fprintf(out.Out, "%s\n%s, %d MB, in %s\n", terminal.Escape(added.Name), image.VersionsText(added.OVS, added.OVN), added.Size/1e6, terminal.Escape(added.Root))
	})
}

func newImageList(o *options) *cobra.Command {
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the images in which a replica can run", Args: exactArgs(),
		Long: "List the images in which a replica can run: images that \"image add\" unpacked for local\n" +
			"processes, and images that \"image build\" made in podman and docker, as far as these answer.",
		Example: "  ovs-offline image list\n  ovs-offline --runtime process image list -o json | jq -r '.[].name'",
		RunE: func(command *cobra.Command, _ []string) error {
			all, err := listImages(command.Context(), o.runtime)
			if all == nil {
				return err
			}
			return errors.Join(o.emit(all, func(page *show.Page) { image.PrintList(page, all) }), err)
		},
	}
	o.runtimeFlag(command)
	o.outputFlag(command)
	return command
}

// listImages returns the images of the runtimes that --runtime selects.
func listImages(ctx context.Context, runtime string) ([]image.Listed, error) {
	roots, err := replica.Roots()
	if err != nil {
		return nil, err
	}
	return image.List(ctx, runtime, roots)
}

type imageRemoveOptions struct {
	*options
	force bool
}

func newImageRemove(shared *options) *cobra.Command {
	o := &imageRemoveOptions{options: shared}
	command := &cobra.Command{
		Use: "rm NAME...", Aliases: []string{"remove"}, Short: "Remove images", ValidArgsFunction: completeImages(&o.runtime),
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("rm takes the NAME of each image")
			}
			return nil
		},
		Long: "Remove images, by their names or IDs. An image in which a replica runs is kept, unless --force\n" +
			"stops that replica.",
		Example: "  ovs-offline image rm ovs-3.5.0-ovn-25.03.0\n  ovs-offline --runtime podman image rm --force ovs-offline:ovs-3.1.0-ovn-23.03.1",
		RunE:    func(command *cobra.Command, args []string) error { return o.run(command.Context(), args) },
	}
	o.runtimeFlag(command)
	command.Flags().BoolVarP(&o.force, "force", "f", false, "stop the replicas that run in the image")
	return command
}

func (o *imageRemoveOptions) run(ctx context.Context, names []string) error {
	all, listed := listImages(ctx, o.runtime)
	var stop func(path string) error
	if o.force {
		stop = func(path string) error { return stopReplica(ctx, path) }
	}
	var failed []error
	for _, name := range names {
		removed, err := image.Remove(ctx, all, name, stop)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(o.Out, "removed %s\n", terminal.Escape(removed.Name))
	}
	if len(failed) > 0 {
		return errors.Join(append(failed, listed)...)
	}
	return nil
}

// stopReplica stops the replica of the workdir at path.
func stopReplica(ctx context.Context, path string) error {
	wd, err := workdir.Lock(path)
	if err != nil {
		return err
	}
	defer wd.Unlock()
	return replica.Stop(ctx, wd, runtimes()(wd).All(ctx)...)
}

// completeImages returns the function that completes the names of the images that are not on the
// command line yet. It returns nothing on error: completion must stay silent.
func completeImages(runtime *string) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		all, _ := listImages(command.Context(), *runtime)
		var names []string
		for _, listed := range all {
			if show.IsPlain(listed.Name) && !slices.Contains(args, listed.Name) {
				names = append(names, listed.Name+"\t"+image.VersionsText(listed.OVS, listed.OVN)+", "+listed.Runtime)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
