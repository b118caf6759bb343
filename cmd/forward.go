package cmd

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/pods"
	"ovs-offline/pods/link"
	"ovs-offline/replica/runtime"
)

// openHost connects to the pod of a workdir's replica, which it loads anew if it was replaced.
func (o *options) openHost(clusters *pods.Clusters) link.Open {
	return func(ctx context.Context, wd *workdir.Dir) (link.Host, error) {
		host, err := clusters.Open(ctx, wd, func(text string) { fmt.Fprintln(o.Err, terminal.Escape(text)) })
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
	return func(c *cobra.Command, args []string) error {
		wd, err := workdir.Find(o.workdir)
		if err != nil || !wanted() || !link.Linked(wd) {
			return here(c, args)
		}
		links, err := link.From(c.Context())
		if err != nil {
			return err
		}
		run := runtime.Command{Stdin: o.In, Stdout: o.stdout(), Stderr: o.Err}
		if runsPrograms(c) {
			run.Terminal = o.interactive()
		} else { // ovs-offline escapes what it prints, and another program may be in the pod
			out, errs := terminal.NewLineWriter(o.Out), terminal.NewLineWriter(o.Err)
			defer out.Close()
			defer errs.Close()
			run.Stdout, run.Stderr = out, errs
		}
		exit, err := links.RunKept(c.Context(), wd, commandLine(c, args), run, func() { startKeeper(c.Context(), wd) })
		if err == nil && exit != 0 {
			return exitCode(exit)
		}
		return err
	}
}

// runsPrograms reports whether a command runs programs that the user names, which may use a
// terminal.
func runsPrograms(c *cobra.Command) bool { return c.Name() == "exec" || c.Name() == "shell" }

// commandLine returns the words of a command line that ovs-offline in a pod takes for the
// same command on its own workdir: without the flags about where the replica is.
func commandLine(c *cobra.Command, args []string) []string {
	words := strings.Fields(c.CommandPath())[1:]
	c.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "workdir", "runtime", "podman":
			return
		}
		words = append(words, "--"+f.Name+"="+flagText(f))
	})
	if len(args) == 0 {
		return words
	}
	return append(append(words, "--"), args...)
}

// flagText returns the value of a flag as the command line takes it.
func flagText(f *pflag.Flag) string {
	list, isList := f.Value.(pflag.SliceValue)
	if !isList {
		return f.Value.String()
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	_ = w.Write(list.GetSlice()) // to memory
	w.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}
