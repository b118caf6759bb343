// Package pass reads what ofproto/trace prints. One run of it prints a pass: the way of
// a packet through the tables of one or more bridges up to the datapath actions. Where
// these recirculate the packet, it prints further passes, for which it assumes what
// conntrack would have said.
package pass

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/trace/flow"
	"ovs-offline/trace/odp"
)

// Pass is one pass.
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
	// Errors are what ovs-vswitchd prints as ">>>> ... <<<<", Warnings as ">> ...".
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
	resumedIn string // the bridge in which the pass goes on, "" if it enters a bridge
}

// Stage is a lookup in a flow table, with the actions of the flow that matched.
type Stage struct {
	Bridge   string
	Table    int
	Flow     string // the match of the flow, "" for a flow that matches all packets
	Priority int
	Cookie   uint64
	Miss     bool // no flow matched
	// Lines are the actions and remarks of the stage, without those of the stages below
	// it, each without the space before it.
	Lines []string
	Depth int // of nested lookups; a stage that follows another has the same depth

	outer bool // it is in the bridge that was printed first
	// parent is the index of the stage that the lookup is nested in, -1 for none, and after
	// the number of that stage's lines, or of the pass's, that were printed before.
	parent, after int
}

// Last returns the stage that executed the pass's last action; ok is false for a pass
// without stages. Where a packet was dropped, it was dropped there.
func (p *Pass) Last() (s Stage, ok bool) {
	if p.last < 0 || p.last >= len(p.Stages) {
		return Stage{}, false
	}
	return p.Stages[p.last], true
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
	for l := range p.lines {
		if id, ok := strings.CutPrefix(l, "-> using bucket "); ok {
			list = append(list, id)
		}
	}
	return list
}

// lines yields all actions and remarks.
func (p *Pass) lines(yield func(string) bool) {
	for _, l := range p.Resumed {
		if !yield(l) {
			return
		}
	}
	for _, s := range p.Stages {
		for _, l := range s.Lines {
			if !yield(l) {
				return
			}
		}
	}
}

// Floods reports whether the pass sent the packet to all ports, because no MAC address
// was learned for its destination.
func (p *Pass) Floods() bool {
	for l := range p.lines {
		if strings.Contains(l, "no learned MAC for destination, flooding") {
			return true
		}
	}
	return false
}

// HashMask returns the bits of dp_hash on which the pass depends, 0 for none.
func (p *Pass) HashMask() uint32 {
	m := hashMask.FindStringSubmatch(p.Megaflow)
	if m == nil {
		return 0
	}
	mask, _ := strconv.ParseUint(m[1], 0, 32)
	return uint32(mask)
}

// Controllers returns the stages with a controller action, and the userdata of each.
func (p *Pass) Controllers() []Controller {
	var list []Controller
	stages := append([]Stage{{Lines: p.Resumed}}, p.Stages...)
	for i, s := range stages {
		for _, l := range s.Lines {
			if !strings.HasPrefix(l, "controller(") && !strings.HasPrefix(l, "CONTROLLER:") {
				continue
			}
			if m := controller.FindStringSubmatch(l); m != nil {
				list = append(list, Controller{Stage: i - 1, Userdata: userdata.FindString(m[1]), Pause: strings.Contains(m[1], "pause")})
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
	Userdata string // bytes in hexadecimal, joined by dots; "" without any
	Pause    bool   // the pipeline waits for the controller
}

var (
	controller = regexp.MustCompile(`^controller\((.*)\)$`)
	hashMask   = regexp.MustCompile(`\bdp_hash=0x[0-9a-f]+/(0x[0-9a-f]+)`)
	userdata   = regexp.MustCompile(`\b[0-9a-f]{2}(\.[0-9a-f]{2})+\b`)

	resumed   = regexp.MustCompile(`(?m)^recirc\((0x[0-9a-f]+)\)`)
	separator = strings.Repeat("=", 79)
)

// ErrNoPass is wrapped when a text holds no pass: ovs-vswitchd printed something else.
var ErrNoPass = errors.New("not the output of ofproto/trace")

// Parse reads the output of one ofproto/trace: its passes in the order in which they
// were printed, at least one.
func Parse(text string) ([]*Pass, error) {
	var list []*Pass
	var id uint32
	for i, part := range strings.Split(text, separator+"\n") {
		if i%2 == 1 { // the heading of the pass that follows
			id = 0
			if m := resumed.FindStringSubmatch(part); m != nil {
				n, _ := strconv.ParseUint(m[1], 0, 32)
				id = uint32(n)
			}
			continue
		}
		p, err := parseOne(strings.Trim(part, "\n"))
		if err != nil && len(list) > 0 {
			return list, nil // a remark at the end, as that of a limit
		}
		if err != nil {
			return nil, err
		}
		p.ID = id
		list = append(list, p)
	}
	return list, nil
}

// open is a bridge or stage whose lines may follow, by its indentation.
type open struct {
	indent int
	bridge string
	stage  int  // -1 for a bridge
	outer  bool // it is, or is in, the bridge that was printed first
}

func parseOne(text string) (*Pass, error) {
	p := &Pass{Text: text, last: -1}
	var stack []open
	found := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "Flow: ") && !found:
			var err error
			if p.Flow, err = flow.Parse(line[len("Flow: "):]); err != nil {
				return nil, errors.Join(ErrNoPass, err)
			}
			found = true
		case !p.result(line):
			stack = p.pipeline(stack, line)
		}
	}
	if !found {
		return nil, ErrNoPass
	}
	return p, nil
}

// result reads the lines after the pipeline.
func (p *Pass) result(line string) bool {
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

// pipeline reads a line of the pipeline, and returns what is open after it.
func (p *Pass) pipeline(stack []open, line string) []open {
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
		s := &p.Stages[stack[n-1].stage]
		s.Lines = append(s.Lines, text)
		if !strings.HasPrefix(text, "->") && !restoresField(text) { // neither ends a packet
			p.last = stack[n-1].stage
		}
	} else if n > 0 {
		p.Resumed = append(p.Resumed, text)
	}
	return stack
}

// restoresField reports whether a line is an action of those with which OVN's flows end
// after those that send the packet, to restore a register.
func restoresField(line string) bool {
	for _, action := range []string{"set_field:", "pop:", "push:"} {
		if strings.HasPrefix(line, action) {
			return true
		}
	}
	return false
}

// closeTo closes what has at least an indentation. A bridge stays open for its stages,
// which have the same.
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
func (p *Pass) addStage(stack []open, s Stage) {
	text := s.Flow
	if n := len(stack); n > 0 {
		s.Bridge = stack[n-1].bridge
		s.outer = stack[n-1].outer
	}
	s.parent, s.after = -1, len(p.Resumed)
	for _, o := range slices.Backward(stack) {
		if o.stage >= 0 {
			s.parent, s.after = o.stage, len(p.Stages[o.stage].Lines)
			break
		}
	}
	// The match ends with "priority P" and, unless it is 0, ", cookie C".
	if at := strings.LastIndex(text, "priority "); at >= 0 {
		priority, cookie, _ := strings.Cut(text[at+len("priority "):], ", cookie ")
		s.Flow = strings.TrimSuffix(text[:at], ", ")
		s.Priority, _ = strconv.Atoi(priority)
		s.Cookie, _ = strconv.ParseUint(cookie, 0, 64)
	} else if strings.HasPrefix(text, "No match") {
		s.Flow, s.Miss = "", true
	}
	p.Stages = append(p.Stages, s)
	p.last = len(p.Stages) - 1
}
