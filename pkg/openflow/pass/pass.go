// Package pass reads what ofproto/trace prints. One run of it prints a pass: the way of
// a packet through the tables of one or more bridges up to the datapath actions. Where
// these recirculate the packet, it prints further passes, for which it assumes what
// conntrack would have answered.
package pass

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
)

// Pass is one way of a packet through the tables, up to the datapath actions.
type Pass struct {
	// ID is the recirculation that the pass resumes, 0 for the first.
	ID uint32
	// Flow is the packet as the pass begins, Final as ovs-vswitchd's pipeline left it,
	// which is not what it sends: see Actions.
	Flow     flow.Packet
	Final    string
	Megaflow string
	Stages   []Stage
	// Resumed are the actions and remarks that belong to no stage: a recirculation
	// restored them.
	Resumed     []string
	Actions     []odp.Action
	ActionsText string
	// Errors are the lines ">>>> ... <<<<" of ovs-vswitchd, Warnings the lines ">> ...".
	Errors   []string
	Warnings []string
	// SlowPath holds the reasons for which ovs-vswitchd handles the packet itself.
	SlowPath []string
	// Failure is why the translation failed, after which the packet is dropped.
	Failure string
	// Text is the pass as printed.
	Text string
	last int // index of the stage that executed the last action, -1 for none

	headers   int    // number of bridges that were printed
	resumedIn string // the bridge in which the pass continues, "" if it enters a bridge
	resumedAt *Stage // whose actions the pass continues, nil for a pass with stages of its own
}

// LearnIgnored is the warning of ofproto/trace about an action learn.
const LearnIgnored = "suppressing side effects, so learn action ignored"

// OutputSkipped is the warning about an output to the port by which the packet came: OpenFlow sends
// there only with the action IN_PORT.
const OutputSkipped = "skipping output to input port"

// Stage is a lookup in a flow table, with the actions of the flow that matched; or a rule of netfilter that a
// packet met in a network namespace.
type Stage struct {
	Bridge string // or the namespace
	// Chain is the table and chain of netfilter ("nat PREROUTING"), "" for a flow table. Flow is the rule
	// then, "" for the chain's policy, and Lines has what it decided.
	Chain    string
	Table    int
	Flow     string // the match of the flow, "" for a flow that matches all packets
	Priority int
	Cookie   uint64
	Miss     bool // no flow matched
	// Lines are the actions and remarks of the stage, without the lines of the stages below
	// it, each without the space before it.
	Lines []string
	Depth int // of nested lookups; a stage that follows another has the same depth

	outer bool // the stage is in the bridge that was printed first
	// parent is the index of the stage that the lookup is nested in, -1 for none. after is the
	// number of lines of this stage, or of the pass, that were printed before the lookup.
	parent, after int
}

// Key returns the key of the flow of a stage.
func (s Stage) Key() openflow.Key {
	return openflow.Key{Cookie: s.Cookie, Table: s.Table, Priority: s.Priority, Match: s.Flow}
}

// Last returns the stage that executed the pass's last action; ok is false for a pass
// without stages. Where a packet was dropped, it was dropped there.
func (p *Pass) Last() (stage Stage, ok bool) {
	if p.last < 0 || p.last >= len(p.Stages) {
		return Stage{}, false
	}
	return p.Stages[p.last], true
}

// SkippedBefore reports whether ovs-vswitchd skipped an output of the stage before this one, because
// it was to the port by which the packet came.
func (p *Pass) SkippedBefore(stage Stage) bool {
	for i := len(p.Stages) - 1; i > 0; i-- {
		if at := p.Stages[i]; at.Bridge == stage.Bridge && at.Table == stage.Table && at.Flow == stage.Flow && at.Depth == stage.Depth {
			return slices.Contains(p.Stages[i-1].Lines, ">> "+OutputSkipped)
		}
	}
	return false
}

// Failed returns why ovs-vswitchd gave up on the packet, "" if it did not. Behind a patch
// port it prints the error without a failure of the pass.
func (p *Pass) Failed() string {
	texts := slices.Clone(p.Errors)
	if p.Failure != "" {
		texts = append([]string{p.Failure}, texts...)
	}
	return strings.Join(slices.Compact(texts), ": ")
}

// Buckets returns the buckets of groups that the pass used, in order.
func (p *Pass) Buckets() []string {
	var list []string
	for line := range p.lines {
		if id, ok := strings.CutPrefix(line, "-> using bucket "); ok {
			list = append(list, id)
		}
	}
	return list
}

// lines yields all actions and remarks.
func (p *Pass) lines(yield func(string) bool) {
	for _, line := range p.Resumed {
		if !yield(line) {
			return
		}
	}
	for _, stage := range p.Stages {
		for _, line := range stage.Lines {
			if !yield(line) {
				return
			}
		}
	}
}

// Floods reports whether the stage sent the packet to all ports, because no MAC address was learned for
// its destination.
func (s Stage) Floods() bool { return slices.ContainsFunc(s.Lines, isFlood) }

func isFlood(line string) bool {
	return strings.Contains(line, "no learned MAC for destination, flooding")
}

// Floods reports whether the pass sent the packet to all ports, because no MAC address
// was learned for its destination.
func (p *Pass) Floods() bool {
	for line := range p.lines {
		if isFlood(line) {
			return true
		}
	}
	return false
}

// Sets reports whether an action of the pass sets a field. The order of actions in nested
// lookups is not known, so an action that comes later counts too.
func (p *Pass) Sets(field string) bool {
	for line := range p.lines {
		if flow.PrintedName(openflow.Target(line)) == field {
			return true
		}
	}
	return false
}

// HashMask returns the bits of dp_hash on which the pass depends, 0 for none.
func (p *Pass) HashMask() uint32 {
	match := hashMask.FindStringSubmatch(p.Megaflow)
	if match == nil {
		return 0
	}
	mask, _ := strconv.ParseUint(match[1], 0, 32)
	return uint32(mask)
}

// Controllers returns the stages with a controller action, and the userdata of each.
func (p *Pass) Controllers() []Controller {
	var list []Controller
	stages := append([]Stage{{Lines: p.Resumed}}, p.Stages...)
	for i, stage := range stages {
		for _, line := range stage.Lines {
			if !strings.HasPrefix(line, "controller(") && !strings.HasPrefix(line, "CONTROLLER:") {
				continue
			}
			if match := controller.FindStringSubmatch(line); match != nil {
				list = append(list, Controller{Stage: i - 1, Userdata: userdata.FindString(match[1]), Pause: strings.Contains(match[1], "pause")})
			} else {
				list = append(list, Controller{Stage: i - 1})
			}
		}
	}
	return list
}

// Controller is a controller action of a stage.
type Controller struct {
	Stage    int    // -1 for a restored action
	Userdata string // bytes in hexadecimal, joined by dots; "" for none
	Pause    bool   // the pipeline waits for the controller
}

var (
	controller = lazyregexp.New(`^controller\((.*)\)$`)
	hashMask   = lazyregexp.New(`\bdp_hash=0x[0-9a-f]+/(0x[0-9a-f]+)`)
	userdata   = lazyregexp.New(`\b[0-9a-f]{2}(\.[0-9a-f]{2})+\b`)

	resumed   = lazyregexp.New(`(?m)^recirc\((0x[0-9a-f]+)\)`)
	separator = strings.Repeat("=", 79)
)

// ErrNoPass is wrapped when a text holds no pass: ovs-vswitchd printed something else.
var ErrNoPass = errors.New("not the output of ofproto/trace")

// Parse reads the output of one ofproto/trace: its passes in the order in which they
// were printed, at least one. Open vSwitch before 2.8 prints one pass, in another form.
func Parse(text string) ([]*Pass, error) {
	if isOld(text) {
		pass, err := parseOld(text)
		if err != nil {
			return nil, err
		}
		return []*Pass{pass}, nil
	}
	var list []*Pass
	var id uint32
	for i, part := range strings.Split(text, separator+"\n") {
		if i%2 == 1 { // the heading of the pass that follows
			id = 0
			if match := resumed.FindStringSubmatch(part); match != nil {
				n, _ := strconv.ParseUint(match[1], 0, 32)
				id = uint32(n)
			}
			continue
		}
		pass, err := parsePass(strings.Trim(part, "\n"))
		if err != nil && len(list) > 0 {
			return list, nil // a remark at the end, such as the one about a limit
		}
		if err != nil {
			return nil, err
		}
		pass.ID = id
		list = append(list, pass)
	}
	return list, nil
}

// open is a bridge or a stage, with its indentation, whose lines may follow.
type open struct {
	indent int
	bridge string
	stage  int  // -1 for a bridge
	outer  bool // it is, or is in, the bridge that was printed first
}

// parsePass reads one pass.
func parsePass(text string) (*Pass, error) {
	pass := &Pass{Text: text, last: -1}
	var stack []open
	found := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "Flow: ") && !found:
			var err error
			if pass.Flow, err = flow.Parse(line[len("Flow: "):]); err != nil {
				return nil, errors.Join(ErrNoPass, err)
			}
			found = true
		case !pass.readResult(line):
			stack = pass.readPipeline(stack, line)
		}
	}
	if !found {
		return nil, ErrNoPass
	}
	return pass, nil
}

// readResult reads the lines after the pipeline.
func (p *Pass) readResult(line string) bool {
	if text, ok := strings.CutPrefix(line, "Final flow: "); ok {
		p.Final = text
	} else if text, ok := strings.CutPrefix(line, "Megaflow: "); ok {
		p.Megaflow = text
	} else if text, ok := strings.CutPrefix(line, "Datapath actions: "); ok {
		p.ActionsText, p.Actions = text, odp.Parse(text)
	} else if text, ok := strings.CutPrefix(line, "Translation failed ("); ok {
		p.Failure, _, _ = strings.Cut(text, "), packet is dropped")
	} else if text, ok := strings.CutPrefix(line, "  - "); ok && p.ActionsText != "" {
		p.SlowPath = append(p.SlowPath, strings.TrimSuffix(text, "."))
	} else {
		return p.ActionsText != ""
	}
	return true
}

// readPipeline reads a line of the pipeline, and returns what is open after it.
func (p *Pass) readPipeline(stack []open, line string) []open {
	text := strings.TrimLeft(line, " ")
	// The number of a table is printed two characters wide, and a remark begins after
	// one more space.
	indent := (len(line) - len(text)) / 4 * 4
	if name, ok := strings.CutPrefix(text, `bridge("`); ok {
		p.headers++
		return append(closeTo(stack, indent, true), open{indent, strings.TrimSuffix(name, `")`), -1, p.headers == 1})
	}
	if strings.Trim(text, "-") == "" {
		return stack
	}
	if table, flow, ok := cutTable(text); ok {
		stack = closeTo(stack, indent, false)
		p.addStage(stack, Stage{Table: table, Flow: flow, Depth: indent / 4})
		last := len(p.Stages) - 1
		return append(stack, open{indent, p.Stages[last].Bridge, last, p.Stages[last].outer})
	}
	if message, ok := strings.CutPrefix(text, ">>>> "); ok {
		p.Errors = append(p.Errors, strings.TrimSuffix(message, " <<<<"))
	} else if message, ok := strings.CutPrefix(text, ">> "); ok {
		p.Warnings = append(p.Warnings, message)
	}
	stack = closeTo(stack, indent, false)
	if n := len(stack); n > 0 && stack[n-1].stage >= 0 {
		stage := &p.Stages[stack[n-1].stage]
		stage.Lines = append(stage.Lines, text)
		if !strings.HasPrefix(text, "->") && !restoresField(text) { // neither ends a packet
			p.last = stack[n-1].stage
		}
	} else if n > 0 {
		p.Resumed = append(p.Resumed, text)
	}
	return stack
}

// restoresField reports whether a line is one of the last actions of OVN's flows, which
// restore a register after the packet was sent.
func restoresField(line string) bool {
	for _, action := range []string{"set_field:", "pop:", "push:"} {
		if strings.HasPrefix(line, action) {
			return true
		}
	}
	return false
}

// closeTo closes what is indented at least as far as a line. A bridge stays open for its stages,
// which have the same indentation.
func closeTo(stack []open, indent int, bridges bool) []open {
	for n := len(stack); n > 0; n-- {
		top := stack[n-1]
		if top.indent < indent || top.indent == indent && top.stage < 0 && !bridges {
			return stack[:n]
		}
	}
	return stack[:0]
}

// cutTable splits " 8. FLOW" into the number of the table and the flow.
func cutTable(text string) (table int, flow string, ok bool) {
	number, flow, ok := strings.Cut(text, ". ")
	if !ok || len(number) > 3 {
		return 0, "", false
	}
	n, err := strconv.ParseUint(number, 10, 8)
	return int(n), flow, err == nil
}

// addStage adds a stage whose Flow is what follows the number of the table.
func (p *Pass) addStage(stack []open, stage Stage) {
	text := stage.Flow
	if n := len(stack); n > 0 {
		stage.Bridge = stack[n-1].bridge
		stage.outer = stack[n-1].outer
	}
	stage.parent, stage.after = -1, len(p.Resumed)
	for _, open := range slices.Backward(stack) {
		if open.stage >= 0 {
			stage.parent, stage.after = open.stage, len(p.Stages[open.stage].Lines)
			break
		}
	}
	// The match ends with "priority P" and, unless it is 0, ", cookie C".
	if at := strings.LastIndex(text, "priority "); at >= 0 {
		priority, cookie, _ := strings.Cut(text[at+len("priority "):], ", cookie ")
		stage.Flow = strings.TrimSuffix(text[:at], ", ")
		stage.Priority, _ = strconv.Atoi(priority)
		stage.Cookie, _ = strconv.ParseUint(cookie, 0, 64)
	} else if strings.HasPrefix(text, "No match") {
		stage.Flow, stage.Miss = "", true
	}
	p.Stages = append(p.Stages, stage)
	p.last = len(p.Stages) - 1
}
