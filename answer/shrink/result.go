package shrink

import (
	"slices"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/pkg/ovsdb/file"
)

// result describes the smallest content.
func (s *search) result(rows int) *Result {
	found := &Result{Running: s.running, Rows: rows, Kept: len(s.whole.Rows("")), Steps: s.steps, Bindings: []Binding{}, Remarks: slices.Clone(s.question.Deployment.Remarks)}
	var remarks []string
	found.Commands, remarks = commandsOf(s.whole)
	found.Remarks = append(found.Remarks, remarks...)
	s.describe(found, s.whole)
	return found
}

// The verdicts of results that are not about a packet.
const (
	logged  = "LOGGED"
	drifted = "DRIFT"
)

// bind adds the logical ports of the smallest database that have a node; nodeOf returns "" for the others.
func (r *Result) bind(smallest *file.Whole, nodeOf func(port string) string) {
	_ = ovn.EachSwitchPort(smallest, func(p *ovn.SwitchPort) { // a whole content has no errors
		if node := nodeOf(p.Name); node != "" {
			r.Bindings = append(r.Bindings, Binding{p.Name, node})
		}
	})
}

// Script prints the commands as lines for a shell, after comments with the question and what to ask in a sandbox.
func (r *Result) Script(p *show.Page) {
	p.Printf("# %s: %s, %s\n", terminal.Escape(r.Question), r.Verdict, terminal.Escape(r.Headline))
	for _, fact := range []struct{ name, value string }{{"packet", r.Packet}, {"rule", r.Rule}, {"flow", r.Flow}, {"logical flow", r.LogicalFlow}} {
		if fact.value != "" {
			p.Printf("# %s: %s\n", fact.name, terminal.Escape(fact.value))
		}
	}
	p.Printf("# %d of %d rows of the NB database are left, after %d steps\n", r.Kept, r.Rows, r.Steps)
	for _, words := range r.Commands {
		p.Printf("%s\n", line("ovn-nbctl", words))
	}
	for _, of := range r.Bindings {
		p.Printf("# on %s: %s\n", terminal.Escape(of.Node), line("ovs-vsctl", attach(of)))
	}
	if r.Microflow != "" {
		p.Printf("# %s\n", line("ovn-trace", r.TraceArguments()))
	}
}

// attach returns the arguments of ovs-vsctl that bind a logical port to a node.
func attach(of Binding) []string {
	return []string{"add-port", "br-int", of.LogicalPort, "--", "set", "Interface", of.LogicalPort, "external_ids:iface-id=" + of.LogicalPort}
}

// line returns a command as a line for a shell.
func line(program string, words []string) string {
	text := program
	for _, word := range words {
		text += " " + show.Word(word)
	}
	return text
}
