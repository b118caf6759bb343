package odp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/flow"
)

// The order of a flood's output ports differs between two runs of a switch. A change
// of the packet that only some ports need (a VLAN tag, another MAC address) is made
// and undone between the outputs. So floods are compared by the packet that each
// port sends, in any order.

// flooded matches the lines of a trace that announce a flood.
var flooded = lazyregexp.New(`(?m)(flooding$|^\s+(FLOOD|ALL)$| -> forwarding to mcast)`)

// Floods reports whether a trace of ofproto/trace announces a flood.
func Floods(trace string) bool { return flooded.MatchString(trace) }

// flood executes the actions of a flood, and collects what leaves.
type flood struct {
	origin, packet flow.Packet
	other          []string // changes of metadata, in order
	tunnel         string   // of the last set(tunnel(...))
	tunnels        map[string]bool
	outputs        []string
}

// FloodOutputs lists the outputs of datapath actions, each with the changes made to
// the packet before it, sorted. packet is the trace's "Flow:" line.
func FloodOutputs(actions, packet string) string {
	outputs := floodOutputs(actions, packet)
	slices.Sort(outputs)
	return strings.Join(outputs, " ")
}

func floodOutputs(actions, packet string) []string {
	list := parseSteps(actions)
	sent := flood{tunnels: tunnelPorts(list)}
	if parsed, err := flow.Parse(strings.TrimPrefix(packet, "Flow: ")); err == nil {
		sent.origin, sent.packet = parsed, parsed.Clone()
	}
	for i := 0; i < len(list); i++ {
		switch name, _, _ := splitCall(list[i].text); {
		case name == "tnl_push":
			// The last output to a tunnel is not in a clone action.
			sent.output("clone(" + textOf(list[i:]) + ")")
			return sent.outputs
		case name == "trunc" && i+1 < len(list):
			i++
			sent.output(textOf(list[i-1 : i+1])) // trunc applies to the next output only
		default:
			sent.execute(list[i])
		}
	}
	return sent.outputs
}

// step is an action with its text.
type step struct {
	Action
	text string
}

// parseSteps returns the actions of a list.
func parseSteps(actions string) (list []step) {
	for token := range openflow.Split(actions) {
		action, err := parseAction(token, 0)
		if err != nil {
			action = Unknown{token}
		}
		list = append(list, step{action, token})
	}
	return list
}

// textOf returns the text of a list of actions.
func textOf(list []step) string {
	texts := make([]string, len(list))
	for i, executed := range list {
		texts[i] = executed.text
	}
	return strings.Join(texts, ",")
}

// tunnelPorts returns the ports that are the first to get the packet after a tunnel was set:
// the other ports ignore the tunnel.
func tunnelPorts(list []step) map[string]bool {
	ports := map[string]bool{}
	waiting := false
	for _, executed := range list {
		switch executed.Action.(type) {
		case SetTunnel:
			waiting = true
		case Output:
			ports[executed.text], waiting = ports[executed.text] || waiting, false
		}
	}
	return ports
}

// execute executes an action; one that does not change the packet counts as an output.
func (f *flood) execute(executed step) {
	switch action := executed.Action.(type) {
	case SetTunnel:
		f.tunnel = executed.text
	case HeaderChange:
		if err := action.Apply(&f.packet); err != nil {
			f.other = append(f.other, executed.text)
		}
	case Untrack, DecrementTTL, Hash:
		f.other = append(f.other, executed.text)
	default:
		if name, _, _ := splitCall(executed.text); name == "set" || strings.HasPrefix(name, "push_") || strings.HasPrefix(name, "pop_") {
			f.other = append(f.other, executed.text)
			return
		}
		f.output(executed.text)
	}
}

// output adds an output with the changes that were not undone.
func (f *flood) output(token string) {
	var changes []string
	if f.tunnels[token] {
		changes = append(changes, f.tunnel)
	}
	for _, now := range f.packet.Fields() {
		if !sameValue(f.origin.Get(now.Name), now.Value) {
			changes = append(changes, now.Name+"="+now.Value)
		}
	}
	for _, before := range f.origin.Fields() {
		if !f.packet.Has(before.Name) && !sameValue(before.Value, "") {
			changes = append(changes, before.Name+" removed")
		}
	}
	slices.Sort(changes)
	f.outputs = append(f.outputs, "["+strings.Join(append(changes, f.other...), " ")+"]"+token)
}

// sameValue reports whether two values of a field are equal; a field that a packet does not
// have is 0.
func sameValue(value, other string) bool {
	if value == other {
		return true
	}
	number, errA := strconv.ParseUint(cmp.Or(value, "0"), 0, 64)
	otherNumber, errB := strconv.ParseUint(cmp.Or(other, "0"), 0, 64)
	return errA == nil && errB == nil && number == otherNumber
}

// nestedList matches an action that holds a list of actions.
var nestedList = lazyregexp.New(`^(clone|sample|actions|check_pkt_len|gt|le)\((.*)\)$`)

// SortOutputs sorts each run of consecutive outputs, also in nested lists of actions.
func SortOutputs(actions string) string {
	list := parseSteps(actions)
	for start := 0; start < len(list); {
		if nested := nestedList.FindStringSubmatch(list[start].text); nested != nil {
			list[start].text = nested[1] + "(" + SortOutputs(nested[2]) + ")"
		}
		if _, ok := list[start].Action.(Truncate); ok {
			start += 2 // trunc applies to the next output only
			continue
		}
		end := start
		for end < len(list) && isOutput(list[end].Action) {
			end++
		}
		slices.SortFunc(list[start:end], func(a, b step) int { return strings.Compare(a.text, b.text) })
		start = max(end, start+1)
	}
	return textOf(list)
}

func isOutput(action Action) bool {
	_, ok := action.(Output)
	return ok
}
