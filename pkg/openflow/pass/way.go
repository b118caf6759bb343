package pass

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
)

// Way holds the actions that a pass executed before one of its lookups or actions, and those
// that it executes after it. With them ofproto/trace-packet-out goes the same way again.
type Way struct {
	// levels are the lists of actions that are open: the first is the list of the pass, and each
	// clone on the way opens a further one.
	levels []level
}

// level is an open list of actions: the actions before the lookup, and the actions after it.
type level struct{ before, after []string }

// Before returns the actions up to the lookup or action, so that the packet has the same
// fields after them; "" for none.
func (w Way) Before() string {
	var all []string
	for _, level := range w.levels {
		all = append(all, level.before...)
	}
	return strings.Join(all, ",")
}

// Through returns all actions, with others in place of the lookup or action.
func (w Way) Through(actions []string) string {
	inner := actions
	for i, level := range slices.Backward(w.levels) {
		inner = slices.Concat(level.before, inner, level.after)
		if i > 0 {
			inner = []string{"clone(" + strings.Join(inner, ",") + ")"}
		}
	}
	return strings.Join(inner, ",")
}

// WayTo returns the way to the lookup of a stage, or, if line is larger than 0, to that line
// of its actions. The error names the action on the way that can't be executed again.
func (p *Pass) WayTo(stage, line int) (Way, error) {
	way := Way{levels: []level{{}}}
	if stage < 0 || stage >= len(p.Stages) {
		return way, fmt.Errorf("the pass has no stage %d", stage)
	}
	if err := way.addUpTo(p, stage); err != nil || line == 0 {
		return way, err
	}
	list, err := readActions(p.Stages[stage].Lines[:line])
	if err != nil {
		return way, err
	}
	way.add(list)
	return way, nil
}

// addUpTo adds the actions up to the lookup of a stage: the actions of the stage that it is nested
// in, and of the stages that came before it by a resubmit that was their last action.
func (w *Way) addUpTo(pass *Pass, stage int) error {
	lookup := pass.Stages[stage]
	switch {
	case lookup.parent >= 0:
		if err := w.addUpTo(pass, lookup.parent); err != nil {
			return err
		}
		if err := w.descend(pass.Stages[lookup.parent].Lines, lookup.after); err != nil {
			return err
		}
	case !isThawed(pass.Resumed):
		if err := w.descend(pass.Resumed, lookup.after); err != nil {
			return err
		}
	}
	for i, before := range pass.Stages[:stage] {
		if before.parent != lookup.parent || before.after != lookup.after {
			continue
		}
		if err := w.descend(pass.Stages[i].Lines, len(before.Lines)); err != nil {
			return err
		}
	}
	return nil
}

// isThawed reports whether the lines before the first stage only print where the pass resumes.
func isThawed(lines []string) bool {
	return len(lines) == 0 || len(lines) <= 2 && lines[0] == "thaw" && strings.HasPrefix(lines[len(lines)-1], "Resuming from table")
}

// action is an action with the lines that ofproto/trace prints for what is in it.
type action struct {
	text  string
	last  int      // index of the last line that is not a remark
	inner []action // of a clone
}

// descend adds the actions of a list up to the one that was executed last when the given number
// of lines was printed, and opens that one: a resubmit, or a clone that holds one.
func (w *Way) descend(lines []string, printed int) error {
	list, err := readActions(lines)
	if err != nil {
		return err
	}
	end := printed - 1
	for end >= 0 && isRemark(lines[end]) {
		end--
	}
	return w.open(list, end)
}

// open opens the action of a list that was executed last when the line with an index was printed.
func (w *Way) open(list []action, end int) error {
	at := slices.IndexFunc(list, func(action action) bool { return action.last >= end })
	if at < 0 || end < 0 {
		return errors.New("the pass shows no action that leads to a lookup")
	}
	w.add(list[:at])
	top := &w.levels[len(w.levels)-1]
	top.after = append(texts(list[at+1:]), top.after...)
	lead := list[at]
	switch {
	case strings.HasPrefix(lead.text, "clone("):
		w.levels = append(w.levels, level{})
		return w.open(lead.inner, end)
	case strings.HasPrefix(lead.text, "resubmit("), strings.HasPrefix(lead.text, "goto_table:"):
		return nil
	}
	return fmt.Errorf("action %q leads to a lookup", phrase.Shorten(lead.text, 80))
}

// add adds actions to the innermost list.
func (w *Way) add(list []action) {
	level := &w.levels[len(w.levels)-1]
	level.before = append(level.before, texts(list)...)
}

// texts returns actions as ofproto/trace-packet-out takes them.
func texts(list []action) []string {
	var all []string
	for _, action := range list {
		text := action.text
		if table, ok := strings.CutPrefix(text, "goto_table:"); ok {
			text = "resubmit(," + table + ")"
		}
		if text != "drop" {
			all = append(all, text)
		}
	}
	return all
}

// isRemark reports whether a line is a remark, and not an action.
func isRemark(line string) bool {
	return strings.HasPrefix(line, "->") || strings.HasPrefix(line, ">>")
}

// readActions returns the actions of a list from the lines that ofproto/trace printed.
func readActions(lines []string) ([]action, error) {
	var list []action
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if isRemark(line) {
			continue
		}
		for _, other := range []string{"group:", "bucket ", "check_pkt_larger(", "write_", "clear_actions", "apply_", "encap(", "decap(", "exit"} {
			if strings.HasPrefix(line, other) {
				return nil, fmt.Errorf("action %q can't be executed again by itself", phrase.Shorten(line, 80))
			}
		}
		action := action{text: line, last: i}
		arguments, nested := nestedIn(line)
		if nested {
			i = action.take(lines, i+1, arguments) - 1
		}
		list = append(list, action)
	}
	return list, nil
}

// take reads the lines of the actions in an action, from the given one on, and returns the
// index of the first line after them.
func (a *action) take(lines []string, from int, arguments []string) int {
	next := from
	for _, argument := range arguments {
		at := next
		for at < len(lines) && isRemark(lines[at]) {
			at++
		}
		if at >= len(lines) || lines[at] != argument {
			break // it was not executed, or is not printed
		}
		inner := action{text: argument, last: at}
		next = at + 1
		if more, nested := nestedIn(argument); nested {
			next = inner.take(lines, next, more)
		}
		a.inner, a.last = append(a.inner, inner), inner.last
	}
	return next
}

// nestedIn returns the actions that a clone or ct action holds, which are printed after it.
func nestedIn(line string) (list []string, ok bool) {
	name, text, _ := strings.Cut(strings.TrimSuffix(line, ")"), "(")
	switch name {
	case "clone":
		return split(text), true
	case "ct":
		for _, argument := range split(text) {
			if exec, ok := strings.CutPrefix(argument, "exec("); ok {
				list = append(list, split(strings.TrimSuffix(exec, ")"))...)
			} else if strings.HasPrefix(argument, "nat") {
				list = append(list, argument)
			}
		}
		return list, true
	}
	return nil, false
}

// split returns the actions in a list.
func split(text string) []string {
	if text == "" {
		return nil
	}
	return slices.Collect(openflow.Split(text))
}
