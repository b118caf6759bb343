package answer

import (
	"cmp"
	"strings"
)

// Group is consecutive stages of a hop in one pipeline, or else in one bridge.
type Group struct {
	Name   string
	First  int // index of the first stage in the hop
	Stages []Stage
}

// Groups returns the stages of a hop in groups. A lookup in a table outside of the
// pipelines, after which the pipeline goes on, belongs to its group.
func (h *Hop) Groups() []Group {
	var all []Group
	for i, stage := range h.Stages {
		name := stage.groupName(h)
		if n := len(all); stage.Pipeline == "" && n > 0 && h.pipelineAfter(i) == all[n-1].Name {
			name = all[n-1].Name
		}
		if n := len(all); n == 0 || all[n-1].Name != name {
			all = append(all, Group{Name: name, First: i})
		}
		last := &all[len(all)-1]
		last.Stages = append(last.Stages, stage)
	}
	return all
}

// pipelineAfter returns the pipeline of the next stage that is in one.
func (h *Hop) pipelineAfter(stage int) string {
	for _, s := range h.Stages[stage:] {
		if s.Pipeline != "" {
			return s.groupName(h)
		}
	}
	return ""
}

// groupName returns the pipeline of a stage, or its bridge or network namespace where it is in none.
func (s *Stage) groupName(h *Hop) string {
	if s.Chain != "" {
		return "namespace " + h.Bridge
	}
	if s.Pipeline == "" {
		return "bridge " + cmp.Or(s.OnBridge, h.Bridge)
	}
	return strings.TrimPrefix(s.Datapath+", "+s.Pipeline, ", ")
}
