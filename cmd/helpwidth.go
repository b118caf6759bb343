package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/show"
)

// fitHelp makes the help of a command and of all below it fit a terminal of a width, 0 for any: examples and command
// lines stay whole.
func fitHelp(command *cobra.Command, width int) {
	if width <= 0 {
		return
	}
	if !command.HasParent() {
		command.SetUsageTemplate(strings.ReplaceAll(command.UsageTemplate(), ".FlagUsages", fmt.Sprint(".FlagUsagesWrapped ", width)))
	}
	command.Long = refilled(command.Long, width)
	if command.HasParent() {
		indent := strings.Repeat(" ", command.NamePadding()+len("   "))
		command.Short = strings.TrimLeft(show.Fold(indent+command.Short, width, indent), " ")
	}
	for _, below := range command.Commands() {
		fitHelp(below, width)
	}
}

// refilled returns a text whose lines fit a width. Lines that are nearly full are one paragraph with the next line.
func refilled(text string, width int) string {
	const full = 70
	var paragraphs []string
	last := 0 // the length of the last line, 0 for one that ends its paragraph
	for line := range strings.SplitSeq(text, "\n") {
		if begins := line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "Exit code"); !begins && last >= full {
			paragraphs[len(paragraphs)-1] += " " + line
		} else {
			paragraphs = append(paragraphs, line)
		}
		last = len(line)
	}
	for i, paragraph := range paragraphs {
		indent := paragraph[:len(paragraph)-len(strings.TrimLeft(paragraph, " "))]
		paragraphs[i] = show.Fold(paragraph, width, indent)
	}
	return strings.Join(paragraphs, "\n")
}
