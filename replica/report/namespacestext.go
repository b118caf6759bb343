package report

import (
	"fmt"
	"slices"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/workdir/netns"
)

// Title returns the name of the namespace for people.
func (n *Namespace) Title() string {
	return netns.Title(n.Name)
}

// namespacesComplete reports whether all network namespaces are as they were recorded.
func (r *Report) namespacesComplete() bool {
	return r.NamespacesProblem == "" && !slices.ContainsFunc(r.Namespaces, func(n Namespace) bool { return !n.Complete() })
}

// summarizeNamespaces prints what start shows of the network namespaces.
func (r *Report) summarizeNamespaces(p *show.Page) {
	if r.NamespacesProblem != "" {
		p.Warn("%s: %s", r.notRestored(), r.NamespacesProblem)
	}
	if len(r.Namespaces) == 0 {
		return
	}
	p.Printf("%s restored\n", phrase.Count(len(r.Namespaces), "network namespace"))
	const most = 20
	incomplete := 0
	for _, n := range r.Namespaces {
		if !n.Complete() {
			incomplete++
		}
		if incomplete > most {
			continue
		}
		for _, part := range Parts() {
			if c := n.Counts[part]; c != nil && c.Rejected+c.Different > 0 {
				p.Warn("network namespace %s: of %d %s, %d are rejected and %d different: ovs-offline report names them", n.Title(), c.Recorded, part.Title(), c.Rejected, c.Different)
			}
		}
	}
	if incomplete > most {
		p.Warn("%s more are not as they were recorded: ovs-offline report names what differs", phrase.Count(incomplete-most, "network namespace"))
	}
}

// notRestored begins the sentence with NamespacesProblem.
func (r *Report) notRestored() string {
	if len(r.Namespaces) > 0 {
		return "network namespaces of the node are missing"
	}
	return "the network namespaces of the node are not restored"
}

// printNamespaces prints what became of each network namespace.
func (r *Report) printNamespaces(p *show.Page) {
	if r.NamespacesProblem != "" {
		p.Printf("%s: %s\n\n", r.notRestored(), terminal.Escape(r.NamespacesProblem))
	}
	if len(r.Namespaces) == 0 {
		return
	}
	head := []any{"namespace"}
	for _, part := range Parts() {
		head = append(head, part.Title())
	}
	t := p.Table(head...)
	for _, n := range r.Namespaces {
		row := []any{terminal.Escape(n.Title())}
		for _, part := range Parts() {
			row = append(row, n.Counts[part].text())
		}
		t.AppendRow(row)
	}
	t.Render()
	p.Printf("\n")
	for _, n := range r.Namespaces {
		n.printNamed(p)
	}
}

// text returns how many entries of a part were restored: "7", or "5 of 7".
func (c *Parted) text() string {
	switch {
	case c == nil || c.Recorded == 0:
		return ""
	case c.Restored == c.Recorded:
		return fmt.Sprint(c.Restored)
	}
	return fmt.Sprintf("%d of %d", c.Restored, c.Recorded)
}

// printNamed prints the entries of a namespace that are not as they were recorded.
func (n *Namespace) printNamed(p *show.Page) {
	const most = 50
	if len(n.Named) > 0 {
		p.Printf("Network namespace %s: these entries are not as they were recorded:\n", terminal.Escape(n.Title()))
		for _, entry := range n.Named[:min(most, len(n.Named))] {
			p.Printf("  %s: %s: %s\n", terminal.Escape(entry.Part.Title()), terminal.Escape(entry.Text), terminal.Escape(entry.Reason))
		}
		if more := len(n.Named) - most; more > 0 {
			p.Printf("  and %d more, in -o json\n", more)
		}
		p.Printf("\n")
	}
	p.Lines("Remarks on network namespace "+n.Title(), n.Remarks)
}
