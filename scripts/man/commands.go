package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// commandsPage returns docs/commands.md: a table of the commands for each group of the help.
// docs is the folder of the pages that the table links to.
func commandsPage(root *cobra.Command, docs string) string {
	var page strings.Builder
	page.WriteString("# Commands\n\nMade from the program by `go run ./scripts/man -commands`. `ovs-offline COMMAND --help` has the flags,\nand `make man` writes a man page for each command.\n")
	for _, group := range root.Groups() {
		fmt.Fprintf(&page, "\n## %s\n\n| command | what it does |\n|---|---|\n", strings.TrimSuffix(group.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID == group.ID {
				page.WriteString(commandRow(c, docs))
			}
		}
	}
	page.WriteString("\n## Older names\n\nThese commands still work, and the help does not list them.\n\n| command | what it does |\n|---|---|\n")
	for _, c := range root.Commands() {
		if c.Hidden && c.Name() != "pod" {
			page.WriteString(commandRow(c, docs))
		}
	}
	return page.String()
}

// commandRow returns the line of a command, and those of its subcommands.
func commandRow(c *cobra.Command, docs string) string {
	name := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
	var more string
	if _, err := os.Stat(filepath.Join(docs, name+".md")); err == nil {
		more = fmt.Sprintf(": [more](%s.md)", name)
	}
	if c.HasAvailableSubCommands() {
		var rows strings.Builder
		for _, sub := range c.Commands() {
			rows.WriteString(commandRow(sub, docs))
		}
		return rows.String()
	}
	usage := strings.TrimPrefix(c.Use, c.Name())
	return fmt.Sprintf("| `%s` | %s%s |\n", strings.ReplaceAll(name+usage, "|", "\\|"), c.Short, more)
}
