package pass

import (
	"fmt"
	"strings"
)

// Resume sets the bridge of the stages of a pass that resumes a recirculation of another
// one. ofproto/trace prints the bridge that the packet entered, but the pipeline goes on
// in the bridge that recirculated the packet (xlate_actions in ofproto-dpif-xlate.c).
func (p *Pass) Resume(after *Pass) {
	bridge := after.recirculatedIn(p)
	if bridge == "" {
		return
	}
	for i := range p.Stages {
		if p.Stages[i].outer {
			p.Stages[i].Bridge = bridge
		}
	}
}

// recirculatedIn returns the bridge of the stage that recirculated the packet for the
// next pass: one that sent it to conntrack and the table at which the next pass begins,
// else any that recirculates. It is "" if there is none.
func (p *Pass) recirculatedIn(next *Pass) string {
	bridge := ""
	for _, s := range p.Stages {
		for _, line := range s.Lines {
			tracked := strings.HasPrefix(line, "ct(") && strings.Contains(line, "table=")
			if !tracked && !strings.HasPrefix(line, "group:") {
				continue
			}
			bridge = s.Bridge
			if tracked && len(next.Stages) > 0 && strings.Contains(line, fmt.Sprintf("table=%d,", next.Stages[0].Table)) {
				return bridge
			}
		}
	}
	return bridge
}
