package answer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Fact is a line of the short form of an answer, or several of one kind.
type Fact struct {
	Label string
	Lines []string
}

// The number of lines of one kind in the short form.
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

// where returns the place of a drop, from the node to the stage.
func (d *Drop) where() string {
	words := []string{d.Node, cmp.Or(d.Datapath, d.OnBridge, d.Bridge), d.Pipeline}
	switch {
	case d.Stage == (Stage{Rule: d.Rule}):
		return "dropped on " + d.Place.String()
	case d.Name != "":
		words = append(words, "stage "+d.Name)
	default:
		words = append(words, fmt.Sprint("table ", d.Table))
	}
	return "dropped on " + strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// evidence returns what an ACL that dropped the packet matches, and how often.
func (d *Drop) evidence() string {
	var parts []string
	if d.ACL != nil {
		parts = append(parts, d.ACL.Match)
	}
	if d.Packets != nil {
		parts = append(parts, fmt.Sprintf("its flow had matched %d packets on the node", *d.Packets))
	}
	return strings.Join(parts, "; ")
}

// arrival returns the ports where the packet comes out.
func (a *Answer) arrival() string {
	var wanted, other []string
	for _, o := range a.Outcomes {
		if o.Destination {
			wanted = append(wanted, o.String())
		} else {
			other = append(other, o.String())
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
		return "answered by OVN on " + a.Generated[0].Node + ": " + a.Generated[0].Why
	}
	return "comes out of no port"
}

// count returns the first text and the number of the others.
func count(texts []string, noun string) string {
	switch n := len(texts) - 1; n {
	case 0:
		return texts[0]
	case 1:
		return texts[0] + " and 1 more " + noun
	default:
		return fmt.Sprintf("%s and %d more %ss", texts[0], n, noun)
	}
}

// Called returns the name of the logical port that a user knows best, "" without one.
func (p Place) Called() string { return cmp.Or(p.Endpoint, p.LogicalPort) }

// String returns the place with the name first that a user knows.
func (p Place) String() string {
	words := []string{p.Node, p.Bridge}
	if p.Port != "" {
		words = append(words, "port "+p.Port)
	}
	place := strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
	name := p.Called()
	if name == "" || name == p.Port {
		return place
	}
	return fmt.Sprintf("%s (%s)", name, place)
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

// back says where the answer to a packet that OVN answers came out.
func (a *Answer) back() string {
	for _, o := range a.Outcomes {
		if o.Answer {
			return "comes out at " + o.String()
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
		return []string{"the answer " + a.back()}
	case a.Return == nil:
		return []string{"not evaluated"}
	case len(a.Replies) == 0:
		return a.Return.inLines()
	case !slices.ContainsFunc(a.Replies, func(r *Answer) bool { return r.Verdict != Reachable }):
		all := a.Return.inLines()
		all[0] = fmt.Sprintf("%s from each of %d choices, as from %s: %s", a.Return.Verdict, len(a.Replies), a.Return.Choice, a.Return.Headline())
		return all
	}
	var all []string
	for _, r := range a.Replies {
		text := fmt.Sprintf("from %s: %s: %s", r.Choice, r.Verdict, r.Headline())
		if r.Drop != nil {
			text = joined(joined(text, r.Drop.Reason), r.Drop.Rule)
		}
		all = append(all, text)
	}
	return bounded(all)
}

// inLines returns the short form of the answer about a reply.
func (a *Answer) inLines() []string {
	all := []string{string(a.Verdict) + ": " + a.Headline()}
	for _, f := range append(a.causes(), Fact{"path", lines(a.wayText())}) {
		for _, line := range f.Lines {
			all = append(all, f.Label+": "+line)
		}
	}
	return all
}

// causes returns the facts that explain the verdict. Empty ones are left out.
func (a *Answer) causes() []Fact {
	var reason, rules, evidence []string
	if a.Drop != nil {
		reason = lines(a.Drop.Reason)
		rules, evidence = lines(a.Drop.Named()), lines(a.Drop.evidence())
	} else if a.Verdict == Reachable || a.Verdict == OneWay {
		rules = a.rules()
	}
	missing := a.Missing
	if a.Verdict == Undetermined && len(missing) > 0 {
		missing = missing[1:]
	}
	var generated []string
	for _, g := range a.Generated {
		generated = append(generated, fmt.Sprintf("OVN sends a packet itself, at %s: %s", g.Place, g.Why))
	}
	facts := []Fact{{"reason", reason}, {"rule", rules}, {"match", evidence}, {"missing", missing}, {"remark", a.Remarks}, {"choice", a.choiceLines()}, {"also", a.others()}, {"answer", generated}}
	facts = slices.DeleteFunc(facts, func(f Fact) bool { return len(f.Lines) == 0 })
	for i, f := range facts {
		facts[i].Lines = bounded(f.Lines)
	}
	return facts
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func joined(text, choice string) string {
	if choice == "" {
		return text
	}
	return text + ", " + choice
}

// bounded returns the first lines and the number of the others.
func bounded(all []string) []string {
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
		for _, s := range a.Path[i].Stages {
			if name := s.Named(); s.IsRule() && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// others returns the ports where copies come out that the question did not ask for.
func (a *Answer) others() []string {
	listed := len(a.choiceLines()) > 0
	wanted := a.Answered != "" || slices.ContainsFunc(a.Outcomes, func(o Outcome) bool { return o.Destination })
	var all []string
	for i, o := range a.Outcomes {
		if !o.Destination && !o.Answer && !o.Wire && (wanted || i > 0) && (o.Choice == "" || !listed) {
			all = append(all, joined("comes out at "+o.String(), o.Choice))
		}
	}
	return all
}

// wayText returns the nodes and bridges on the way to the end that decides, and what
// carries the packet between them.
func (a *Answer) wayText() string {
	hop, _ := a.Deciding()
	chain := a.Chain(hop)
	if a.Verdict == Ambiguous {
		chain = a.trunk()
	}
	var words []string
	node, bridge := "", ""
	for _, i := range chain {
		h := &a.Path[i]
		words = append(words, lines(a.NewChoice(i))...)
		if (h.Node != node || h.Bridge != bridge) && node != "" {
			words = append(words, lines(h.Via)...)
		}
		for _, b := range h.Bridges() {
			if h.Node != node {
				words = append(words, strings.TrimSpace(h.Node+" "+b))
			} else if b != bridge {
				words = append(words, b)
			}
			node, bridge = h.Node, b
		}
	}
	if a.Verdict == Ambiguous {
		words = append(words, fmt.Sprintf("%d choices", len(a.allChoices())))
	}
	return strings.Join(words, " -> ")
}

// lines returns how faithful the replicas are, and what was assumed.
func (t *Trust) lines() []string {
	const what = "%s of the entries restored on %s"
	var all, whole, synthesised []string
	for _, n := range t.Nodes {
		switch {
		case n.Synthesised:
			synthesised = append(synthesised, n.Name)
		case n.Restored >= 100 && len(n.Doubts) == 0:
			whole = append(whole, n.Name)
		}
		if n.Restored < 100 {
			all = append(all, fmt.Sprintf(what, n.Percent(), n.Name))
		}
		if len(n.Warnings) > 0 {
			all = append(all, fmt.Sprintf("the report of %s warns: %s", n.Name, count(n.Warnings, "warning")))
		}
	}
	if len(whole) > 0 {
		all = slices.Insert(all, 0, fmt.Sprintf(what, "100 %", list(whole)))
	}
	switch len(synthesised) {
	case 0:
	case 1:
		all = slices.Insert(all, 0, fmt.Sprintf("the switch of %s is synthesised from the southbound database: its report lists what is assumed", synthesised[0]))
	default:
		all = slices.Insert(all, 0, fmt.Sprintf("the switches of %s are synthesised from the southbound database: their reports list what is assumed", list(synthesised)))
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
	for _, n := range t.Nodes {
		for _, why := range n.Doubts {
			all = append(all, n.Name+": "+why)
		}
	}
	return all
}

// Percent returns the restored part, rounded down: only all is 100 %.
func (n Node) Percent() string {
	return fmt.Sprintf("%v %%", math.Floor(n.Restored*10)/10)
}

func list(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
