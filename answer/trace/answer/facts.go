package answer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
	"ovs-offline/snapshot/rules"
)

// Fact is a line of the short form of an answer, or several of one kind.
type Fact struct {
	Label string
	Lines []string
}

// maxLines bounds the lines of one kind in the short form.
const maxLines = 8

// Headline returns what follows the verdict in the first line: where the packet ends.
func (a *Answer) Headline() string {
	switch {
	case a.Verdict == Undetermined && len(a.Missing) > 0:
		return a.Missing[0]
	case a.Verdict == Undetermined:
		return "the cause is not known"
	case a.Verdict == Ambiguous && len(a.allChoices()) == 0:
		return "what becomes of it depends on the choice"
	case a.Verdict == Ambiguous:
		return a.countChoices()
	case a.Verdict == OneWay:
		return a.arrival() + "; its reply does not arrive"
	case a.Drop != nil:
		return a.Drop.where()
	}
	return a.arrival()
}

// where describes where a packet was dropped, from the node to the stage. The name of a stage has its pipeline.
func (d *Drop) where() string {
	words := []string{d.Node, cmp.Or(d.Datapath, d.OnBridge, d.Bridge)}
	switch {
	case d.Stage == (Stage{Rule: d.Rule}):
		return "dropped on " + d.Location.String()
	case d.Chain != "":
		words = append(words, "chain "+d.Chain)
	case d.Name != "":
		words = append(words, "stage "+d.Name)
	default:
		words = append(words, d.Pipeline, fmt.Sprint("table ", d.Table))
	}
	return "dropped on " + strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// evidence returns what decided a drop: the match of an ACL, its UUID and the ports of its port
// group, or else the flow where OVN has no word for it, and how often the flow had matched.
func (d *Drop) evidence() []string {
	var all, parts []string
	switch {
	case d.ACL != nil:
		parts = append(parts, d.ACL.Match)
		all = append(all, d.ACL.rowText())
	case (d.Rule == "" || d.Reason == string(rules.StaleFlow)) && d.Flow != "":
		parts = append(parts, d.Flow)
	}
	if d.Packets != nil {
		parts = append(parts, fmt.Sprintf("its flow had matched %d packets on the node", *d.Packets))
	}
	return append(lines(strings.Join(parts, "; ")), all...)
}

// rowText names the ACL's row, and the ports on the path that its port group holds.
func (a *ACL) rowText() string {
	text := "ACL " + a.UUID
	if a.PortGroup != "" && len(a.Holds) > 0 {
		text += fmt.Sprintf("; port group %s holds %s", a.PortGroup, list(a.Holds))
	}
	return text
}

// arrival returns the ports where the packet comes out.
func (a *Answer) arrival() string {
	var wanted, other []string
	for _, outcome := range a.Outcomes {
		if outcome.Destination {
			wanted = append(wanted, outcome.String())
		} else {
			other = append(other, outcome.String())
		}
	}
	switch {
	case a.Answered != "":
		return "answered by " + a.Answered
	case len(wanted) > 0:
		return "arrives at " + count(wanted, "port")
	case len(other) > 0 && a.Verdict == Unreachable:
		return "comes out elsewhere, at " + count(other, "port")
	case len(other) > 0:
		return "comes out at " + count(other, "port")
	case len(a.Generated) > 0:
		return "answered by " + a.Generated[0].by() + " on " + a.Generated[0].Node + ": " + a.Generated[0].Why
	}
	return "comes out of no port"
}

// count returns the first text and the number of the others.
func count(texts []string, noun string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return texts[0] + " and " + phrase.Count(len(texts)-1, "more "+noun)
}

// Called returns the name of the logical port that a user knows best, "" without one.
func (l Location) Called() string { return cmp.Or(l.Endpoint, l.LogicalPort) }

// String returns the location, with the name that a user knows first.
func (l Location) String() string {
	words := []string{l.Node, l.Bridge}
	if l.Port != "" {
		words = append(words, "port "+l.Port)
	}
	location := strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
	name := l.Called()
	if name == "" || name == l.Port {
		return location
	}
	return fmt.Sprintf("%s (%s)", name, location)
}

// by names what sends the packet.
func (g Generated) by() string { return cmp.Or(g.By, "OVN") }

// where describes where the packet is sent.
func (g Generated) where() string {
	if g.To != "" {
		return fmt.Sprintf("from %s to %s", g.Node, g.To)
	}
	return "at " + g.Location.String()
}

// Facts returns the short form of the answer without its first line.
func (a *Answer) Facts() []Fact {
	var facts []Fact
	if a.Packet != "" {
		facts = append(facts, Fact{"packet", lines(a.packetText())})
	}
	facts = append(append(facts, a.causes()...), Fact{"path", lines(a.wayText())}, Fact{"return", a.replyLines()})
	return append(facts, Fact{"trust", a.Trust.lines()})
}

// answerText describes where the answer to a packet that OVN answers came out.
func (a *Answer) answerText() string {
	for _, outcome := range a.Outcomes {
		if outcome.Answer {
			return "comes out at " + outcome.String()
		}
	}
	return "is sent to the sender"
}

// packetText describes the packet and its size.
func (a *Answer) packetText() string {
	if a.Size == 0 {
		return a.Packet
	}
	return fmt.Sprintf("%s, %d bytes", a.Packet, a.Size)
}

// replyLines returns what becomes of the reply, or of each reply where they differ.
func (a *Answer) replyLines() []string {
	switch {
	case a.Answered != "" && a.Verdict == Reachable:
		return []string{"the answer " + a.answerText()}
	case a.Return == nil:
		return []string{"not evaluated"}
	case len(a.Replies) == 0:
		return a.Return.shortLines()
	case !slices.ContainsFunc(a.Replies, func(reply *Answer) bool { return reply.Verdict != Reachable }):
		all := a.Return.shortLines()
		all[0] = fmt.Sprintf("%s from each of %d choices, as from %s: %s", a.Return.Verdict, len(a.Replies), a.Return.Choice, a.Return.Headline())
		return all
	}
	var all []string
	for _, reply := range a.Replies {
		text := fmt.Sprintf("from %s: %s: %s", reply.Choice, reply.Verdict, reply.Headline())
		if reply.Drop != nil {
			text = join(join(text, reply.Drop.Reason), reply.Drop.Rule)
		}
		all = append(all, text)
	}
	return truncate(all)
}

// shortLines returns the short form of the answer about a reply.
func (a *Answer) shortLines() []string {
	all := []string{string(a.Verdict) + ": " + a.Headline()}
	for _, fact := range append(a.causes(), Fact{"path", lines(a.wayText())}) {
		for _, line := range fact.Lines {
			all = append(all, fact.Label+": "+line)
		}
	}
	return all
}

// causes returns the facts that explain the verdict. Empty ones are left out.
func (a *Answer) causes() []Fact {
	var reason, rules, evidence []string
	if a.Drop != nil {
		reason = lines(a.Drop.Reason)
		rules, evidence = lines(a.Drop.Named()), a.Drop.evidence()
	} else if a.Verdict == Reachable || a.Verdict == OneWay || a.Verdict == Unreachable {
		rules = a.rules()
	}
	missing := a.Missing
	if a.Verdict == Undetermined && len(missing) > 0 {
		missing = missing[1:]
	}
	var generated []string
	for _, made := range a.Generated {
		if made.Flooded && a.Verdict == Reachable { // the packet itself arrived
			continue
		}
		generated = append(generated, fmt.Sprintf("%s sends a packet itself, %s: %s", made.by(), made.where(), made.Why))
	}
	facts := []Fact{{"reason", reason}, {"rule", rules}, {"match", evidence}, {"missing", missing}, {"remark", a.Remarks}, {"choice", a.choiceLines()}, {"also", a.others()}, {"answer", generated}}
	facts = slices.DeleteFunc(facts, func(fact Fact) bool { return len(fact.Lines) == 0 })
	for i, fact := range facts {
		facts[i].Lines = truncate(fact.Lines)
	}
	return facts
}

// lines returns a text as a list of lines, which is empty for "".
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// join appends a choice to a text, if there is one.
func join(text, choice string) string {
	if choice == "" {
		return text
	}
	return text + ", " + choice
}

// truncate returns the first lines and the number of the others.
func truncate(all []string) []string {
	if len(all) <= maxLines {
		return all
	}
	return append(slices.Clone(all[:maxLines-1]), fmt.Sprintf("and %d more", len(all)-maxLines+1))
}

// rules returns the rules on the way to the end that decides, each once.
func (a *Answer) rules() []string {
	hop, _ := a.Deciding()
	var all []string
	for _, i := range a.Chain(hop) {
		for _, stage := range a.Path[i].Stages {
			if name := stage.Named(); stage.IsRule() && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// Decisions returns what the rules on the way to the end that decides do, without what differs between releases of
// OVN that do the same: tables, stages and priorities of logical flows. Of ACLs of one priority that match the same
// packets OVN installs any, so an ACL is described by what it does, and not by its name.
func (a *Answer) Decisions() []string {
	hop, _ := a.Deciding()
	var all []string
	for _, i := range a.Chain(hop) {
		for _, stage := range a.Path[i].Stages {
			if text := stage.decision(); text != "" && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// decision returns what a stage decides by a rule of a user, "" without one.
func (s *Stage) decision() string {
	switch {
	case !s.IsRule():
		return ""
	case s.ACL != nil:
		return fmt.Sprintf("ACL of priority %d, %s, %s", s.ACL.Priority, s.ACL.Action, s.ACL.directionText())
	}
	return s.Rule
}

// others returns the ports where copies come out, without the destination of the question.
func (a *Answer) others() []string {
	listed := len(a.choiceLines()) > 0
	wanted := a.Answered != "" || slices.ContainsFunc(a.Outcomes, func(outcome Outcome) bool { return outcome.Destination })
	var all []string
	for i, outcome := range a.Outcomes {
		if !outcome.Destination && !outcome.Answer && !outcome.Wire && (wanted || i > 0) && (outcome.Choice == "" || !listed) {
			all = append(all, join("comes out at "+outcome.String(), outcome.Choice))
		}
	}
	return all
}

// wayText returns the nodes and bridges on the way to the end that decides, and what
// carries the packet between them.
func (a *Answer) wayText() string {
	deciding, _ := a.Deciding()
	chain := a.Chain(deciding)
	if a.Verdict == Ambiguous {
		chain = a.trunk()
	}
	var words []string
	node, bridge := "", ""
	for _, i := range chain {
		hop := &a.Path[i]
		words = append(words, lines(a.NewChoice(i))...)
		if (hop.Node != node || hop.Bridge != bridge) && node != "" {
			words = append(words, lines(hop.Via)...)
		}
		for _, next := range hop.Bridges() {
			if hop.Node != node {
				words = append(words, strings.TrimSpace(hop.Node+" "+next))
			} else if next != bridge {
				words = append(words, next)
			}
			node, bridge = hop.Node, next
		}
	}
	if a.Verdict == Ambiguous {
		words = append(words, fmt.Sprintf("%d choices", len(a.allChoices())))
	}
	return strings.Join(words, " -> ")
}

// lines returns how faithful the replicas are, and what was assumed.
func (t *Trust) lines() []string {
	const restored = "%s of the entries restored on %s"
	var all, whole []string
	synthesised := map[string][]string{} // by what they are made from
	for _, node := range t.Nodes {
		switch {
		case node.Synthesised:
			synthesised[node.SynthesisedFrom] = append(synthesised[node.SynthesisedFrom], node.Name)
		case node.Restored >= 100 && len(node.Doubts) == 0:
			whole = append(whole, node.Name)
		}
		if node.Restored < 100 {
			all = append(all, fmt.Sprintf(restored, node.Percent(), node.Name))
		}
		if len(node.Warnings) > 0 {
			all = append(all, fmt.Sprintf("the report of %s warns: %s", node.Name, count(node.Warnings, "warning")))
		}
	}
	if len(whole) > 0 {
		all = slices.Insert(all, 0, fmt.Sprintf(restored, "100 %", list(whole)))
	}
	for _, from := range slices.Sorted(maps.Keys(synthesised)) {
		text := fmt.Sprintf("the switches of %s are synthesised from %s: their reports list what is assumed", list(synthesised[from]), from)
		if nodes := synthesised[from]; len(nodes) == 1 {
			text = fmt.Sprintf("the switch of %s is synthesised from %s: its report lists what is assumed", nodes[0], from)
		}
		all = slices.Insert(all, 0, text)
	}
	all = append(t.doubts(), all...)
	if len(t.Nodes) == 0 {
		all = append(all, "it is not known how faithful the replicas are")
	}
	for _, text := range t.Assumed {
		all = append(all, "assumed: "+text)
	}
	return all
}

// doubts returns why the answer may be wrong as a whole.
func (t *Trust) doubts() []string {
	var all []string
	for _, node := range t.Nodes {
		for _, why := range node.Doubts {
			all = append(all, node.Name+": "+why)
		}
	}
	return all
}

// Percent returns the restored part, rounded down: only all is 100 %.
func (f Fidelity) Percent() string {
	return fmt.Sprintf("%v %%", math.Floor(f.Restored*10)/10)
}

// list joins names for a sentence.
func list(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
