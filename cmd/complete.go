package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/activate"
	"ovs-offline/replica/runtime/choose"
)

// completeFlags says what a shell may complete for the flags of every command,
// and that nothing follows a command that takes nothing.
func completeFlags(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("workdir", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		list, err := replica.List()
		if err != nil || len(list) == 0 {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		var found []string
		for _, l := range list {
			found = append(found, l.Workdir+"\t"+terminal.Escape(strings.Join(l.Hosts, ", ")))
		}
		return found, cobra.ShellCompDirectiveDefault
	})
	_ = root.RegisterFlagCompletionFunc("runtime", cobra.FixedCompletions(choose.Names(), cobra.ShellCompDirectiveNoFileComp))
	for _, c := range root.Commands() {
		if c.ValidArgsFunction == nil && c.Use == c.Name() {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

// completeNames completes the names of the bridges and ports of the workdir's
// replica.
func (o *options) completeNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var found []string
	if wd, err := workdir.Find(o.workdir); err == nil {
		if r, err := replica.Report(wd); err == nil {
			for _, p := range r.Ports {
				found = append(found, p.Bridge, p.Port)
			}
		}
	}
	// A name that a shell would make something else of is left to the user.
	found = slices.DeleteFunc(found, func(name string) bool { return !plainWord.MatchString(name) })
	slices.Sort(found)
	return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
}

// completeTools completes the tool that exec runs, and files as its arguments.
func completeTools(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return activate.Tools(), cobra.ShellCompDirectiveNoFileComp
}
