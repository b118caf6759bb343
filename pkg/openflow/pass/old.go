package pass

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/flow"
)

// Open vSwitch 2.7 and before print a trace in another form (trace_format_rule and the functions after
// it in ofproto/ofproto-dpif.c of 2.5): each flow that matched with all its actions, and below it, after
// one more tab, the flows that these looked up. Recirculations are not followed.

// oldRule begins the line with a flow that matched: "Rule: table=0 cookie=0x5 priority=1,in_port=1".
const oldRule = "Rule: table="

// isOld reports whether a text is a trace in the old form.
func isOld(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, oldRule) {
			return true
		}
		if strings.HasPrefix(line, "bridge(") {
			return false
		}
	}
	return strings.HasPrefix(text, "Bridge: ")
}

// parseOld reads a trace in the old form.
func parseOld(text string) (*Pass, error) {
	pass := &Pass{Text: text, last: -1}
	bridge, found := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		plain := strings.TrimLeft(line, " \t")
		value, isFlow := strings.CutPrefix(plain, "Flow: ")
		switch name, isBridge := strings.CutPrefix(plain, "Bridge: "); {
		case plain == "", strings.HasPrefix(plain, "#"):
		case isBridge && !found:
			bridge = name
		case isFlow && !found:
			var err error
			if pass.Flow, err = flow.Parse(value); err != nil {
				return nil, errors.Join(ErrNoPass, err)
			}
			found = true
		case !pass.readResult(oldResult(plain)):
			pass.readOld(plain, bridge, tabs(line))
		}
	}
	if !found {
		return nil, ErrNoPass
	}
	return pass, nil
}

// oldResult returns a line after the pipeline as newer releases print it.
func oldResult(line string) string {
	if megaflow, ok := strings.CutPrefix(line, "Relevant fields: "); ok { // before 2.1
		return "Megaflow: " + megaflow
	}
	if strings.HasPrefix(line, "- ") {
		return "  " + line
	}
	return line
}

// tabs returns the number of tabs before a line, each of which some programs show as eight blanks.
func tabs(line string) int {
	blank := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return strings.Count(blank, "\t") + strings.Count(blank, " ")/8
}

// readOld reads a line of the pipeline in the old form.
func (p *Pass) readOld(line, bridge string, depth int) {
	last := len(p.Stages) - 1
	if text, ok := strings.CutPrefix(line, oldRule); ok {
		p.addOldStage(text, bridge, depth)
		return
	}
	if actions, ok := strings.CutPrefix(line, "OpenFlow actions="); ok {
		if last >= 0 {
			p.Stages[last].Lines = append(p.Stages[last].Lines, slices.Collect(openflow.Split(actions))...)
		}
		return
	}
	switch {
	case strings.HasPrefix(line, "Resubmitted "):
	case line == "No match":
		parent := p.parentAt(depth)
		p.Stages = append(p.Stages, Stage{Bridge: bridge, Table: p.nextTable(parent), Miss: true, Depth: depth, outer: true, parent: parent})
		p.last = len(p.Stages) - 1
	case line == OutputSkipped, line == LearnIgnored:
		p.Warnings = append(p.Warnings, line)
		p.remark(">> "+line, depth)
	default:
		p.remark("-> "+line, depth)
	}
}

// remark adds a remark to the stage that was printed last at a depth or above, or to the pass.
func (p *Pass) remark(line string, depth int) {
	for i := len(p.Stages) - 1; i >= 0; i-- {
		if p.Stages[i].Depth <= depth {
			p.Stages[i].Lines = append(p.Stages[i].Lines, line)
			return
		}
	}
	p.Resumed = append(p.Resumed, line)
}

// addOldStage adds the stage of "TABLE cookie=COOKIE priority=PRIORITY,MATCH". A flow of the priority 32768 is
// printed without it.
func (p *Pass) addOldStage(text, bridge string, depth int) {
	stage := Stage{Bridge: bridge, Depth: depth, Priority: 32768, outer: true, parent: p.parentAt(depth)}
	table, text, _ := strings.Cut(text, " ")
	stage.Table, _ = strconv.Atoi(table)
	if cookie, rest, ok := strings.Cut(strings.TrimPrefix(text, "cookie="), " "); ok || cookie != "" {
		stage.Cookie, _ = strconv.ParseUint(cookie, 0, 64)
		text = rest
	}
	if priority, ok := strings.CutPrefix(text, "priority="); ok {
		number, match, _ := strings.Cut(priority, ",")
		stage.Priority, _ = strconv.Atoi(number)
		text = match
	}
	stage.Flow = text
	if n := len(p.Resumed); n > 0 && strings.HasPrefix(p.Resumed[n-1], "-> No match,") { // a flow that no controller wrote (table 254)
		stage.Lines = append(stage.Lines, p.Resumed[n-1])
		p.Resumed = p.Resumed[:n-1]
		stage.Miss, stage.Flow, stage.Table = true, "", 0
	}
	if stage.parent >= 0 && stage.Table == 0 && !p.Stages[stage.parent].looksUp(0) {
		stage.Bridge = "" // behind a patch port
	} else if stage.parent >= 0 {
		stage.Bridge = p.Stages[stage.parent].Bridge
	}
	p.Stages = append(p.Stages, stage)
	p.last = len(p.Stages) - 1
}

// parentAt returns the index of the stage whose actions look up one at a depth, -1 for none.
func (p *Pass) parentAt(depth int) int {
	for i := len(p.Stages) - 1; i >= 0; i-- {
		if p.Stages[i].Depth < depth {
			return i
		}
	}
	return -1
}

// nextTable returns the table that a stage looks up next, by its actions; 0 if they don't tell.
func (p *Pass) nextTable(stage int) int {
	if stage < 0 {
		return 0
	}
	before := 0
	for _, other := range p.Stages {
		if other.parent == stage {
			before++
		}
	}
	for _, action := range p.Stages[stage].Lines {
		arguments, resubmits := strings.CutPrefix(action, "resubmit")
		if !resubmits {
			continue
		}
		if before--; before < 0 {
			_, table, _ := strings.Cut(strings.Trim(arguments, "(:)"), ",")
			number, _ := strconv.ParseUint(table, 10, 8)
			return int(number)
		}
	}
	return 0
}

// looksUp reports whether the actions of a stage may look up a flow in a table of the same bridge.
func (s Stage) looksUp(table int) bool {
	return slices.ContainsFunc(s.Lines, func(action string) bool {
		arguments, resubmits := strings.CutPrefix(action, "resubmit")
		_, of, several := strings.Cut(strings.Trim(arguments, "(:)"), ",")
		return resubmits && (!several || of == strconv.Itoa(table)) || strings.HasPrefix(action, "group:")
	})
}
