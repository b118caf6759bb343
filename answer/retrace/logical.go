package retrace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovntrace"
	"ovs-offline/pkg/openflow"
	"ovs-offline/snapshot/rules"
)

// readLogical reads the output of an ovn-trace.
func (r *reader) readLogical(t *Traced) error {
	question := t.trace.Question()
	read, err := ovntrace.Parse(t.trace.Text)
	if err != nil {
		t.Verdict, t.Missing = Undetermined, []string{fmt.Sprintf("it can't be read: %v", err)}
		return nil
	}
	t.Packet = cmp.Or(read.Packet.String(), question.Microflow)
	if len(read.Stages) > 0 {
		t.Bridge, t.InPort = read.Stages[0].Datapath, read.Stages[0].InPort
	}
	t.Bridge = cmp.Or(t.Bridge, question.Datapath)
	for _, state := range read.Assumed {
		if text := fmt.Sprintf("conntrack finds %s, because no --ct says otherwise", state); !slices.Contains(t.Assumed, text) {
			t.Assumed = append(t.Assumed, text)
		}
	}
	t.result = logicalResult(read)
	var steps []rules.Step
	for _, stage := range read.Stages {
		place, rule, err := r.logicalPlace(stage)
		if err != nil {
			return err
		}
		t.Stages = append(t.Stages, place)
		steps = append(steps, rules.Step{Table: stage.Table, Rule: rule})
	}
	t.result.stages = t.Stages
	t.Verdict, t.Ends, t.Missing = t.result.verdict(), t.result.ends(), t.result.missing
	last, ok := read.Last()
	if !ok {
		return nil
	}
	at := slices.IndexFunc(read.Stages, func(s ovntrace.Stage) bool { return sameStage(s, last) })
	place := t.Stages[at]
	t.Where = &place
	if t.Verdict == Dropped {
		return r.explainLogical(t, last, steps[:at+1])
	}
	return nil
}

func sameStage(a, b ovntrace.Stage) bool {
	return a.Pipeline == b.Pipeline && a.Datapath == b.Datapath && a.Table == b.Table && a.UUID == b.UUID && a.OutPort == b.OutPort
}

// logicalResult returns what becomes of the packet.
func logicalResult(read *ovntrace.Trace) (f result) {
	for _, output := range read.Outputs {
		text := fmt.Sprintf("it leaves by logical port %s", output.Port)
		if output.Type != "" {
			text += " (type " + output.Type + ")"
		}
		f.outputs = append(f.outputs, text)
	}
	for _, reply := range read.Replies {
		f.note("OVN answers with %s", reply)
	}
	for _, text := range read.Errors {
		if strings.HasPrefix(text, "TTL underflow") {
			continue // it is dropped
		}
		f.miss("ovn-trace gives up: %s", text)
	}
	if len(read.Stages) == 0 && len(f.outputs) == 0 && read.IsDetailed {
		f.miss("no lookup was pasted")
	}
	return f
}

// logicalPlace describes a lookup in a logical table, and returns its rule: from the databases, or as it is printed.
func (r *reader) logicalPlace(stage ovntrace.Stage) (Place, rules.Rule, error) {
	place := Place{Datapath: stage.Datapath, Pipeline: stage.Pipeline, Table: stage.Table, Stage: stage.Name, Actions: strings.Join(stage.Actions, "\n")}
	rule := rules.Rule{Row: ovn.LogicalFlowTable, Pipeline: stage.Pipeline, Stage: stage.Name, Table: stage.Table, Priority: stage.Priority,
		Match: stage.Match, Actions: strings.Join(stage.Actions, " ")}
	if stage.Miss {
		return place, rule, nil
	}
	place.Flow = fmt.Sprintf("%s, priority %d", stage.Match, stage.Priority)
	place.match, place.Cookie = stage.Match, "0x"+stage.UUID
	cookie, err := strconv.ParseUint(stage.UUID, 16, 32)
	if err != nil {
		place.Cookie = ""
	}
	if r.sb == nil || err != nil {
		return place, rule, nil
	}
	for _, uuid := range r.sb.Begins(ovn.LogicalFlowTable, uint32(cookie)) {
		row, ok, err := r.sb.Row(ovn.LogicalFlowTable, uuid)
		if err != nil {
			return place, rule, err
		}
		if table, _ := row.Int("table_id"); !ok || table != stage.Table || row.String("pipeline") != stage.Pipeline {
			continue
		}
		if rule, err = r.rules.LogicalFlow(row); err != nil {
			return place, rule, err
		}
		place.Stage, place.Rule = cmp.Or(rule.Stage, place.Stage), rule.Words
	}
	return place, rule, nil
}

// explainLogical adds the reason for a drop.
func (r *reader) explainLogical(t *Traced, last ovntrace.Stage, steps []rules.Step) error {
	if last.Miss {
		t.Reason, t.Why = string(rules.MissingFlow), "no logical flow matches (implicit drop)"
		return nil
	}
	drop, err := r.rules.Drop(rules.End{Steps: steps})
	if err != nil {
		return err
	}
	t.Reason = string(drop.Reason)
	t.Where.Rule = cmp.Or(drop.Rule.Words, t.Where.Rule)
	for _, action := range last.Actions {
		if strings.HasPrefix(action, "/* omitting output") {
			t.Reason = string(rules.InputPort)
		}
	}
	return nil
}

// actionsOf returns actions in one form.
func actionsOf(lines string) string {
	var kept []string
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" || line == "drop" || strings.HasPrefix(line, "->") || strings.HasPrefix(line, ">>") || strings.HasPrefix(line, "/*") {
			continue
		}
		kept = append(kept, line)
	}
	return (&openflow.Canonical{}).Actions(strings.Join(kept, ","))
}
