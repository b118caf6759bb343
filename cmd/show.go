package cmd

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

func newShow(o *options) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "show", Short: "Show how to talk to the running replica", Args: exactly(),
		RunE: func(_ *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			if output == "json" {
				return o.showJSON(wd)
			}
			if err := o.show(wd); err != nil {
				return err
			}
			report, err := replica.Report(wd)
			if err != nil {
				return err
			}
			printPorts(o.Out, report)
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "json: print it as JSON")
	return c
}

func (o *options) show(wd *workdir.Dir) error {
	sockets, err := replica.Show(wd)
	if err != nil {
		return err
	}
	for i, path := range sockets.Management {
		sockets.Management[i] = shellWord(path)
	}
	sockets.Print(o.Out)
	return nil
}

// plainWord matches what a shell and a terminal take as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./@%+=:,-]+$`)

// shellWord makes a path with a bridge's name in it safe to print, and to paste
// into a shell: control characters are spelled out, and then name no socket.
func shellWord(path string) string {
	if plainWord.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(escape(path), "'", `'\''`) + "'"
}

func (o *options) showJSON(wd *workdir.Dir) error {
	sockets, err := replica.Show(wd)
	if err != nil {
		return err
	}
	report, err := replica.Report(wd)
	if err != nil {
		return err
	}
	return printJSON(o.Out, map[string]any{"sockets": sockets, "ports": report.Ports})
}
