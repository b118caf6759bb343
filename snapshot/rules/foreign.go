package rules

import (
	"fmt"
	"strings"
)

// Foreign are the words for a flow that ovn-controller did not write.
const Foreign = "no logical flow: ovn-controller did not write it"

// isForeign reports whether ovn-controller did not write a flow of the integration bridge. found is
// set if a row has the cookie of the flow. ovn-controller gives each flow of a pipeline the cookie of
// its logical flow, except for the clauses of a conjunction. Outside of the pipelines, its flows
// without a cookie that drop packets have priority 0 (controller/lflow.c and
// controller/physical.c of OVN); other flows without a cookie may be its own.
func (f Flow) isForeign(found bool, actions ...string) bool {
	drops := len(actions) == 0 || len(actions) == 1 && actions[0] == "drop"
	switch {
	case f.Cookie > 0xffffffff:
		return true
	case f.Cookie != 0:
		return !found
	case f.Layout == (Layout{}):
		return false
	case f.Layout.IsLogical(f.Table):
		return len(actions) != 1 || !strings.HasPrefix(actions[0], "conjunction(")
	}
	return drops && f.Priority > 0
}

// foreignRule returns the rule of a flow that ovn-controller did not write. If OVN can have written
// its cookie, the row may have been deleted as well.
func (r *Rules) foreignRule(f Flow, match string) Rule {
	words := fmt.Sprintf("flow %q, priority %d, cookie %#x, of %s", match, f.Priority, f.Cookie, Foreign)
	if f.Cookie != 0 && f.Cookie <= 0xffffffff {
		words += ", or its southbound row no longer exists"
	}
	rule := Rule{Stage: f.Layout.physical(f.Table), Words: words, Foreign: true, Datapath: r.Datapath(f.Metadata)}
	if name, err := r.StageOf(f); err == nil {
		rule.Stage = name
	}
	return rule
}

// IsForeign reports whether ovn-controller can't have written a flow of the integration bridge,
// whatever rows there are.
func (f Flow) IsForeign(actions string) bool { return f.isForeign(true, actions) }
