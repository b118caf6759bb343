package reach

import (
	"context"
	"iter"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
)

// Comparison is the same matrix at two moments.
type Comparison struct{ *Matrix }

// Compare returns the matrix of the endpoints that are in both sessions. The members of a
// group behave alike in each of the two.
func Compare(ctx context.Context, before, after *trace.Session, options Options) (*Comparison, error) {
	matrix, err := newMatrix(ctx, options, before, after)
	if err != nil {
		return nil, err
	}
	return &Comparison{matrix}, nil
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
}

// Change is a cell with another verdict than before.
type Change struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Port   Port   `json:"port"`
	Before Side   `json:"before"`
	After  Side   `json:"after"`
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
	changes := &Changes{Changed: []Change{}, Remarks: c.Remarks}
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
		if is := after.Asked[i]; was.Verdict != is.Verdict {
			c.Changed = append(c.Changed, Change{after.From, after.To, after.Port,
				Side{before.Verdict, was.Reason, was.Rule, before.Asked}, Side{after.Verdict, is.Reason, is.Rule, after.Asked}})
			return
		}
	}
}
