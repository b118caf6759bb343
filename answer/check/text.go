package check

import (
	"fmt"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Print prints the findings for people, each with what follows from it and what to run next. detail
// adds the evidence and the sources.
func (r *Report) Print(page *show.Page, detail bool) {
	page.WarnEach("", r.Remarks)
	for _, f := range r.Findings {
		printFinding(page, f, detail)
	}
	page.Lines("Not judged", r.Unjudged)
	page.Printf("%s\n", show.Fold(r.Summary(), page.Width, "    "))
	if r.UnknownErrors > 0 {
		page.Printf("%s in logs that no rule knows: %s\n", phrase.Count(r.UnknownErrors, "error line"), terminal.Escape(rule.Ask("timeline", "--level", "err").Text(page.Call)))
	}
}

// Summary returns the numbers of findings in one sentence.
func (r *Report) Summary() string {
	errors, warnings := 0, 0
	for _, f := range r.Findings {
		if f.Severity == rule.Error {
			errors++
		} else {
			warnings++
		}
	}
	found := "nothing found"
	if len(r.Findings) > 0 {
		found = phrase.Count(errors, "error") + ", " + phrase.Count(warnings, "warning")
	}
	found += " on " + phrase.Count(r.Nodes, "node") + " by "
	if r.Judged == r.Rules {
		return found + phrase.Count(r.Rules, "rule")
	}
	var missing []string
	for _, m := range r.Missing {
		missing = append(missing, without(m.Data))
	}
	more := ""
	if len(missing) > mostMissing {
		more = fmt.Sprintf(" and %d more", len(missing)-mostMissing)
		missing = missing[:mostMissing]
	}
	return fmt.Sprintf("%s%d of %s; %d had no data: %s%s", found, r.Judged, phrase.Count(r.Rules, "rule"), r.Rules-r.Judged, strings.Join(missing, ", "), more)
}

// without says that data is missing: "no log", "not all rows of the table ACL".
func without(data string) string {
	if strings.HasPrefix(data, "the ") || strings.HasPrefix(data, "all ") {
		return "not " + data
	}
	return "no " + data
}

// mostMissing is how many kinds of missing data a summary names.
const mostMissing = 5

func printFinding(page *show.Page, f rule.Finding, detail bool) {
	const indent = "    "
	page.Printf("%s\n", show.Fold(terminal.Escape(Line(f)), page.Width, indent))
	below := func(title, text string) {
		page.Printf("%s\n", show.Fold(indent+fmt.Sprintf("%-8s ", title+":")+terminal.Escape(text), page.Width, indent+indent))
	}
	below("effect", f.Follows)
	if n := len(f.Explains); n > 0 {
		below("explains", fmt.Sprintf("%s of %s, the first: %s", phrase.Count(n, "finding"), f.Explains[0].Rule, f.Explains[0].What))
	}
	for _, next := range f.Next {
		page.Printf("    next:    %s\n", terminal.Escape(next.Text(page.Call)))
	}
	if !detail {
		return
	}
	for _, explained := range f.Explains {
		below("explains", Line(rule.Finding{Rule: explained.Rule, Nodes: explained.Nodes, What: explained.What}))
	}
	for _, text := range f.Evidence {
		below("seen in", text)
	}
	for _, text := range f.Sources {
		below("see", text)
	}
}

// Line returns a finding in one line: its severity, nodes, moment and what is wrong.
func Line(f rule.Finding) string {
	var parts []string
	if len(f.Nodes) > 0 {
		parts = append(parts, phrase.FirstNames(f.Nodes)+":")
	}
	if !f.At.IsZero() {
		parts = append(parts, show.Time(f.At)+":")
	}
	return strings.TrimSpace(strings.ToUpper(string(f.Severity)) + " " + strings.Join(append(parts, f.What), " ") + " [" + f.Rule + "]")
}
