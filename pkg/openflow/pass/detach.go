package pass

import (
	"slices"
	"strings"
	"unique"

	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
)

// Detached returns the pass without its text, for keeping. Its strings are not parts of the
// text, and passes share the texts of the flows that they matched.
func (p *Pass) Detached() *Pass {
	pass := *p
	pass.Text = ""
	pass.Flow = flow.Packet{}
	for _, field := range p.Flow.Fields() {
		pass.Flow.Set(intern(field.Name), intern(field.Value))
	}
	pass.Final, pass.Megaflow, pass.Failure = strings.Clone(p.Final), strings.Clone(p.Megaflow), intern(p.Failure)
	pass.ActionsText = strings.Clone(p.ActionsText)
	pass.Actions = odp.Parse(pass.ActionsText)
	pass.Resumed, pass.Errors, pass.Warnings, pass.SlowPath = internAll(p.Resumed), internAll(p.Errors), internAll(p.Warnings), internAll(p.SlowPath)
	pass.Stages = slices.Clone(p.Stages)
	for i := range pass.Stages {
		stage := &pass.Stages[i]
		stage.Bridge, stage.Flow, stage.Lines = intern(stage.Bridge), intern(stage.Flow), internAll(stage.Lines)
	}
	return &pass
}

// intern returns the one copy of a text.
func intern(text string) string { return unique.Make(text).Value() }

// internAll returns the one copy of each text.
func internAll(texts []string) []string {
	if texts == nil {
		return nil
	}
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = intern(text)
	}
	return list
}
