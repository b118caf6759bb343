package reach

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
)

// Comparison is the same matrix at two moments.
type Comparison struct {
	*Matrix
	rules bool
}

// Compare returns the matrix of the endpoints that are in both sessions. The members of a
// group behave alike in each of the two.
func Compare(ctx context.Context, before, after *trace.Session, options Options) (*Comparison, error) {
	matrix, err := newMatrix(ctx, options, before, after)
	if err != nil {
		return nil, err
	}
	return &Comparison{matrix, options.Rules}, nil
}

// Changes are the cells that changed their verdicts: what "reach OLD NEW -o json" prints.
type Changes struct {
	Changed []Change `json:"changed"`
	// Compared is the number of cells that were asked at both moments, and Undetermined the number of
	// cells with an undetermined answer.
	Compared     int      `json:"compared"`
	Undetermined int      `json:"undetermined"`
	Remarks      []string `json:"remarks,omitempty"`
	Answered     int      `json:"-"` // questions that were asked at both moments

	rules bool // list what changed by its rule alone
}

// Change is a cell with another verdict than before, or another rule.
type Change struct {
	From string `json:"from"`
	To   string `json:"to"`
	Port Port   `json:"port"`
	// Witness is a packet that shows the change.
	Witness Witness `json:"witness"`
	Before  Side    `json:"before"`
	After   Side    `json:"after"`
}

// Witness is a packet from one member of a group to one of another.
type Witness struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Packet string `json:"packet,omitempty"` // for people, "" if none can be made
	// Before and After are its verdicts.
	Before answer.Verdict `json:"before"`
	After  answer.Verdict `json:"after"`
}

// Undetermined reports whether one of the verdicts is.
func (w Witness) Undetermined() bool {
	return w.Before == answer.Undetermined || w.After == answer.Undetermined
}

// Side is a cell at one moment, with the reason and the rule of the first pair of members
// whose verdict changed.
type Side struct {
	Verdict answer.Verdict `json:"verdict"`
	Reason  string         `json:"reason,omitempty"`
	Rule    string         `json:"rule,omitempty"`
	Asked   []Answer       `json:"asked"`
}

// Changes asks each question at both moments, and calls answered after each cell with the number
// of questions so far. If ctx ends, the changes lack the other cells.
func (c *Comparison) Changes(ctx context.Context, answered func(questions int)) *Changes {
	changes := &Changes{Changed: []Change{}, Remarks: c.Remarks, rules: c.rules}
	next, stop := iter.Pull(c.cells(ctx, 0))
	defer stop()
	for after := range c.cells(ctx, 1) {
		before, ok := next()
		if !ok {
			break
		}
		changes.add(before, after)
		changes.Answered += len(after.Asked)
		answered(changes.Answered)
	}
	return changes
}

// add compares a cell at two moments.
func (c *Changes) add(before, after Cell) {
	c.Compared++
	if before.Undetermined() || after.Undetermined() {
		c.Undetermined++
	}
	for i, was := range before.Asked {
		if is := after.Asked[i]; c.differ(was, is) {
			c.Changed = append(c.Changed, Change{after.From, after.To, after.Port,
				Witness{was.From, was.To, cmp.Or(was.packet, is.packet), was.Verdict, is.Verdict},
				Side{before.Verdict, was.Reason, was.Rule, before.Asked}, Side{after.Verdict, is.Reason, is.Rule, after.Asked}})
			return
		}
	}
}

// differ reports whether a pair has another verdict than before or, if rules are compared, the same verdict
// for another reason or by rules that do something else.
func (c *Changes) differ(was, is Answer) bool {
	if was.Verdict != is.Verdict {
		return true
	}
	return c.rules && was.Verdict != answer.Undetermined && (was.Reply != is.Reply || was.Reason != is.Reason || !slices.Equal(was.decisions, is.decisions))
}
