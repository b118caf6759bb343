package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"ovs-offline/internal/terminal"
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

// printYAML writes what -o json does as YAML, as safe for a terminal.
func printYAML(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var plain any
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	if err := in.Decode(&plain); err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(yamlNode(plain)); err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range out.String() {
		switch {
		case !unprintable(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, "\\U%08x", r)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	_, err = fmt.Fprint(w, b.String())
	return err
}

// yamlNode is what was read of JSON. Text that has to be escaped stands between
// double quotes: anywhere else an escape would be text.
func yamlNode(v any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch v := v.(type) {
	case map[string]any:
		n.Kind = yaml.MappingNode
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.Content = append(n.Content, yamlNode(key), yamlNode(v[key]))
		}
	case []any:
		n.Kind = yaml.SequenceNode
		for _, one := range v {
			n.Content = append(n.Content, yamlNode(one))
		}
	case string:
		n.SetString(v)
		if strings.ContainsFunc(v, unprintable) {
			n.Style = yaml.DoubleQuotedStyle
		}
	case nil:
		n.Value = "null"
	default: // a number, true, false
		n.Value = fmt.Sprint(v)
	}
	return n
}

func unprintable(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
