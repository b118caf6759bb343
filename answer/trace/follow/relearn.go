package follow

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/pass"
)

// A pass that a learned flow would match is asked for again: a query executes what the pass
// executed before the lookup, then the actions of the learned flow, and then what the pass
// executes after the lookup.

// learnedMatch is a learned flow, with all its values, and the stage whose lookup it matches.
type learnedMatch struct {
	flow  *learned
	rule  rule
	stage int
}

// maxLearned bounds the learned flows that one pass matches.
const maxLearned = 16

// relearn follows a pass with the flows that earlier packets of the question have made the
// node learn, and learns the flows of the pass itself. shown is the pass with all its stages; why
// is the reason if it can't be followed.
func (s *step) relearn(ctx context.Context, printed *pass.Pass) (shown *pass.Pass, why string, err error) {
	s.query.pass, shown = printed, printed
	flows := s.state.learnedFlows() // a pass does not match the flows that it adds itself
	for range maxLearned {
		asked := s.query.pass
		found, why, err := s.query.findLearned(ctx, flows)
		if err != nil || why != "" {
			return shown, why, err
		}
		if found.flow == nil {
			s.learn(len(asked.Stages))
			return shown, "", nil
		}
		s.learn(found.stage)
		next, more, why, err := s.query.substitute(ctx, found)
		if err != nil || why != "" {
			return shown, why, err
		}
		s.query, s.printed = next, more
		stage := asked.Stages[found.stage]
		stage.Miss, stage.Priority, stage.Cookie = false, found.flow.priority, found.flow.cookie
		stage.Flow, stage.Lines = found.rule.text(), found.rule.actions
		shown = next.pass.Behind(shown, len(shown.Stages)-len(asked.Stages)+found.stage, stage)
	}
	return shown, fmt.Sprintf("the pass matches more than %d learned flows", maxLearned), nil
}

// learn adds the flows of the pass's learn actions in the stages up to one.
func (s *step) learn(stages int) {
	for _, added := range learnedIn(s.query, stages) {
		s.state = s.state.learn(added)
	}
}

// findLearned returns the first lookup of the pass that one of the learned flows matches;
// found.flow is nil for none.
func (q *query) findLearned(ctx context.Context, flows *learned) (found learnedMatch, why string, err error) {
	for i, stage := range q.pass.Stages {
		var packet flow.Packet
		for candidate := flows; candidate != nil; candidate = candidate.before {
			if candidate.node != q.host.Name || !candidate.mayDecide(q.pass, i) {
				continue
			}
			if len(packet.Fields()) == 0 {
				packet, err = q.fieldsAt(ctx, i, 0)
			}
			var evaluated rule
			if err == nil {
				evaluated, err = candidate.evaluate(ctx)
			}
			matches := false
			if err == nil {
				matches, err = evaluated.matches(packet)
			}
			switch {
			case err != nil, matches && !stage.Miss && stage.Priority == candidate.priority:
				return found, candidate.notEvaluated(err), ctx.Err()
			case matches:
				return learnedMatch{candidate, evaluated, i}, "", nil
			}
		}
	}
	return found, "", nil
}

// notEvaluated returns the sentence that a learned flow may decide about a pass, and why that
// is not known.
func (l *learned) notEvaluated(err error) string {
	table := fmt.Sprintf("table %d", l.table)
	if l.table < 0 {
		table = "a table"
	}
	why := fmt.Sprintf("the flow that an earlier packet adds to %s of %s (learn) is not evaluated", table, l.bridge)
	if err != nil {
		why += ": " + err.Error()
	}
	return why
}

// substitute asks for the pass with the actions of a learned flow in a lookup. more are further
// passes that ovs-vswitchd printed.
func (q *query) substitute(ctx context.Context, found learnedMatch) (made *query, more []*pass.Pass, why string, err error) {
	way, err := q.pass.WayTo(found.stage, 0)
	if err != nil {
		return nil, nil, found.flow.notEvaluated(err), nil
	}
	made, more, err = q.packetOut(ctx, found.stage, way.Through(found.rule.actions))
	if err != nil {
		return nil, nil, found.flow.notEvaluated(err), ctx.Err()
	}
	made.pass.ID = q.pass.ID
	return made, more, "", nil
}

// rule is a learned flow with all its values.
type rule struct {
	match   []flow.Field
	actions []string
}

// text returns the match as ofproto/trace prints the match of a flow.
func (r rule) text() string {
	var packet flow.Packet
	for _, field := range r.match {
		packet.Set(field.Name, field.Value)
	}
	return packet.String()
}

// evaluate returns the flow that a learn action adds for the packet that executes it
// (ovs-actions(7), "The learn action").
func (l *learned) evaluate(ctx context.Context) (rule, error) {
	var evaluated rule
	packet, err := l.from.query.fieldsAt(ctx, l.from.stage, l.from.line)
	if err != nil {
		return evaluated, err
	}
	for argument := range openflow.Split(l.from.arguments) {
		if err := evaluated.add(argument, packet); err != nil {
			return evaluated, err
		}
	}
	return evaluated, nil
}

// settings matches the arguments of a learn action that are neither match nor action.
var settings = lazyregexp.New(`^((idle_timeout|hard_timeout|fin_idle_timeout|fin_hard_timeout|table|priority|cookie|limit)=.*|delete_learned|send_flow_rem)$`)

// add adds what an argument of a learn action adds to the flow, with the values of a packet.
func (r *rule) add(argument string, packet flow.Packet) error {
	unknown := fmt.Errorf("the argument %q of learn is not understood", argument)
	if settings.MatchString(argument) {
		return nil
	}
	if text, ok := strings.CutPrefix(argument, "output:"); ok {
		value, ok := fieldOf(packet, fieldName(text))
		if !ok {
			return unknown
		}
		r.actions = append(r.actions, "output:"+value)
		return nil
	}
	if text, ok := strings.CutPrefix(argument, "load:"); ok {
		from, to, _ := strings.Cut(text, "->")
		value, ok := from, true
		if _, err := strconv.ParseUint(from[:1], 10, 8); err != nil {
			value, ok = fieldOf(packet, fieldName(from))
		}
		if !ok || to == "" {
			return unknown
		}
		r.actions = append(r.actions, "load:"+value+"->"+to)
		return nil
	}
	name, value, valued := strings.Cut(argument, "=")
	field := fieldName(name)
	_, isField := fieldOf(packet, fieldName(value))
	ok := field != ""
	switch {
	case !valued:
		value, ok = fieldOf(packet, field)
	case isField:
		value, ok = fieldOf(packet, fieldName(value))
	}
	if !ok {
		return unknown
	}
	r.match = append(r.match, flow.Field{Name: field, Value: value})
	return nil
}

// matches reports whether the flow matches a packet with all its fields.
func (r rule) matches(packet flow.Packet) (bool, error) {
	for _, field := range r.match {
		value, ok := fieldOf(packet, field.Name)
		if !ok {
			if !slices.Contains(headers, field.Name) {
				return false, fmt.Errorf("the field %s is not understood", field.Name)
			}
			return false, nil
		}
		if !isEqual(field.Value, value) {
			return false, nil
		}
	}
	return true, nil
}

var register = lazyregexp.New(`^(reg[0-9]+|metadata|tun_id|pkt_mark)$`)

// fieldOf returns the value of a whole field; ok is false if the packet has no such field.
func fieldOf(packet flow.Packet, name string) (value string, ok bool) {
	switch {
	case name == "dl_type":
		return fmt.Sprintf("%#x", packet.EtherType()), true
	case name == "nw_proto":
		number, ok := packet.Protocol()
		return fmt.Sprint(number), ok
	case packet.Has(name):
		return packet.Get(name), true
	case register.MatchString(name):
		return "0", true
	}
	return "", false
}
