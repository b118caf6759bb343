package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// formats are what --output takes.
func formats() []string { return []string{"table", "json", "yaml"} }

// outputFlag adds --output to a command that prints a table for people.
func outputFlag(c *cobra.Command, format *string) {
	c.Flags().StringVarP(format, "output", "o", "table", "table, json or yaml")
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
		return printJSON(o.Out, v)
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
