package pass

import (
	"fmt"
	"slices"
	"strings"
)

// Resume sets the bridge of the stages of a pass that resumes a recirculation of another
// one. ofproto/trace prints the bridge that the packet entered, but the pipeline goes on
// in the bridge that recirculated the packet (xlate_actions in ofproto-dpif-xlate.c).
func (p *Pass) Resume(after *Pass) {
	p.resumedIn = after.recirculatedIn(p)
	if last, ok := after.End(); ok && len(p.Stages) == 0 {
		p.resumedAt = &last
	}
	if p.resumedIn == "" {
		return
	}
	for i := range p.Stages {
		if p.Stages[i].outer {
			p.Stages[i].Bridge = p.resumedIn
		}
	}
}

// End returns the stage in which the pass ended: the last one, or for a pass that only executes the rest of the actions of a stage, such as
// the bucket of a group, that stage.
func (p *Pass) End() (stage Stage, ok bool) {
	if p.resumedAt != nil {
		return *p.resumedAt, true
	}
	return p.Last()
}

// recirculatedIn returns the bridge of the stage that recirculated the packet for the next
// pass, "" if no stage did: one that sent it to conntrack and the table at which the next pass
// begins, else any that recirculates. Actions that the pass itself resumed with, such as the
// actions of a group's bucket, are in the bridge in which it resumed.
func (p *Pass) recirculatedIn(next *Pass) string {
	bridge := ""
	for _, stage := range append([]Stage{{Bridge: p.resumedIn, Lines: p.Resumed}}, p.Stages...) {
		for _, line := range stage.Lines {
			tracked := strings.HasPrefix(line, "ct(") && strings.Contains(line, "table=")
			if !tracked && !strings.HasPrefix(line, "group:") {
				continue
			}
			bridge = stage.Bridge
			if tracked && len(next.Stages) > 0 && strings.Contains(line, fmt.Sprintf("table=%d,", next.Stages[0].Table)) {
				return bridge
			}
		}
	}
	return bridge
}

// Behind returns the pass as the rest of another one, which it continues behind a lookup: the
// stages of the other one before the lookup, the stage of the lookup itself, and its own.
func (p *Pass) Behind(other *Pass, lookup int, stage Stage) *Pass {
	whole := *p
	whole.ID, whole.Flow, whole.Resumed = other.ID, other.Flow, other.Resumed
	whole.Stages = append(slices.Clone(other.Stages[:lookup]), stage)
	before := len(whole.Stages)
	for _, later := range p.Stages {
		if later.parent >= 0 {
			later.parent += before
		}
		whole.Stages = append(whole.Stages, later)
	}
	whole.last = p.last + before
	if p.last < 0 {
		whole.last = lookup
	}
	return &whole
}
