package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/activate"
)

// completeFlags registers the completions of every command's flags, and disables file
// name completion for commands without arguments.
func completeFlags(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("workdir", completeWorkdirs)
	_ = root.RegisterFlagCompletionFunc("runtime", cobra.FixedCompletions(runtimeNames(), cobra.ShellCompDirectiveNoFileComp))
	disableFiles(root)
}

func disableFiles(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if c.ValidArgsFunction == nil && c.Use == c.Name() {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		disableFiles(c)
	}
}

// completeWorkdirs returns the working directories of running replicas.
func completeWorkdirs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	list, err := replica.List()
	if err != nil || len(list) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	var found []string
	for _, l := range list {
		found = append(found, l.Workdir+"\t"+terminal.Escape(strings.Join(l.Hosts, ", ")))
	}
	return found, cobra.ShellCompDirectiveDefault
}

// completeNames returns the bridges and ports of the workdir's replica. It returns
// nothing on error: completion must stay silent.
func (o *options) completeNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var found []string
	if wd, err := workdir.Find(o.workdir); err == nil {
		if r, err := replica.Report(wd); err == nil {
			for _, p := range r.Ports {
				found = append(found, p.Bridge, p.Port)
			}
		}
	}
	// A name that a shell would expand is not offered.
	found = slices.DeleteFunc(found, func(name string) bool { return !plainWord.MatchString(name) })
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
