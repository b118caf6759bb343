package odp

import (
	"cmp"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"ovs-offline/internal/portmap"
	"ovs-offline/trace/flow"
)

// The order of a flood's output ports differs between two runs of a switch. A change
// of the packet that only some ports need (a VLAN tag, another MAC address) is made
// and undone between the outputs. So floods are compared by the packet that each
// port sends, in any order.

// flooded matches the lines of a trace that announce a flood.
var flooded = regexp.MustCompile(`(?m)(flooding$|^\s+(FLOOD|ALL)$| -> forwarding to mcast)`)

// Floods reports whether a trace of ofproto/trace announces a flood.
func Floods(trace string) bool { return flooded.MatchString(trace) }

// flood executes the actions of a flood, and collects what leaves.
type flood struct {
	origin, packet flow.Packet
	other          []string // changes that are not of headers, in order
	tunnel         string   // of the last set(tunnel(...))
	tunnels        map[string]bool
	outputs        []string
}

// FloodOutputs lists the outputs of datapath actions, each with the changes made to
// the packet before it, sorted. packet is the trace's "Flow:" line.
func FloodOutputs(actions, packet string) string {
	outputs := floodOutputs(actions, packet)
	sort.Strings(outputs)
	return strings.Join(outputs, " ")
}

func floodOutputs(actions, packet string) []string {
	tokens := portmap.SplitActions(actions)
	f := flood{tunnels: tunnelPorts(tokens)}
	if p, err := flow.Parse(strings.TrimPrefix(packet, "Flow: ")); err == nil {
		f.origin, f.packet = p, p.Clone()
	}
	for i := 0; i < len(tokens); i++ {
		token := tokens[i]
		if strings.HasPrefix(token, "tnl_push(") {
			// The last output to a tunnel is not in a clone action.
			f.output("clone(" + strings.Join(tokens[i:], ",") + ")")
			break
		}
		if strings.HasPrefix(token, "trunc(") && i+1 < len(tokens) {
			i++
			f.output(token + "," + tokens[i]) // trunc applies to the next output only
			continue
		}
		f.execute(token)
	}
	return f.outputs
}

// tunnelPorts returns the ports that are the first to get the packet after a tunnel was set:
// the other ports ignore that.
func tunnelPorts(tokens []string) map[string]bool {
	ports := map[string]bool{}
	waiting := false
	for _, token := range tokens {
		if strings.HasPrefix(token, "set(tunnel(") {
			waiting = true
		} else if waiting && isOutput(token) {
			ports[token], waiting = true, false
		}
	}
	return ports
}

// execute executes an action; what changes no packet counts as an output.
func (f *flood) execute(token string) {
	action, err := parseOne(token, 0)
	if err != nil {
		action = Unknown{token}
	}
	switch a := action.(type) {
	case SetTunnel:
		f.tunnel = token
	case Change:
		if err := a.Apply(&f.packet); err != nil {
			f.other = append(f.other, token)
		}
	case Untrack, DecrementTTL, Hash:
		f.other = append(f.other, token)
	default:
		if name, _, _ := call(token); name == "set" || strings.HasPrefix(name, "push_") || strings.HasPrefix(name, "pop_") {
			f.other = append(f.other, token)
			return
		}
		f.output(token)
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
	sort.Strings(changes)
	f.outputs = append(f.outputs, "["+strings.Join(append(changes, f.other...), " ")+"]"+token)
}

// sameValue reports whether two values of a field are equal; a field that a packet does not
// have is 0.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	x, errA := strconv.ParseUint(cmp.Or(a, "0"), 0, 64)
	y, errB := strconv.ParseUint(cmp.Or(b, "0"), 0, 64)
	return errA == nil && errB == nil && x == y
}

var (
	outputName = regexp.MustCompile(`^([A-Za-z0-9_.@-]+|"(\\.|[^"\\])*")$`)
	nestedList = regexp.MustCompile(`^(clone|sample|actions|check_pkt_len|gt|le)\((.*)\)$`)
)

// isOutput reports whether an action is a port, rather than one of the other actions
// without parentheses.
func isOutput(action string) bool {
	switch action {
	case "drop", "pop_vlan", "pop_eth", "ct_clear", "dec_ttl":
		return false
	}
	return outputName.MatchString(action)
}

// SortOutputs sorts each run of consecutive outputs, also in nested lists of actions.
func SortOutputs(actions string) string {
	tokens := portmap.SplitActions(actions)
	for start := 0; start < len(tokens); {
		if m := nestedList.FindStringSubmatch(tokens[start]); m != nil {
			tokens[start] = m[1] + "(" + SortOutputs(m[2]) + ")"
		}
		if strings.HasPrefix(tokens[start], "trunc(") {
			start += 2 // trunc applies to the next output only
			continue
		}
		end := start
		for end < len(tokens) && isOutput(tokens[end]) {
			end++
		}
		sort.Strings(tokens[start:end])
		start = max(end, start+1)
	}
	return strings.Join(tokens, ",")
}
