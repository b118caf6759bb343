package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica/linux"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
	"ovs-offline/workdir/netns"
)

// netnsFlag adds the flag --netns to a command that runs programs.
func (o *options) netnsFlag(command *cobra.Command, name *string) {
	command.Flags().StringVar(name, "netns", "", "run it in this restored network namespace of the node; \"node\" is the node's own")
	_ = command.RegisterFlagCompletionFunc("netns", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return namespacesOf(o.workdir), cobra.ShellCompDirectiveNoFileComp
	})
}

// namespacesOf returns the names of the network namespaces that were recorded.
func namespacesOf(path string) (names []string) {
	wd, err := workdir.Find(path)
	if err != nil {
		return nil
	}
	list, err := netns.Read(&wd.Data)
	if err != nil {
		return nil
	}
	for _, namespace := range list {
		names = append(names, netns.Title(namespace.Name))
	}
	return names
}

// setVariables returns the variables that are not empty as words of an environment.
func setVariables(variables map[string]string) (env []string) {
	for name, value := range variables {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// runInNamespace runs a program of this host in a restored network namespace, with variables in its environment.
func (o *options) runInNamespace(ctx context.Context, wd *workdir.Dir, name string, argv, env []string) error {
	entering, err := linux.Enter(ctx, wd, name, argv)
	if errors.Is(err, runtime.ErrNotInstalled) {
		fmt.Fprintf(o.Err, "ovs-offline: %v\n", terminal.Escape(err.Error()))
		return exitCode(exitNotFound)
	}
	if err != nil {
		return err
	}
	return o.runProgram(ctx, entering, env)
}
