package cmd

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// runnable returns the commands of the program that a user calls, without those of cobra.
func runnable() []*cobra.Command {
	return withSubcommands(newRoot(&options{}))
}

func withSubcommands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			all = append(all, withSubcommands(sub)...)
		}
	}
	return all
}

// TestExamplesParse checks that the help of each command has an example of it, and
// that all commands and flags in examples exist.
func TestExamplesParse(t *testing.T) {
	for _, c := range runnable() {
		if c.Example == "" {
			t.Errorf("%s --help has no example", c.CommandPath())
		}
		own := 0
		for _, line := range strings.Split(c.Example, "\n") {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: its example is not indented: %q", c.CommandPath(), line)
			}
			for _, part := range regexp.MustCompile(`[|<>]+|&&|\|\|`).Split(line, -1) {
				own += exampleOf(t, c, part)
			}
		}
		if own == 0 {
			t.Errorf("%s: no example calls it", c.CommandPath())
		}
	}
}

// exampleOf parses a command line of an example, and returns 1 if it calls c.
func exampleOf(t *testing.T, c *cobra.Command, text string) int {
	t.Helper()
	var words []string
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(text, -1) {
		words = append(words, strings.Trim(word, "'"))
	}
	if len(words) == 0 || words[0] != "ovs-offline" {
		return 0 // another program
	}
	found, rest, err := newRoot(&options{}).Find(words[1:])
	if err == nil {
		err = found.ParseFlags(rest)
	}
	if err == nil && found.Args != nil {
		err = found.Args(found, found.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: its example %q: %v", c.CommandPath(), text, err)
		return 0
	}
	if found.Name() == c.Name() || c.HasSubCommands() {
		return 1
	}
	return 0
}

// TestCommandsHaveOutputFlag checks that commands that print information have
// --output, and that no other flag has its shorthand.
func TestCommandsHaveOutputFlag(t *testing.T) {
	without := map[string]bool{"ovs-offline": true, "exec": true, "shell": true, "logs": true, "translate": true,
		"graph": true, "stop": true, "save": true, "load": true, "image": true, "rm": true, "mcp": true}
	for _, c := range runnable() {
		flag := c.Flags().Lookup("output")
		if short := c.Flags().ShorthandLookup("o"); short != flag {
			t.Errorf("%s: -o is another flag than --output", c.Name())
		}
		switch {
		case without[c.Name()]:
		case flag == nil:
			t.Errorf("%s has no --output", c.Name())
		case c.Name() == "trace" && flag.Usage == "output format: table, json, yaml, svg or html", c.Name() == "compare" &&
			flag.Usage == "output format: table, json, yaml or html":
		case c.Name() == "why" && flag.Usage == "output format: table, json, yaml or md":
		case c.Name() == "report" && flag.Usage == "output format: table, json, yaml or html":
		case c.Name() == "reach" && flag.Usage == "output format: table, json, yaml, csv or html":
		case flag.Usage != "output format: table, json or yaml" || flag.DefValue != "table":
			t.Errorf("%s --output: %q, by default %q", c.Name(), flag.Usage, flag.DefValue)
		}
	}
}
