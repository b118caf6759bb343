package pass

import (
	"slices"
	"strings"
	"unique"

	"ovs-offline/trace/flow"
	"ovs-offline/trace/odp"
)

// Detached returns the pass without its text, for keeping. Its strings are no parts of the
// text, and passes share those of the flows that they matched.
func (p *Pass) Detached() *Pass {
	d := *p
	d.Text = ""
	d.Flow = flow.Packet{}
	for _, f := range p.Flow.Fields() {
		d.Flow.Set(shared(f.Name), shared(f.Value))
	}
	d.Final, d.Megaflow, d.Failure = strings.Clone(p.Final), strings.Clone(p.Megaflow), shared(p.Failure)
	d.ActionsText = strings.Clone(p.ActionsText)
	d.Actions = odp.Parse(d.ActionsText)
	d.Resumed, d.Errors, d.Warnings, d.SlowPath = allShared(p.Resumed), allShared(p.Errors), allShared(p.Warnings), allShared(p.SlowPath)
	d.Stages = slices.Clone(p.Stages)
	for i := range d.Stages {
		s := &d.Stages[i]
		s.Bridge, s.Flow, s.Lines = shared(s.Bridge), shared(s.Flow), allShared(s.Lines)
	}
	return &d
}

// shared returns the one copy of a text.
func shared(text string) string { return unique.Make(text).Value() }

func allShared(texts []string) []string {
	if texts == nil {
		return nil
	}
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = shared(text)
	}
	return list
}
