package drift

import (
	"strings"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Print prints the report, each paragraph behind a prefix: with entries, each flow that differs.
func (r *Report) Print(page *show.Page, prefix string, entries bool) {
	list := func(how string, differences []Difference) { printList(page, entries, how, differences) }
	for _, text := range r.Doubts {
		page.Text("%sin doubt: %s\n", terminal.Escape(prefix), terminal.Escape(text))
	}
	page.Text("%s%s\n", terminal.Escape(prefix), terminal.Escape(r.Summary()))
	list("missing", r.Missing)
	list("extra", r.Extra)
	list("altered", r.Altered)
	list("either is correct", r.Either)
	if len(r.Either) > 0 {
		page.Text("    (several logical flows or router ports match the same packets: the order in which ovn-controller sees them decides)\n")
	}
	list("on its way", r.Changing)
	if r.Meaning != nil {
		r.Meaning.Print(page, "  ", "should be")
	}
	if r.Verdict == Found {
		page.Text("  next: on the node, ovn-appctl -t ovn-controller inc-engine/recompute (before OVN 21.03: recompute) computes all flows again:\n" +
			"    what it corrects was lost when ovn-controller computed changes only\n")
		page.Text("  what stays after that was changed in Open vSwitch itself: a restart of ovn-controller installs all flows again\n")
		page.Text("  or collect the node again: what changes while it is collected may look like drift, too\n")
	}
	for _, l := range r.LeftOut {
		page.Text("  not compared: %s\n", terminal.Escape(l.String()))
	}
	if northd := r.Northd; northd != nil {
		page.Text("%sovn-northd: %s\n", terminal.Escape(prefix), northd.Summary())
		list("missing", northd.Missing)
		list("extra", northd.Extra)
		list("altered", northd.Altered)
	}
	page.WarnEach(prefix, r.Remarks)
}

func printList(page *show.Page, entries bool, how string, list []Difference) {
	for _, d := range list {
		page.Text("  %s: %s\n", how, terminal.Escape(d.String()))
		if entries {
			printEntries(page, d)
		}
	}
}

// printEntries prints the entries of a difference.
func printEntries(p *show.Page, d Difference) {
	for _, e := range d.Entries {
		for _, line := range e.Lines() {
			p.Printf("      %s\n", terminal.Escape(strings.TrimSpace(line)))
		}
	}
}
