package answer

import (
	"cmp"
	"fmt"
	"slices"
)

// choice is a packet that takes one bucket, next hop or backend, and its end.
type choice struct {
	text    string
	arrives bool
	end     string
}

// countChoices returns how many choices arrive.
func (a *Answer) countChoices() string {
	all := a.allChoices()
	arrive := 0
	for _, c := range all {
		if c.arrives {
			arrive++
		}
	}
	text := fmt.Sprintf("%d of %d choices arrive", arrive, len(all))
	replied := 0
	for _, r := range a.Replies {
		if r.Verdict == Reachable {
			replied++
		}
	}
	if replied < len(a.Replies) {
		text += fmt.Sprintf(", and the replies from %d of them", replied)
	}
	return text
}

// choiceLines returns each choice and its end, if there is more than one.
func (a *Answer) choiceLines() []string {
	all := a.allChoices()
	if len(all) < 2 {
		return nil
	}
	var texts []string
	for _, c := range all {
		texts = append(texts, c.text+": "+c.end)
	}
	return texts
}

// allChoices returns each choice: those that end on the path, and the outcomes, whose
// ends the path need not have.
func (a *Answer) allChoices() []choice {
	var all []choice
	add := func(added choice) {
		if added.text != "" && !slices.Contains(all, added) {
			all = append(all, added)
		}
	}
	for _, outcome := range a.Outcomes {
		text := "comes out at " + outcome.String()
		if outcome.Destination {
			text = "arrives at " + outcome.String()
		}
		add(choice{outcome.Choice, outcome.Destination, text})
	}
	for i, hop := range a.Path {
		for _, end := range hop.Ends {
			if end.Kind != Delivered {
				add(choice{cmp.Or(end.Choice, hop.Choice), false, a.Path[i].endText(end)})
			}
		}
	}
	return all
}

// endText returns how and where a packet ends, and the rule that drops it.
func (h *Hop) endText(end End) string {
	if n := len(h.Stages); end.Kind == Dropped && n > 0 && h.Stages[n-1].IsRule() {
		return end.String() + ", " + h.Stages[n-1].Named()
	}
	return end.String()
}

// EndText returns how and where a packet ends, and whether that is where it was to go.
func (a *Answer) EndText(end End) string {
	if a.Arrives(end) {
		return "arrives at " + end.Location.String()
	}
	return end.String()
}

// String returns how and where a packet ends.
func (e End) String() string {
	switch e.Kind {
	case Delivered:
		return "comes out at " + e.Location.String()
	case Dropped:
		return fmt.Sprintf("dropped on %s: %s", e.Location, e.Text)
	case Answered:
		return fmt.Sprintf("OVN answers on %s: %s", e.Location, e.Text)
	}
	return fmt.Sprintf("undetermined on %s: %s", e.Location, e.Text)
}
