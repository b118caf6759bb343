package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"ovs-offline/internal/terminal"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// forPeople is the --output that is not for programs.
const forPeople = "table"

// formats are what --output takes.
func formats() []string { return []string{forPeople, "json", "yaml"} }

// outputFlag adds --output to a command that has something to report.
func outputFlag(c *cobra.Command, format *string) { outputFlagP(c, format, "o") }

// outputFlagP is outputFlag with another letter, or none.
func outputFlagP(c *cobra.Command, format *string, letter string) {
	c.Flags().StringVarP(format, "output", letter, forPeople, "table, json or yaml")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if !slices.Contains(formats(), *format) {
			return fmt.Errorf("%w: --output takes %s, not %q", errUsage, strings.Join(formats(), ", "), *format)
		}
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}

// emit prints v in a format; table does it for people.
func (o *options) emit(format string, v any, table func()) error {
	switch format {
	case "json":
		return terminal.WriteJSON(o.Out, v)
	case "yaml":
		return printYAML(o.Out, v)
	}
	table()
	return nil
}

// printYAML writes what printJSON does as YAML, as safe for a terminal.
func printYAML(w io.Writer, v any) error {
	raw, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range string(raw) {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	_, err = fmt.Fprint(w, b.String())
	return err
}
