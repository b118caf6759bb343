package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// stage is a stage of a kind of datapath.
type stage struct {
	name string
	// always is set if the datapath has a logical flow in the stage that every packet
	// matches. Then a packet without a flow misses one that the logical flows call for.
	always bool
}

// stage returns the stage in a table of a pipeline of a datapath.
func (r *Rules) stage(pipeline string, table int, d ovn.Datapath) (stage, error) {
	var s stage
	err := r.inStage(pipeline, table, func(row ovsdb.Row) bool {
		name := row.Map("external_ids")["stage-name"]
		if router := strings.HasPrefix(name, "lr_"); router != d.Router && d.Name != "" {
			return true
		}
		if s.name == "" {
			s.name = name
		}
		if priority, _ := row.Int("priority"); priority == 0 && strings.TrimSpace(row.String("match")) == "1" {
			_, member := r.datapathOfFlow(row, d.Key)
			s.always = s.always || member
		}
		return !s.always
	})
	if s.name == "" {
		s.name = fmt.Sprintf("%s table %d", pipeline, table)
	}
	return s, err
}

// StageOf returns the name of the stage in a flow's table, or another name for the table.
func (r *Rules) StageOf(f Flow) (string, error) {
	pipeline, table := f.Layout.logical(f.Table)
	if pipeline == "" {
		return f.Layout.physical(f.Table), nil
	}
	s, err := r.stage(pipeline, table, r.Datapath(f.Metadata))
	return s.name, err
}

// state matches the parts of a match about conntrack and registers.
var state = lazyregexp.New(`!?\b(?:reg|ct|flags|xreg|xxreg)[^&|()]*`)

// Candidate is a logical flow of a stage that may match packets between two ports.
type Candidate struct {
	stageFlow
	present bool // the node has its flow
}

// Candidates returns the logical flows of the stage of a flow that may match packets with the
// ports of a subject, whatever the packet is; none if the node has the flows of them all.
// present reports whether a cookie is in the table of the flow.
func (r *Rules) Candidates(f Flow, s Subject, present func(cookie uint64) bool) ([]Candidate, error) {
	pipeline, table := f.Layout.logical(f.Table)
	if pipeline == "" {
		return nil, nil
	}
	s.anyPacket = true
	var all []Candidate
	lacks := false
	flows, err := r.flowsOf(pipeline, table)
	for _, flow := range flows {
		if !flow.isFor(f.Metadata) || r.evaluate(flow.match, s) < possible {
			continue
		}
		cookie, _ := strconv.ParseUint(flow.uuid[:8], 16, 32)
		c := Candidate{flow, present(cookie)}
		lacks = lacks || !c.present
		all = append(all, c)
	}
	if !lacks {
		return nil, err
	}
	return all, err
}

// Lacking returns the candidates that a node lacks and that would have let a packet pass. The packet
// ended at a flow with a priority, -1 if it matched none; candidates with a higher priority match it,
// as far as conntrack and registers are known. A flow that the node has, with the same priority and
// the same conditions on conntrack and registers, may stand for a candidate, because ovn-controller
// writes one flow for several with the same match. A flow that certainly matches the packet does not
// stand for one: the packet would have met it.
func (r *Rules) Lacking(candidates []Candidate, priority int, s Subject) ([]Rule, error) {
	var lacking []Rule
	written := map[string]bool{}
	kind := func(priority int, match string) string {
		return fmt.Sprint(priority, state.FindAllString(match, -1))
	}
	for _, c := range candidates {
		result := r.evaluate(c.match, s)
		if c.priority <= priority || result < possible {
			continue
		}
		if c.present {
			written[kind(c.priority, c.match)] = written[kind(c.priority, c.match)] || result < holds
			continue
		}
		row, ok, err := r.sb.Row(logicalFlow, c.uuid)
		if err != nil {
			return nil, err
		}
		rule, err := r.LogicalFlow(row)
		if err != nil {
			return nil, err
		}
		if ok && !strings.HasPrefix(rule.Actions, "drop") && rule.Cause.Action != "drop" && rule.Cause.Action != "reject" {
			lacking = append(lacking, rule)
		}
	}
	return slices.DeleteFunc(lacking, func(rule Rule) bool { return written[kind(rule.Priority, rule.Match)] }), nil
}
