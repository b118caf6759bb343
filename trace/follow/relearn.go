package follow

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/trace/flow"
	"ovs-offline/trace/pass"
)

// A pass that a learned flow would match is asked for again without changing the replica:
// ofproto/trace-packet-out executes what the pass executed before the lookup, then the
// actions of the learned flow, and then what the pass executes after the lookup.

// asked is a pass on a node, and the question that it answers.
type asked struct {
	before  *asked // the pass that recirculated the packet, nil for the first one on a node
	bridge  string
	packet  flow.Packet
	actions string // that are executed in place of a lookup, "" for none
	pass    *pass.Pass
}

// lookup is a learned flow, with all its values, and the stage whose lookup it matches.
type lookup struct {
	flow  *learned
	rule  rule
	stage int
}

// maxLearned bounds the learned flows that one pass matches.
const maxLearned = 16

// relearn follows a pass with the flows that earlier packets of the question have made the
// node learn, and learns those of the pass itself. shown is the pass with all its stages; why
// is the reason if it can't be followed.
func (s *step) relearn(ctx context.Context, p *pass.Pass) (shown *pass.Pass, why string, err error) {
	s.asked.pass, shown = p, p
	flows := s.state.flows() // a pass does not match the flows that it adds itself
	for range maxLearned {
		found, why, err := s.learnedFor(ctx, flows)
		if err != nil || why != "" {
			return shown, why, err
		}
		p := s.asked.pass
		if found.flow == nil {
			s.learn(len(p.Stages))
			return shown, "", nil
		}
		s.learn(found.stage)
		if why, err := s.substitute(ctx, found); err != nil || why != "" {
			return shown, why, err
		}
		stage := p.Stages[found.stage]
		stage.Miss, stage.Priority, stage.Cookie = false, found.flow.priority, found.flow.cookie
		stage.Flow, stage.Lines = found.rule.text(), found.rule.actions
		shown = s.asked.pass.Behind(shown, len(shown.Stages)-len(p.Stages)+found.stage, stage)
	}
	return shown, fmt.Sprintf("the pass matches more than %d learned flows", maxLearned), nil
}

// learn adds the flows of the pass's learn actions in the stages up to one.
func (s *step) learn(stages int) {
	for _, l := range learnedIn(s.host.Name, s.asked, stages) {
		s.state = s.state.learn(l)
	}
}

// learnedFor returns the first lookup of a pass that one of the learned flows matches;
// found.flow is nil for none.
func (s *step) learnedFor(ctx context.Context, flows *learned) (found lookup, why string, err error) {
	p := s.asked.pass
	for i := range p.Stages {
		var packet flow.Packet
		for l := flows; l != nil; l = l.before {
			if l.node != s.host.Name || !l.decides(p, i) {
				continue
			}
			if len(packet.Fields()) == 0 {
				packet, err = s.fieldsAt(ctx, s.asked, i, 0)
			}
			var r rule
			if err == nil {
				r, err = s.evaluate(ctx, l)
			}
			matches := false
			if err == nil {
				matches, err = r.matches(packet)
			}
			switch {
			case err != nil, matches && !p.Stages[i].Miss && p.Stages[i].Priority == l.priority:
				return found, l.notEvaluated(err), ctx.Err()
			case matches:
				return lookup{l, r, i}, "", nil
			}
		}
	}
	return found, "", nil
}

// notEvaluated says that a learned flow may decide about a pass, and why that is not known.
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

// substitute asks for the pass with the actions of a learned flow in a lookup.
func (s *step) substitute(ctx context.Context, found lookup) (why string, err error) {
	way, err := s.asked.pass.WayTo(found.stage, 0)
	if err != nil {
		return found.flow.notEvaluated(err), nil
	}
	next, passes, err := s.packetOut(ctx, s.asked, found.stage, way.Through(found.rule.actions))
	if err != nil {
		return found.flow.notEvaluated(err), ctx.Err()
	}
	next.pass.ID = s.asked.pass.ID
	s.asked, s.known = next, passes
	return "", nil
}

// packetOut executes actions on the packet of a pass as it was at the beginning of the pass,
// in the bridge of one of its stages. The passes are further ones that ovs-vswitchd printed.
func (s *step) packetOut(ctx context.Context, a *asked, stage int, actions string) (*asked, []*pass.Pass, error) {
	p, err := s.beginning(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	bridge := a.pass.Stages[stage].Bridge
	if bridge != a.bridge {
		number := a.inPort(bridge)
		if number == "" {
			return nil, nil, fmt.Errorf("the port by which the packet entered %s is not known", bridge)
		}
		p.Prepend("in_port", number)
	}
	if actions == "" {
		actions = "note:00" // without an action ovs-vswitchd would look the packet up in table 0
	}
	next := &asked{before: a.before, bridge: bridge, packet: withoutEmptyTunnel(p), actions: actions}
	passes, err := s.answer(ctx, next)
	if err != nil {
		return nil, nil, err
	}
	next.pass = passes[0]
	return next, passes[1:], nil
}

// answer asks, also again, and returns all passes that ovs-vswitchd prints.
func (s *step) answer(ctx context.Context, a *asked) ([]*pass.Pass, error) {
	argv := []string{"ofproto/trace", a.bridge, a.packet.Input()}
	if a.actions != "" {
		argv = []string{"ofproto/trace-packet-out", a.bridge, a.packet.Input(), a.actions}
	}
	text, err := s.host.Ask(ctx, argv...)
	if err != nil {
		return nil, err
	}
	return pass.Parse(text)
}

// inPort returns the number of the port by which the packet entered a bridge, "" if no flow
// there matched it.
func (a *asked) inPort(bridge string) string {
	for ; a != nil; a = a.before {
		for i, s := range slices.Backward(a.pass.Stages) {
			if s.Bridge != bridge {
				continue
			}
			if number := (known{a.pass, i}).inPort(); number != "" {
				return number
			}
		}
	}
	return ""
}

var recirculations = regexp.MustCompile(`\brecirc\((0x[0-9a-f]+)\)`)

// beginning returns the packet as a pass begins, with the registers and other metadata of the
// pipeline. Those that a recirculation restores show in what ovs-vswitchd prints by itself
// after the pass before.
func (s *step) beginning(ctx context.Context, a *asked) (flow.Packet, error) {
	p := a.pass.Flow.Clone()
	if p.DoubleTagged() {
		return p, fmt.Errorf("the packet has two VLAN tags")
	}
	if !p.Has("recirc_id") {
		return p, nil
	}
	id, _ := p.Number("recirc_id")
	p.Delete("recirc_id", "dp_hash")
	unknown := fmt.Errorf("the registers at the recirculation %#x are not known", id)
	if a.before == nil {
		return p, unknown
	}
	ids := recirculations.FindAllString(a.before.pass.ActionsText, -1)
	at := slices.Index(ids, fmt.Sprintf("recirc(%#x)", id))
	again, err := s.answer(ctx, a.before)
	if err != nil || at < 0 {
		return p, unknown
	}
	ids = recirculations.FindAllString(again[0].ActionsText, -1)
	for _, next := range again[1:] {
		if at < len(ids) && ids[at] == fmt.Sprintf("recirc(%#x)", next.ID) {
			restore(&p, next.Flow)
			return p, nil
		}
	}
	return p, unknown
}

// restore gives a packet the metadata of the pipeline that another one has.
func restore(p *flow.Packet, from flow.Packet) {
	packet := from.WithoutPipeline()
	for _, f := range from.Fields() {
		switch {
		case f.Name == "recirc_id", f.Name == "dp_hash", f.Name == "eth", strings.HasPrefix(f.Name, "ct_"):
		case packet.Has(f.Name) && f.Name != "in_port" && f.Name != "pkt_mark":
		default:
			p.Prepend(f.Name, f.Value)
		}
	}
}

// withoutEmptyTunnel removes the fields of tunnels that are 0, which are printed for a packet
// that came by a tunnel, and of which some are not taken.
func withoutEmptyTunnel(p flow.Packet) flow.Packet {
	p = p.Clone()
	for _, f := range p.Fields() {
		isTunnel := strings.HasPrefix(f.Name, "tun_") || strings.HasPrefix(f.Name, "gtpu_")
		if isTunnel && (isEqual(f.Value, "0") || f.Value == "0.0.0.0" || f.Value == "::") {
			p.Delete(f.Name)
		}
	}
	return p
}

// fieldsAt returns all fields of the packet at the lookup of a stage, or at one of its
// actions.
func (s *step) fieldsAt(ctx context.Context, a *asked, stage, line int) (flow.Packet, error) {
	way, err := a.pass.WayTo(stage, line)
	if err != nil {
		return flow.Packet{}, err
	}
	there, _, err := s.packetOut(ctx, a, stage, way.Before())
	if err != nil {
		return flow.Packet{}, err
	}
	if there.pass.Final == "unchanged" {
		return there.pass.Flow, nil
	}
	return flow.Parse(there.pass.Final)
}

// rule is a learned flow with all its values.
type rule struct {
	match   []flow.Field
	actions []string
}

// text returns the match as ofproto/trace prints that of a flow.
func (r rule) text() string {
	var p flow.Packet
	for _, f := range r.match {
		p.Set(f.Name, f.Value)
	}
	return p.String()
}

// evaluate returns the flow that a learn action adds for the packet that executes it
// (ovs-actions(7), "The learn action").
func (s *step) evaluate(ctx context.Context, l *learned) (rule, error) {
	var r rule
	p, err := s.fieldsAt(ctx, l.from.asked, l.from.stage, l.from.line)
	if err != nil {
		return r, err
	}
	for argument := range arguments(l.from.arguments) {
		if err := r.add(argument, p); err != nil {
			return r, err
		}
	}
	return r, nil
}

// settings are the arguments of a learn action that are neither match nor action.
var settings = regexp.MustCompile(`^((idle_timeout|hard_timeout|fin_idle_timeout|fin_hard_timeout|table|priority|cookie|limit)=.*|delete_learned|send_flow_rem)$`)

func (r *rule) add(argument string, p flow.Packet) error {
	unknown := fmt.Errorf("the argument %q of learn is not understood", argument)
	if settings.MatchString(argument) {
		return nil
	}
	if text, ok := strings.CutPrefix(argument, "output:"); ok {
		value, ok := fieldOf(p, fieldName(text))
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
			value, ok = fieldOf(p, fieldName(from))
		}
		if !ok || to == "" {
			return unknown
		}
		r.actions = append(r.actions, "load:"+value+"->"+to)
		return nil
	}
	name, value, valued := strings.Cut(argument, "=")
	field := fieldName(name)
	_, isField := fieldOf(p, fieldName(value))
	ok := field != ""
	switch {
	case !valued:
		value, ok = fieldOf(p, field)
	case isField:
		value, ok = fieldOf(p, fieldName(value))
	}
	if !ok {
		return unknown
	}
	r.match = append(r.match, flow.Field{Name: field, Value: value})
	return nil
}

// matches reports whether the flow matches a packet with all its fields.
func (r rule) matches(p flow.Packet) (bool, error) {
	for _, f := range r.match {
		value, ok := fieldOf(p, f.Name)
		if !ok {
			if !slices.Contains(headers, f.Name) {
				return false, fmt.Errorf("the field %s is not understood", f.Name)
			}
			return false, nil
		}
		if !isEqual(f.Value, value) {
			return false, nil
		}
	}
	return true, nil
}

var register = regexp.MustCompile(`^(reg[0-9]+|metadata|tun_id|pkt_mark)$`)

// fieldOf returns the value of a whole field; ok is false if the packet has no such field.
func fieldOf(p flow.Packet, name string) (value string, ok bool) {
	switch {
	case name == "dl_type":
		return fmt.Sprintf("%#x", p.EtherType()), true
	case name == "nw_proto":
		number, ok := p.Protocol()
		return fmt.Sprint(number), ok
	case p.Has(name):
		return p.Get(name), true
	case register.MatchString(name):
		return "0", true
	}
	return "", false
}
