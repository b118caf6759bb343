package whatif

import (
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Print prints the result. asked is the question of its trace; with entries, each flow that changes
// is printed.
func (r *Result) Print(page *show.Page, asked string, entries bool) {
	for _, text := range r.Doubts {
		page.Text("UNDETERMINED: %s\n", terminal.Escape(text))
	}
	if r.Trace != nil {
		page.Printf("%s: %s\n", terminal.Escape(asked), r.Trace.Verdict)
	}
	if r.Printed != "" {
		page.Printf("ovn-nbctl printed:\n%s\n", terminal.EscapeLines(strings.TrimRight(r.Printed, "\n")))
	}
	printNodes(page, entries, r.Nodes)
	if r.Trace != nil {
		printAnswer(page, entries, "Without the change, on computed flows", r.Trace.Before, r.Trace.BeforeProblem)
		printAnswer(page, entries, "With the change, on computed flows", r.Trace.After, r.Trace.AfterProblem)
	} else {
		printAssumed(page, entries, r.Assumed)
	}
	page.WarnEach("", r.Remarks)
}

func printNodes(page *show.Page, entries bool, nodes []NodeResult) {
	for _, node := range nodes {
		node.print(page, entries, node.Node)
		if node.Meaning != nil {
			node.Meaning.Print(page, "  ", "with the change")
		}
	}
}

// print prints the changes of what has a name.
func (c *Changes) print(page *show.Page, entries bool, name string) {
	page.Text("%s: %s\n", terminal.Escape(name), c.Summary())
	printDifferences(page, entries, "added", c.Added)
	printDifferences(page, entries, "removed", c.Removed)
	printDifferences(page, entries, "changed", c.Changed)
}

// maxDifferences is how many lines about one kind of change are printed without entries.
const maxDifferences = 25

func printDifferences(page *show.Page, entries bool, how string, list []Difference) {
	for i, difference := range list {
		if i == maxDifferences && !entries {
			page.Printf("  %s: %d more; --detail and -o json list them\n", how, len(list)-i)
			return
		}
		page.Text("  %s: %s\n", how, terminal.Escape(difference.String()))
		if !entries {
			continue
		}
		for _, entry := range difference.Entries {
			if entry.Before != "" {
				page.Printf("      - %s\n", terminal.Escape(entry.Before))
			}
			if entry.After != "" {
				page.Printf("      + %s\n", terminal.Escape(entry.After))
			}
		}
	}
}

// printAssumed prints what is assumed of the nodes. The answers of a trace have it too.
func printAssumed(page *show.Page, entries bool, list []string) {
	for i, text := range list {
		if i == maxDifferences && !entries {
			page.Printf("assumed: %d more; --detail and -o json list them\n", len(list)-i)
			return
		}
		page.Text("assumed: %s\n", terminal.Escape(text))
	}
}

func printAnswer(page *show.Page, entries bool, when string, found *answer.Answer, problem string) {
	page.Headline("%s", when)
	if found == nil {
		page.Printf("%s\n", terminal.EscapeLines(problem))
		return
	}
	_ = found.Write(page.Out, answer.Options{Verbose: entries, Width: page.Width}) // the command notices errors of its output
}
