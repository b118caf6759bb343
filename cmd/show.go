package cmd

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

func newShow(o *options) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "show", Short: "Show how to talk to the running replica", Args: exactly(),
		Example: "  ovs-offline show\n  ovs-offline show -o json | jq .ports",
		RunE: func(c *cobra.Command, _ []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			if _, err := o.running(c.Context(), o.runtimes(wd), wd); err != nil {
				return err
			}
			sockets, err := replica.Show(wd)
			if err != nil {
				return err
			}
			report, err := replica.Report(wd)
			if err != nil {
				return err
			}
			return o.emit(output, map[string]any{"sockets": sockets, "ports": report.Ports}, func() {
				sockets.Print(o.Out, shellWord)
				printPorts(o.Out, report)
			})
		},
	}
	outputFlag(c, &output)
	return c
}

func (o *options) show(wd *workdir.Dir) error {
	sockets, err := replica.Show(wd)
	if err != nil {
		return err
	}
	sockets.Print(o.Out, shellWord)
	return nil
}

// plainWord matches what a shell and a terminal take as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./@%+=:,-]+$`)

// shellWord makes a path, which may have a bridge's name in it, safe to print and
// to paste into a shell: control characters are spelled out, and then name no socket.
func shellWord(path string) string {
	if plainWord.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(terminal.Escape(path), "'", `'\''`) + "'"
}
