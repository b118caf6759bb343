package reach

import (
	"context"
	"iter"

	"ovs-offline/trace"
	"ovs-offline/trace/answer"
)

// Comparison is the same matrix at two moments.
type Comparison struct{ *Matrix }

// Compare returns the matrix of the endpoints that are in both sessions. The members of a
// group behave alike in each of the two.
func Compare(ctx context.Context, before, after *trace.Session, o Options) (*Comparison, error) {
	m, err := newMatrix(ctx, o, before, after)
	if err != nil {
		return nil, err
	}
	return &Comparison{m}, nil
}

// Changes are the cells that changed their verdicts: what "reach OLD NEW -o json" prints.
type Changes struct {
	Changed []Change `json:"changed"`
	// Compared is the number of cells that were asked at both moments, of which some answer
	// was undetermined in Undetermined.
	Compared     int      `json:"compared"`
	Undetermined int      `json:"undetermined"`
	Remarks      []string `json:"remarks,omitempty"`
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

// Cells asks each question at both moments, and yields the cells in pairs.
func (c *Comparison) Cells(ctx context.Context) iter.Seq2[Cell, Cell] {
	return func(yield func(before, after Cell) bool) {
		next, stop := iter.Pull(c.cells(ctx, 0))
		defer stop()
		for after := range c.cells(ctx, 1) {
			before, ok := next()
			if !ok || !yield(before, after) {
				return
			}
		}
	}
}

// Add compares a cell at two moments.
func (c *Changes) Add(before, after Cell) {
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
