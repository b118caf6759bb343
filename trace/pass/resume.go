package pass

import (
	"slices"
	"strings"

	"ovs-offline/trace/odp"
)

// ForkedOn returns the bridge on which a recirculation that the pass starts will be
// resumed: that of the stage that started it.
func (p *Pass) ForkedOn(id uint32) string {
	var bridges []string
	for _, s := range p.Stages {
		for _, l := range s.Lines {
			if strings.Contains(l, "forked to recirculate") {
				bridges = append(bridges, s.Bridge)
			}
		}
	}
	ids := recirculations(p.Actions)
	at := slices.Index(ids, id)
	switch {
	case at >= 0 && len(ids) == len(bridges):
		return bridges[at]
	case len(bridges) > 0:
		return bridges[len(bridges)-1]
	}
	last, _ := p.Last()
	return last.Bridge
}

// recirculations returns the recirculations of actions in their order.
func recirculations(actions []odp.Action) []uint32 {
	var ids []uint32
	for _, action := range actions {
		switch a := action.(type) {
		case odp.Recirculate:
			ids = append(ids, a.ID)
		case odp.Clone:
			ids = append(ids, recirculations(a.Actions)...)
		case odp.Sample:
			ids = append(ids, recirculations(a.Actions)...)
		case odp.CheckLength:
			ids = append(append(ids, recirculations(a.Greater)...), recirculations(a.AtMost)...)
		}
	}
	return ids
}

// On returns the pass, which resumes a recirculation on a bridge, with that bridge: for the
// stages before the packet enters another one, ofproto/trace prints the bridge by which
// the packet came in.
func (p *Pass) On(bridge string) *Pass {
	if len(p.Stages) == 0 || bridge == "" || p.Stages[0].Bridge == bridge {
		return p
	}
	resumed := *p
	resumed.Stages = slices.Clone(p.Stages)
	printed := p.Stages[0].Bridge
	for i := range resumed.Stages {
		if s := &resumed.Stages[i]; s.Bridge == printed && !s.entered {
			s.Bridge = bridge
		}
	}
	return &resumed
}
