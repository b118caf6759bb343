package cmd

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica/pods"
	"ovs-offline/replica/pods/link"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// openHost returns a function that finds the pod of a workdir's replica, which it loads again if
// it was replaced.
func openHost(clusters *pods.Clusters, stderr io.Writer) link.Open {
	return func(ctx context.Context, wd *workdir.Dir, attempt link.Attempt) (link.Host, error) {
		var host *pods.Host
		var err error
		if attempt == link.First {
			host, err = clusters.Recorded(ctx, wd)
		} else {
			host, err = clusters.Open(ctx, wd, attempt == link.Lost, func(text string) { fmt.Fprintln(stderr, terminal.Escape(text)) })
		}
		if err != nil {
			return nil, err // and no Host that is a nil *pods.Host
		}
		return host, nil
	}
}

// always is the condition of commands that run in the pod of each replica that has one.
func always() bool { return true }

// orInPod returns a cobra function that runs the command in the pod of the workdir's
// replica if it has one and wanted is true, and otherwise calls here.
func (o *options) orInPod(wanted func() bool, here func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		wd, err := workdir.Find(o.workdir)
		if err != nil || !wanted() || !link.Linked(wd) {
			return here(command, args)
		}
		links, err := link.From(command.Context())
		if err != nil {
			return err
		}
		run := runtime.Command{Stdin: o.In, Stdout: o.stdout(), Stderr: o.Err}
		if runsPrograms(command) {
			run.Terminal = o.interactive()
		} else { // ovs-offline escapes what it prints, and another program may be in the pod
			out, errs := terminal.NewLineWriter(o.Out), terminal.NewLineWriter(o.Err)
			defer out.Close()
			defer errs.Close()
			run.Stdout, run.Stderr = out, errs
		}
		exit, err := links.Run(command.Context(), wd, commandLine(command, args), run)
		if err == nil && exit != 0 {
			return exitCode(exit)
		}
		return err
	}
}

// runsPrograms reports whether a command runs programs that the user names, which may use a
// terminal.
func runsPrograms(command *cobra.Command) bool {
	return command.Name() == "exec" || command.Name() == "shell"
}

// commandLine returns the words of a command line that ovs-offline in a pod takes for the
// same command on its own workdir: without the flags about where the replica is.
func commandLine(command *cobra.Command, args []string) []string {
	words := strings.Fields(command.CommandPath())[1:]
	command.Flags().Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "workdir", "runtime", "podman":
			return
		}
		if text := flagText(flag); flag.Name != "node" || text != "" { // the pod has no other node than the chosen one
			words = append(words, "--"+flag.Name+"="+text)
		}
	})
	if len(args) == 0 {
		return words
	}
	return append(append(words, "--"), args...)
}

// flagText returns the value of a flag as the command line takes it.
func flagText(flag *pflag.Flag) string {
	list, isList := flag.Value.(pflag.SliceValue)
	if !isList {
		return flag.Value.String()
	}
	var text bytes.Buffer
	writer := csv.NewWriter(&text)
	_ = writer.Write(list.GetSlice()) // to memory
	writer.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}
