package follow

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/pass"
)

// A live switch adds the flow of a learn action (ovs-actions(7)) when a packet executes
// it. ofproto/trace ignores the action, so the state of a question holds the flow, and a
// later pass that it may match is asked for again with it: see relearn.go.

// learned is a flow that a learn action adds on a node, and those before it.
type learned struct {
	before *learned
	place
	match []flow.Field // as far as the values are known
	from  origin
}

// origin is the learn action of a flow: its arguments as Open vSwitch prints them, and where
// a pass executed it.
type origin struct {
	arguments   string
	asked       *asked
	stage, line int
}

// place is where a flow is, and where it sends packets.
type place struct {
	node, bridge string
	table        int // -1 where the action does not have its number
	priority     int
	cookie       uint64
	outputs      bool   // it outputs the packet to a port of the bridge
	output       string // the number of that port, "" if not known
}

// equal reports whether two flows are the same.
func (l learned) equal(m learned) bool {
	return l.place == m.place && slices.Equal(l.match, m.match)
}

// A flow that an action without table or priority adds has these (ovs-actions(7)).
const (
	learnTable    = 1
	learnPriority = 32768
)

// learnedIn returns the flows that the learn actions of a pass add in the stages up to one.
func learnedIn(node string, a *asked, stages int) []learned {
	var list []learned
	for i, s := range a.pass.Stages[:stages] {
		for j, line := range s.Lines {
			if text, ok := strings.CutPrefix(line, "learn("); ok {
				text = strings.TrimSuffix(text, ")")
				l := learnedBy(text, known{a.pass, i}, node)
				l.from = origin{text, a, i, j}
				list = append(list, l)
			}
		}
	}
	return list
}

// learnedBy returns the flow of a learn action with its arguments as Open vSwitch prints
// them.
func learnedBy(text string, k known, node string) learned {
	l := learned{place: place{node: node, bridge: k.pass.Stages[k.stage].Bridge, table: learnTable, priority: learnPriority}}
	for argument := range arguments(text) {
		if source, ok := strings.CutPrefix(argument, "output:"); ok {
			l.outputs, l.output = true, k.value(fieldName(source))
			continue
		}
		name, value, valued := strings.Cut(argument, "=")
		number, err := strconv.ParseUint(value, 0, 64)
		switch {
		case name == "table" && err != nil:
			l.table = -1
		case name == "table":
			l.table = int(number)
		case name == "priority":
			l.priority = int(number)
		case name == "cookie":
			l.cookie = number
		case slices.Contains(headers, fieldName(name)):
			l.match = append(l.match, k.matched(name, value, valued))
		}
	}
	return l
}

// arguments yields the arguments of a learn action.
func arguments(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := text; rest != ""; {
			end := openflow.IndexSeparator(rest, false)
			if !yield(rest[:end]) {
				return
			}
			rest = rest[min(end+1, len(rest)):]
		}
	}
}

// headers are the fields of a packet's headers that are compared with those of a learned
// flow. A flow may match others: they are taken to be equal.
var headers = []string{"dl_src", "dl_dst", "nw_src", "nw_dst", "ipv6_src", "ipv6_dst", "nw_proto", "tp_src", "tp_dst", "arp_spa", "arp_tpa"}

// fieldName returns the name that ofproto/trace prints for a whole field, which an action
// names as NXM_OF_IP_SRC[] or ip_src; "" for a part of a field.
func fieldName(text string) string {
	text, bits, _ := strings.Cut(text, "[")
	if bits != "" && bits != "]" {
		return ""
	}
	for _, prefix := range []string{"NXM_OF_", "NXM_NX_", "OXM_OF_"} {
		text = strings.TrimPrefix(text, prefix)
	}
	return flow.PrintedName(strings.ToLower(text))
}

// known knows the values of a packet's fields in a stage of a pass.
type known struct {
	pass  *pass.Pass
	stage int
}

// matched returns a field of a learned flow's match: FIELD=VALUE, FIELD=FIELD, or FIELD for
// the packet's own value. Its value is "" if it is not known.
func (k known) matched(name, value string, valued bool) flow.Field {
	f := flow.Field{Name: fieldName(name), Value: value}
	_, notAddress := netip.ParseAddr(value)
	isField := strings.HasSuffix(value, "[]") || slices.Contains(headers, fieldName(value))
	switch {
	case !valued:
		f.Value = k.value(f.Name)
	case isField:
		f.Value = k.value(fieldName(value))
	case notAddress != nil && strings.Trim(value, "0123456789") != "" && strings.Count(value, ":") != 5:
		f.Value = "" // in another notation, or with a mask
	}
	return f
}

// value returns the value of a field, "" if the pass has set it or the packet lacks it.
func (k known) value(name string) string {
	if name == "in_port" {
		return k.inPort()
	}
	if k.sets(name) {
		return ""
	}
	if name == "nw_proto" {
		if number, ok := k.pass.Flow.Protocol(); ok {
			return fmt.Sprint(number)
		}
	}
	return k.pass.Flow.Get(name)
}

// inPort returns the number of the port by which the packet entered the bridge of the
// stage, "" if no flow there matched it.
func (k known) inPort() string {
	found := ""
	bridge := k.pass.Stages[k.stage].Bridge
	for _, s := range k.pass.Stages[:k.stage+1] {
		if s.Bridge != bridge {
			continue
		}
		for field := range strings.SplitSeq(s.Flow, ",") {
			if number, ok := strings.CutPrefix(field, "in_port="); ok {
				found = number
			}
		}
	}
	return found
}

// sets reports whether an action of the pass sets a field. The order of actions in nested
// lookups is not known, so an action that comes later counts too.
func (k known) sets(name string) bool {
	for _, s := range k.pass.Stages {
		if slices.ContainsFunc(s.Lines, func(line string) bool { return setField(line) == name }) {
			return true
		}
	}
	return slices.ContainsFunc(k.pass.Resumed, func(line string) bool { return setField(line) == name })
}

// setField returns the field that an action sets, also if only a part of it; "" for none.
func setField(line string) string {
	action, argument, ok := strings.Cut(line, ":")
	if !ok {
		return ""
	}
	if name, modifies := strings.CutPrefix(action, "mod_"); modifies {
		return flow.PrintedName(name)
	}
	target := argument
	switch action {
	case "set_field", "load", "move":
		at := strings.LastIndex(argument, "->")
		if at < 0 {
			return ""
		}
		target = argument[at+len("->"):]
	case "pop":
	default:
		return ""
	}
	whole, _, _ := strings.Cut(target, "[")
	return fieldName(whole)
}

// decides reports whether a stage of a pass may go another way with the flow.
func (l *learned) decides(p *pass.Pass, stage int) bool {
	s := p.Stages[stage]
	switch {
	case s.Bridge != l.bridge || s.Table != l.table && l.table >= 0:
	case !s.Miss && s.Priority > l.priority: // it comes first
	case l.outputs && l.output != "" && sendsTo(p, l.bridge, l.output): // a flood, or a flow learned earlier
	case !s.Miss && s.Priority == l.priority && s.Cookie == l.cookie && !l.outputs: // the same flow, learned earlier
	default:
		return l.matches(known{p, stage})
	}
	return false
}

// sendsTo reports whether a pass outputs the packet to a port of a bridge.
func sendsTo(p *pass.Pass, bridge, port string) bool {
	return slices.ContainsFunc(p.Stages, func(s pass.Stage) bool {
		return s.Bridge == bridge && slices.Contains(s.Lines, "output:"+port)
	})
}

// matches reports whether the flow may match the packet.
func (l *learned) matches(k known) bool {
	return !slices.ContainsFunc(l.match, func(f flow.Field) bool {
		value := k.value(f.Name)
		return f.Value != "" && value != "" && !isEqual(f.Value, value)
	})
}

// isEqual reports whether two values of a field are equal, in any notation.
func isEqual(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	m, errM := strconv.ParseUint(a, 0, 64)
	n, errN := strconv.ParseUint(b, 0, 64)
	return strings.EqualFold(a, b) || errX == nil && errY == nil && x == y || errM == nil && errN == nil && m == n
}
