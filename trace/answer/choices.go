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
	add := func(c choice) {
		if c.text != "" && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	for _, o := range a.Outcomes {
		text := "comes out at " + o.String()
		if o.Destination {
			text = "arrives at " + o.String()
		}
		add(choice{o.Choice, o.Destination, text})
	}
	for i, h := range a.Path {
		for _, e := range h.Ends {
			if e.Kind != Delivered {
				add(choice{cmp.Or(e.Choice, h.Choice), false, a.Path[i].ending(e)})
			}
		}
	}
	return all
}

// ending returns how and where a packet ends, and the rule that drops it.
func (h *Hop) ending(e End) string {
	if n := len(h.Stages); e.Kind == Dropped && n > 0 && h.Stages[n-1].IsRule() {
		return e.String() + ", " + h.Stages[n-1].Named()
	}
	return e.String()
}

// EndText returns how and where a packet ends, and whether that is where it was to go.
func (a *Answer) EndText(e End) string {
	if a.Arrives(e) {
		return "arrives at " + e.Place.String()
	}
	return e.String()
}

// String returns how and where a packet ends.
func (e End) String() string {
	switch e.Kind {
	case Delivered:
		return "comes out at " + e.Place.String()
	case Dropped:
		return fmt.Sprintf("dropped on %s: %s", e.Place, e.Text)
	case Answered:
		return fmt.Sprintf("OVN answers on %s: %s", e.Place, e.Text)
	}
	return fmt.Sprintf("undetermined on %s: %s", e.Place, e.Text)
}
