package slow

import (
	"cmp"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/odp"
)

// Offload is what the hardware, or TC in the kernel, forwards of the recorded flows of a datapath.
type Offload struct {
	Node      string   `json:"node,omitempty"`
	Enabled   bool     `json:"enabled"` // other_config:hw-offload
	Flows     int      `json:"flows"`
	Offloaded int      `json:"offloaded"`
	Partial   int      `json:"partial"`
	Packets   uint64   `json:"packets"`     // of all flows
	Slow      uint64   `json:"not_packets"` // of the flows that are not offloaded
	Reasons   []Reason `json:"reasons"`     // for these, the most packets first
}

// Not returns the number of flows that are not offloaded.
func (o *Offload) Not() int { return o.Flows - o.Offloaded - o.Partial }

// Reason is a match or an action for which flows are not offloaded.
type Reason struct {
	What    string `json:"what"`
	Source  string `json:"source,omitempty"`
	Flows   int    `json:"flows"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Example string `json:"example"` // the flow with the most packets

	most uint64 // the packets of the example
}

// The functions of Open vSwitch that refuse to offload a flow, in lib/netdev-offload-tc.c (lib/dpif-offload-tc-netdev.c
// since 4.0).
const (
	ofMatch   = "test_key_and_mask in lib/netdev-offload-tc.c of Open vSwitch"
	ofActions = "netdev_tc_parse_nl_actions in lib/netdev-offload-tc.c of Open vSwitch"
	ofSet     = "parse_put_flow_set_masked_action in lib/netdev-offload-tc.c of Open vSwitch"
	ofCT      = "parse_put_flow_ct_action in lib/netdev-offload-tc.c of Open vSwitch"
	ofState   = "parse_match_ct_state_to_flower in lib/netdev-offload-tc.c of Open vSwitch"
	ofChain   = "netdev_tc_flow_put in lib/netdev-offload-tc.c of Open vSwitch"
)

// noReason is the reason of flows that have none of the others.
const noReason = "nothing in the match or the actions: an output port does not offload, or the driver or the hardware refused"

// maxChains bounds the recirculations that are remembered.
const maxChains = 1 << 16

// offloadCount counts flows. They are read in any order, so that the recirculations are judged at the end.
type offloadCount struct {
	Offload
	reasons map[string]*Reason
	chains  map[string]*Reason // of flows without another reason, by their recirculation
	leads   map[string]bool    // recirculations to which offloaded flows lead
	layers  bool               // the dump says what offloads a flow
	judged  bool               // flows may be offloaded, so that the reasons are wanted
}

func newOffloadCount(judged bool) *offloadCount {
	return &offloadCount{judged: judged, reasons: map[string]*Reason{}, chains: map[string]*Reason{}, leads: map[string]bool{}}
}

func (o *offloadCount) add(m *appctl.Megaflow) {
	o.Flows++
	o.Packets += m.Packets
	o.layers = o.layers || m.Layer != "" || m.Offloaded != ""
	switch {
	case m.Offloaded == "partial":
		o.Partial++
	case m.Offloaded == "yes":
		o.Offloaded++
		o.addLeads(m.Actions)
	default:
		o.Slow += m.Packets
		if m.Layer == "tc" { // offloaded to the kernel's TC, and not to the hardware
			o.addLeads(m.Actions)
		}
		if o.judged {
			o.addReason(m)
		}
	}
}

var recircTo = lazyregexp.New(`\brecirc\((0x[0-9a-fA-F]+|[0-9]+)\)`)

func (o *offloadCount) addLeads(actions string) {
	for _, found := range recircTo.FindAllStringSubmatch(actions, -1) {
		if len(o.leads) < maxChains {
			o.leads[strings.Clone(found[1])] = true
		}
	}
}

func (o *offloadCount) addReason(m *appctl.Megaflow) {
	what, source := reasonOf(m)
	all := o.reasons
	if what == "" {
		what = noReason
		if id := recircOf(m.Key); id != "" && (len(o.chains) < maxChains || o.chains[id] != nil) {
			what, all = id, o.chains
		}
	}
	reason := all[what]
	if reason == nil {
		reason = &Reason{What: strings.Clone(what), Source: source}
		all[reason.What] = reason
	}
	reason.Flows++
	reason.Packets += m.Packets
	reason.Bytes += m.Bytes
	if reason.Example == "" || m.Packets > reason.most {
		reason.most = m.Packets
		reason.Example = example(m)
	}
}

// maxExample bounds an example of a flow, in bytes.
const maxExample = 1024

func example(m *appctl.Megaflow) string {
	var parts []string
	size := 0
	for c := range odp.Criteria(m.Key) {
		if c.IsOpen() || size > maxExample {
			continue
		}
		text := c.Header + "(" + strings.TrimPrefix(c.Field+"="+c.Value, "=") + ")"
		size += len(text)
		parts = append(parts, text)
	}
	actions := m.Actions
	if len(actions) > maxExample {
		actions = actions[:maxExample] + "..."
	}
	return strings.Join(parts, ",") + ", actions:" + actions
}

func recircOf(key string) string {
	_, after, found := strings.Cut(key, "recirc_id(")
	id, _, _ := strings.Cut(after, ")")
	if !found || id == "0" || id == "0x0" {
		return ""
	}
	return id
}

// finish returns the counts.
func (o *offloadCount) finish() *Offload {
	for id, reason := range o.chains {
		what, source := noReason, ""
		if !o.leads[id] {
			what, source = "recirc_id: the flow before it is not offloaded either", ofChain
		}
		known := o.reasons[what]
		if known == nil {
			known = &Reason{What: what, Source: source}
			o.reasons[what] = known
		}
		known.Flows += reason.Flows
		known.Packets += reason.Packets
		known.Bytes += reason.Bytes
		if known.Example == "" || reason.most > known.most {
			known.Example, known.most = reason.Example, reason.most
		}
	}
	result := o.Offload
	result.Reasons = []Reason{}
	for _, reason := range o.reasons {
		result.Reasons = append(result.Reasons, *reason)
	}
	slices.SortFunc(result.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), b.Flows-a.Flows, strings.Compare(a.What, b.What))
	})
	return &result
}

// reasonOf returns the first match or action for which TC does not take a flow, "" for none.
func reasonOf(m *appctl.Megaflow) (what, source string) {
	n := 0
	for action := range openflow.Split(m.Actions) {
		if what, source = refusedAction(strings.TrimSpace(action)); what != "" {
			return what, source
		}
		n++
	}
	const most = 16 // TCA_ACT_MAX_NUM in lib/tc.h
	if n > most {
		return "actions: more than 16", ofActions
	}
	sixes, fragment := false, false
	for c := range odp.Criteria(m.Key) {
		if what, source = refusedMatch(c); what != "" {
			return what, source
		}
		sixes = sixes || c.Header == "ipv6"
		fragment = fragment || c.Field == "frag" && (c.Value == "first" || c.Value == "later")
	}
	if sixes && fragment {
		return "match on fragments of IPv6", ofMatch
	}
	return "", ""
}

// refusedActions are the actions that TC has no equivalent of.
var refusedActions = []string{"userspace", "sample", "psample", "hash", "clone", "trunc", "push_nsh", "pop_nsh", "push_eth", "pop_eth", "lb_output", "add_mpls", "dec_ttl", "tnl_push", "tnl_pop"}

func refusedAction(action string) (what, source string) {
	name, arguments, _ := strings.Cut(action, "(")
	switch {
	case strings.Contains(action, "slow_path("), name == "userspace" && strings.Contains(action, "controller("):
		return "action userspace: ovs-vswitchd handles the packets", ofActions
	case slices.Contains(refusedActions, name):
		return "action " + name, ofActions
	case name == "ct" && strings.Contains(arguments, "helper="):
		return "action ct with a helper", ofCT
	case name == "set":
		return refusedSet(arguments)
	}
	return "", ""
}

func refusedSet(arguments string) (what, source string) {
	header, fields, _ := strings.Cut(arguments, "(")
	switch header {
	case "ipv4", "eth", "tcp", "udp", "mpls", "eth_type":
	case "ipv6":
		if strings.Contains(fields, "label=") {
			return "action set(ipv6(label))", ofSet
		}
	case "tunnel":
		if strings.Contains(fields, "tp_src=") {
			return "action set(tunnel(tp_src))", ofSet
		}
	default:
		return "action set(" + header + ")", ofSet
	}
	return "", ""
}

func refusedMatch(c odp.Criterion) (what, source string) {
	if c.IsOpen() {
		return "", ""
	}
	value, mask, masked := strings.Cut(c.Value, "/")
	switch c.Header {
	case "skb_mark":
		if value == "0" && !masked { // the match on mark 0 is left out
			return "", ""
		}
		return "match on skb_mark", ofMatch
	case "dp_hash", "skb_priority", "ct_tuple4", "ct_tuple6", "nd", "nd_ext", "nsh":
		return "match on " + c.Header, ofMatch
	case "packet_type":
		if c.Field == "ns" && value != "0" {
			return "match on packet_type", ofMatch
		}
	case "ipv6":
		if c.Field == "label" {
			return "match on ipv6(label)", ofMatch
		}
	case "vlan":
		if masked && strings.Trim(mask, "0xf7") != "" {
			return "match on a part of vlan(" + c.Field + ")", ofChain
		}
	case "ct_state":
		if strings.Contains(value, "snat") || strings.Contains(value, "dnat") {
			return "match on ct_state with snat or dnat", ofState
		}
	}
	return "", ""
}
