package cmd

import (
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/replica"
	"ovs-offline/replica/runtime/auto"
)

// completeFlags says what a shell may complete for the flags of every command.
func completeFlags(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("workdir", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		list, err := replica.List()
		if err != nil || len(list) == 0 {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		var found []string
		for _, l := range list {
			found = append(found, l.Workdir+"\t"+escape(strings.Join(l.Hosts, ", ")))
		}
		return found, cobra.ShellCompDirectiveDefault
	})
	_ = root.RegisterFlagCompletionFunc("runtime", cobra.FixedCompletions(auto.Names(), cobra.ShellCompDirectiveNoFileComp))
}
