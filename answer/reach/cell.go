package reach

import (
	"errors"
	"slices"
	"strings"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/snapshot/names"
)

// Mixed is the verdict of a cell whose members have different verdicts.
const Mixed answer.Verdict = "MIXED"

// Cell is the answer for two groups and a port.
type Cell struct {
	From    string         `json:"from"`
	To      string         `json:"to"`
	Port    Port           `json:"port"`
	Verdict answer.Verdict `json:"verdict"`
	Asked   []Answer       `json:"asked"`

	Row    int `json:"-"` // index in Matrix.From
	Column int `json:"-"` // index in Matrix.To
}

// Answer is the answer for two members.
type Answer struct {
	From    string         `json:"from"`
	To      string         `json:"to"`
	Verdict answer.Verdict `json:"verdict"`
	// Reply is the verdict of the reply to a packet that arrives, if it is not REACHABLE.
	Reply  answer.Verdict `json:"reply,omitempty"`
	Reason string         `json:"reason,omitempty"` // of a drop, or what is missing
	Rule   string         `json:"rule,omitempty"`   // that decides
	Family int            `json:"family,omitempty"` // of the packet: 4 or 6, 0 if none was made

	packet    string   // for people
	decisions []string // of the rules: answer.Decisions
}

// add adds the answer for a pair.
func (c *Cell) add(pair pair, asked trace.Asked) {
	one := Answer{From: pair.from.name, To: pair.to.name}
	if asked.Err != nil {
		one.Verdict, one.Reason = verdictWithoutPacket(asked.Err)
	} else {
		one.Verdict, one.Reason, one.Rule, one.Family = asked.Answer.Verdict, reason(asked.Answer), rule(asked.Answer), asked.Answer.Family
		one.packet, one.decisions = asked.Answer.Packet, decisions(asked.Answer)
	}
	if asked.Answer != nil && asked.Answer.Return != nil && asked.Answer.Return.Verdict != answer.Reachable {
		one.Reply = asked.Answer.Return.Verdict
	}
	c.Asked = append(c.Asked, one)
	switch c.Verdict {
	case "", one.Verdict:
		c.Verdict = one.Verdict
	default:
		c.Verdict = Mixed
	}
}

// verdictWithoutPacket returns the verdict where no packet can be made. A port that is bound nowhere
// sends nothing, and addresses of different families have no packets.
func verdictWithoutPacket(err error) (verdict answer.Verdict, reason string) {
	for _, known := range []error{names.ErrNotBound, names.ErrFamily} {
		if errors.Is(err, known) {
			return answer.Unreachable, err.Error()
		}
	}
	return answer.Undetermined, err.Error()
}

// reason returns why a packet does not arrive, "" if it does.
func reason(a *answer.Answer) string {
	switch {
	case a.Verdict == answer.Reachable && a.Return != nil:
		if text := reason(a.Return); text != "" {
			return "reply: " + text
		}
		return ""
	case a.Verdict == answer.Reachable:
		return ""
	case a.Verdict == answer.Undetermined, a.Verdict == answer.Ambiguous:
		return a.Headline()
	case a.Verdict == answer.OneWay && a.Return != nil:
		return "reply: " + reason(a.Return)
	case a.Drop != nil && a.Drop.Reason != "":
		return a.Drop.Reason
	}
	return a.Headline()
}

// rule returns the rule that decides, "" for none.
func rule(a *answer.Answer) string {
	if a.Verdict == answer.OneWay && a.Return != nil {
		return rule(a.Return)
	}
	for _, fact := range a.Facts() {
		if fact.Label == "rule" {
			return strings.Join(fact.Lines, "; ")
		}
	}
	return ""
}

// decisions returns what the rules do that decide.
func decisions(a *answer.Answer) []string {
	if a.Verdict == answer.OneWay && a.Return != nil {
		return decisions(a.Return)
	}
	return a.Decisions()
}

// Undetermined reports whether an answer of the cell, or one about a reply, is undetermined.
func (c *Cell) Undetermined() bool {
	return slices.ContainsFunc(c.Asked, func(a Answer) bool {
		return a.Verdict == answer.Undetermined || a.Reply == answer.Undetermined
	})
}

// Shown is the one verdict that a picture or a table shows for a cell.
type Shown string

// What is shown in place of a verdict.
const (
	// ReplyUnknown is shown for a packet that arrives, if it is unknown whether the reply does.
	ReplyUnknown Shown = "REPLY"
)

// Shown returns the verdict, or ReplyUnknown.
func (c *Cell) Shown() Shown {
	if c.Verdict == answer.Reachable && slices.ContainsFunc(c.Asked, func(answer Answer) bool { return answer.Reply != "" }) {
		return ReplyUnknown
	}
	return Shown(c.Verdict)
}

// Legend explains what is shown, in the order in which to list it, with a letter for each.
func Legend() []Explained {
	return []Explained{
		{Shown(answer.Reachable), "R", "reachable"},
		{Shown(answer.Unreachable), "-", "unreachable"},
		{Shown(answer.OneWay), "1", "ONE-WAY: the packet arrives, the reply does not"},
		{ReplyUnknown, "r", "the packet arrives; the reply may not"},
		{Shown(answer.Ambiguous), "A", "AMBIGUOUS: buckets, next hops or backends differ"},
		{Shown(Mixed), "M", "MIXED: the members of the groups differ"},
		{Shown(answer.Undetermined), "?", "UNDETERMINED: something is missing"},
	}
}

// Explained is a line of the legend.
type Explained struct {
	Shown   Shown  `json:"shown"`
	Letter  string `json:"letter"`
	Meaning string `json:"meaning"`
}
