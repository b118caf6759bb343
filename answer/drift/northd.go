package drift

import (
	"context"
	"errors"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

// Northd is the comparison of the logical flows in the SB database with those that
// ovn-northd makes of the NB database.
type Northd struct {
	Compared int          `json:"compared"` // recorded logical flows, one for each datapath that they are for
	Same     int          `json:"same"`
	Missing  []Difference `json:"missing"`
	Extra    []Difference `json:"extra"`
	Altered  []Difference `json:"altered"`
}

// logicalFlows compares the logical flows.
func (c *comparison) logicalFlows(ctx context.Context) error {
	c.options.progress("ovn-northd computes the logical flows")
	err := c.run(ctx, scratch.Options{Northd: true, NB: c.node.wd.Database(workdir.NB)}, func(*scratch.Scratch) error {
		computed, err := file.OpenIndex(ctx, c.dir.WorkingCopy(workdir.SB))
		if err != nil {
			return err
		}
		defer computed.Close()
		c.options.progress("comparing logical flows")
		return c.compareLogical(computed)
	})
	if errors.Is(err, scratch.ErrNotReady) {
		c.report.undetermined(err.Error())
		return nil
	}
	return err
}

// compareLogical compares the recorded logical flows with the computed ones.
func (c *comparison) compareLogical(computed *file.Index) error {
	recorded, err := flowdiff.ReadLogical(c.nb, c.sb)
	if err != nil {
		return err
	}
	expected, err := flowdiff.ReadLogical(c.nb, computed)
	if err != nil {
		return err
	}
	diff := flowdiff.CompareLogical(recorded, expected)
	result := &Northd{Compared: recorded.Len(), Same: diff.Same}
	c.report.Northd = result
	for _, part := range []struct {
		changes []flowdiff.LogicalChange
		into    *[]Difference
	}{{diff.OnlyB, &result.Missing}, {diff.OnlyA, &result.Extra}, {diff.Changed, &result.Altered}} {
		if *part.into, err = flowdiff.NameLogical(part.changes, logicalEntryOf); err != nil {
			return err
		}
		if len(part.changes) > 0 {
			c.report.Verdict = Found
		}
	}
	return nil
}

func logicalEntryOf(change flowdiff.LogicalChange) Entry {
	return Entry{Kind: flowdiff.KindLogicalFlow, Recorded: change.A, Computed: change.B, logical: change.Key}
}
