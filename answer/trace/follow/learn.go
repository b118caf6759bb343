package follow

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/pass"
)

// A live switch adds the flow of a learn action (ovs-actions(7)) when a packet executes
// it. ofproto/trace ignores the action, so the state of a question holds the flow, and a
// later pass that it may match is asked for again with it: see relearn.go.

// learned is a flow that a learn action adds on a node, and those before it.
type learned struct {
	before *learned
	learnedKey
	match []flow.Field // as far as the values are known
	from  learnAction
}

// learnAction is a learn action: its arguments as Open vSwitch prints them, and the line of a
// pass that executed it.
type learnAction struct {
	arguments   string
	query       *query
	stage, line int
}

// learnedKey is the table of a learned flow, and where the flow sends packets.
type learnedKey struct {
	node, bridge string
	table        int // -1 where the action does not have its number
	priority     int
	cookie       uint64
	outputs      bool   // it outputs the packet to a port of the bridge
	output       string // the number of that port, "" if not known
}

// equal reports whether two flows are the same.
func (l learned) equal(other learned) bool {
	return l.learnedKey == other.learnedKey && slices.Equal(l.match, other.match)
}

// learnedIn returns the flows that the learn actions of a pass add in the stages up to one.
func learnedIn(asked *query, stages int) []learned {
	var list []learned
	for i, stage := range asked.pass.Stages[:stages] {
		for j, line := range stage.Lines {
			if text, ok := strings.CutPrefix(line, "learn("); ok {
				text = strings.TrimSuffix(text, ")")
				found := newLearned(text, stageFields{asked.pass, i}, asked.host.Name)
				found.from = learnAction{text, asked, i, j}
				list = append(list, found)
			}
		}
	}
	return list
}

// newLearned returns the flow of a learn action with its arguments as Open vSwitch prints
// them.
func newLearned(text string, fields stageFields, node string) learned {
	key, err := openflow.LearnedBy(text)
	made := learned{learnedKey: learnedKey{node: node, bridge: fields.bridge(), table: key.Table, priority: key.Priority, cookie: key.Cookie}}
	if err != nil {
		made.table = -1
	}
	for argument := range openflow.Split(text) {
		if source, ok := strings.CutPrefix(argument, "output:"); ok {
			made.outputs, made.output = true, fields.value(fieldName(source))
			continue
		}
		if name, value, valued := strings.Cut(argument, "="); slices.Contains(headers, fieldName(name)) {
			made.match = append(made.match, fields.matched(name, value, valued))
		}
	}
	return made
}

// headers are the fields of a packet's headers that are compared with the match of a learned
// flow. A flow may match others, which are assumed to be equal.
var headers = []string{"dl_src", "dl_dst", "nw_src", "nw_dst", "ipv6_src", "ipv6_dst", "nw_proto", "tp_src", "tp_dst", "arp_spa", "arp_tpa"}

// fieldName returns the name that ofproto/trace prints for a whole field, which an action
// names as NXM_OF_IP_SRC[] or ip_src; "" for a part of a field.
func fieldName(text string) string {
	text, bits, _ := strings.Cut(text, "[")
	if bits != "" && bits != "]" {
		return ""
	}
	return flow.PrintedName(text)
}

// stageFields are the fields of a packet in a stage of a pass, as far as their values are known.
type stageFields struct {
	pass  *pass.Pass
	stage int
}

// bridge returns the bridge of the stage.
func (s stageFields) bridge() string { return s.pass.Stages[s.stage].Bridge }

// matched returns a field of a learned flow's match: FIELD=VALUE, FIELD=FIELD, or FIELD for
// the packet's own value. Its value is "" if it is not known.
func (s stageFields) matched(name, value string, valued bool) flow.Field {
	field := flow.Field{Name: fieldName(name), Value: value}
	_, notAddress := netip.ParseAddr(value)
	isField := strings.HasSuffix(value, "[]") || slices.Contains(headers, fieldName(value))
	switch {
	case !valued:
		field.Value = s.value(field.Name)
	case isField:
		field.Value = s.value(fieldName(value))
	case notAddress != nil && strings.Trim(value, "0123456789") != "" && strings.Count(value, ":") != 5:
		field.Value = "" // in another notation, or with a mask
	}
	return field
}

// value returns the value of a field, "" if the pass has set it or the packet lacks it.
func (s stageFields) value(name string) string {
	if name == "in_port" {
		return s.inPort()
	}
	if s.pass.Sets(name) {
		return ""
	}
	if name == "nw_proto" {
		if number, ok := s.pass.Flow.Protocol(); ok {
			return fmt.Sprint(number)
		}
	}
	return s.pass.Flow.Get(name)
}

// inPort returns the number of the port by which the packet entered the bridge of the
// stage, "" if no flow there matched it.
func (s stageFields) inPort() string {
	found := ""
	for _, stage := range s.pass.Stages[:s.stage+1] {
		if stage.Bridge != s.bridge() {
			continue
		}
		for field := range openflow.Tokens(stage.Flow) {
			if number, ok := strings.CutPrefix(field, "in_port="); ok {
				found = number
			}
		}
	}
	return found
}

// mayDecide reports whether a stage of a pass may go another way with the flow.
func (l *learned) mayDecide(printed *pass.Pass, stage int) bool {
	at := printed.Stages[stage]
	switch {
	case at.Bridge != l.bridge || at.Table != l.table && l.table >= 0:
	case !at.Miss && at.Priority > l.priority: // it comes first
	case l.outputs && l.output != "" && sendsTo(printed, l.bridge, l.output): // a flood, or a flow learned earlier
	case !at.Miss && at.Priority == l.priority && at.Cookie == l.cookie && !l.outputs: // the same flow, learned earlier
	default:
		return l.mayMatch(stageFields{printed, stage})
	}
	return false
}

// sendsTo reports whether a pass outputs the packet to a port of a bridge.
func sendsTo(printed *pass.Pass, bridge, port string) bool {
	return slices.ContainsFunc(printed.Stages, func(s pass.Stage) bool {
		return s.Bridge == bridge && slices.Contains(s.Lines, "output:"+port)
	})
}

// mayMatch reports whether the flow may match the packet.
func (l *learned) mayMatch(fields stageFields) bool {
	return !slices.ContainsFunc(l.match, func(f flow.Field) bool {
		value := fields.value(f.Name)
		return f.Value != "" && value != "" && !isEqual(f.Value, value)
	})
}

// isEqual reports whether two values of a field are equal, in any notation.
func isEqual(value, other string) bool {
	if strings.EqualFold(value, other) {
		return true
	}
	address, err := netip.ParseAddr(value)
	otherAddress, otherErr := netip.ParseAddr(other)
	if err == nil && otherErr == nil {
		return address == otherAddress
	}
	number, err := strconv.ParseUint(value, 0, 64)
	otherNumber, otherErr := strconv.ParseUint(other, 0, 64)
	return err == nil && otherErr == nil && number == otherNumber
}
