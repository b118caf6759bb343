package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
	"ovs-offline/replica/activate"
	"ovs-offline/workdir"
)

// completeFlags registers the completions of every command's flags, and disables file
// name completion for commands without arguments.
func completeFlags(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("workdir", completeWorkdirs)
	_ = root.RegisterFlagCompletionFunc("runtime", cobra.FixedCompletions(runtimeNames(), cobra.ShellCompDirectiveNoFileComp))
	disableFiles(root)
}

func disableFiles(parent *cobra.Command) {
	for _, command := range parent.Commands() {
		if command.ValidArgsFunction == nil && command.Use == command.Name() {
			command.ValidArgsFunction = cobra.NoFileCompletions
		}
		disableFiles(command)
	}
}

// completeWorkdirs returns the working directories of running replicas.
func completeWorkdirs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	list, err := replica.List()
	if err != nil || len(list) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	var found []string
	for _, listed := range list {
		found = append(found, listed.Workdir+"\t"+terminal.Escape(strings.Join(listed.Hosts, ", ")))
	}
	return found, cobra.ShellCompDirectiveDefault
}

// completeNames returns the bridges and ports of the workdir's replica. It returns
// nothing on error: completion must stay silent.
func (o *options) completeNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var found []string
	if wd, err := workdir.Find(o.workdir); err == nil {
		if report, err := replica.Report(wd); err == nil {
			for _, port := range report.Ports {
				found = append(found, port.Bridge, port.Port)
			}
		}
	}
	// A name that a shell would expand is not offered.
	found = slices.DeleteFunc(found, func(name string) bool { return !show.IsPlain(name) })
	slices.Sort(found)
	return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
}

// completeTools returns the tools that exec runs, and files as their arguments.
func completeTools(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return activate.Tools(), cobra.ShellCompDirectiveNoFileComp
}
