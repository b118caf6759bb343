package shrink

import (
	"slices"
	"strings"

	"ovs-offline/answer/trace"
	"ovs-offline/internal/flow"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// result describes the smallest content.
func (s *search) result(rows int) (*Result, error) {
	found := &Result{Running: s.running, Rows: rows, Kept: len(s.whole.Rows("")), Steps: s.steps, Bindings: []Binding{}, Remarks: slices.Clone(s.question.Deployment.Remarks)}
	var remarks []string
	found.Commands, remarks = commandsOf(s.whole)
	found.Remarks = append(found.Remarks, remarks...)
	if s.answer == nil {
		found.Question, found.Verdict, found.Headline = "log "+s.question.Log, "LOGGED", s.message
		return found, nil
	}
	question := s.question.Trace
	found.Question = strings.TrimSpace(question.From + " " + question.To + " " + question.Protocol)
	found.Verdict, found.Headline, found.Packet = string(s.answer.Verdict), s.answer.Headline(), s.answer.Packet
	if s.answer.Drop != nil {
		found.Rule = s.answer.Drop.Named()
	}
	s.describePacket(found)
	return found, nil
}

// describePacket adds the ports of the packet's way, and the packet in the words of ovn-trace.
func (s *search) describePacket(found *Result) {
	for _, port := range s.whole.Rows("Logical_Switch_Port") {
		name := s.whole.Name(port)
		if node := s.nodeOf(name); node != "" {
			found.Bindings = append(found.Bindings, Binding{name, node})
		}
	}
	if len(s.answer.Path) == 0 || s.answer.Path[0].LogicalPort == "" {
		return
	}
	first := s.answer.Path[0]
	if packet, err := flow.Parse(first.Packet); err == nil {
		found.Microflow, found.Datapath = trace.Microflow(first.LogicalPort, packet), s.switchOf(first.LogicalPort)
	}
}

// nodeOf returns the node on which the answer met a logical port, "" for none.
func (s *search) nodeOf(port string) string {
	for _, a := range append(returns(s.answer), s.answer) {
		for _, hop := range a.Path {
			if hop.LogicalPort == port {
				return hop.Node
			}
			for _, end := range hop.Ends {
				if end.LogicalPort == port {
					return end.Node
				}
			}
		}
		for _, outcome := range a.Outcomes {
			if outcome.LogicalPort == port {
				return outcome.Node
			}
		}
		if a.Drop != nil && a.Drop.ACL != nil && a.Drop.ACL.LogicalPort == port {
			return a.Drop.Node
		}
	}
	return ""
}

// switchOf returns the name of the switch of a logical port.
func (s *search) switchOf(port string) string {
	for _, row := range s.whole.Rows("Logical_Switch") {
		for _, uuid := range s.whole.Row(row).UUIDs("ports") {
			for _, of := range s.whole.Rows("Logical_Switch_Port") {
				if of.UUID == uuid && s.whole.Name(of) == port {
					return s.whole.Name(row)
				}
			}
		}
	}
	return ""
}

// Script prints the commands as lines for a shell, after comments with the question and what to ask in a sandbox.
func (r *Result) Script(p *show.Page) {
	p.Printf("# %s: %s, %s\n", terminal.Escape(r.Question), r.Verdict, terminal.Escape(r.Headline))
	for _, fact := range []struct{ name, value string }{{"packet", r.Packet}, {"rule", r.Rule}} {
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
