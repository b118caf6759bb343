package flows

import (
	"fmt"
	"strings"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Print prints each flow of the datapath, with what differs from the recorded one.
func (r *Replayed) Print(page *show.Page) {
	page.Printf("%d datapath flows: %d stale, %d flapping, %d untraced, %d current\n", r.Stale+r.Flapping+r.Untraced+r.Current, r.Stale, r.Flapping, r.Untraced, r.Current)
	for _, megaflow := range r.Flows {
		node := ""
		if megaflow.Node != "" {
			node = "node " + megaflow.Node + ", "
		}
		printField(page, string(megaflow.State), fmt.Sprintf("%sfrom %s: %d packets, %d bytes, used %s", node, megaflow.From, megaflow.Packets, megaflow.Bytes, megaflow.Used))
		printField(page, "", megaflow.Match)
		if megaflow.State == Current || megaflow.State == Flapping {
			printField(page, "", "-> "+megaflow.Actions)
		}
		if megaflow.State == Current {
			continue
		}
		if megaflow.State == Flapping {
			printField(page, "why", megaflow.Why)
			for _, examiner := range megaflow.Unwildcards {
				printField(page, "rule", examiner.String())
			}
			continue
		}
		printField(page, "recorded", megaflow.Actions)
		if megaflow.State == Stale {
			printField(page, "now", megaflow.Now)
			printField(page, "end", megaflow.End)
		}
		printField(page, "why", megaflow.Why)
		printField(page, "rules", strings.Join(megaflow.Rules, "; "))
	}
}

// printField prints a text behind its name, wrapped where it does not fit the terminal.
func printField(page *show.Page, name, text string) {
	const indent = 10
	if text == "" {
		return
	}
	lines := []string{terminal.Escape(text)}
	if width := page.Width; width > 0 {
		lines = show.Wrap(lines[0], max(width-indent, 2*indent))
	}
	for _, line := range lines {
		page.Printf("%-*s%s\n", indent, name, line)
		name = ""
	}
}
