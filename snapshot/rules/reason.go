package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// Reason is the reason for a drop. The list is closed, so that scripts can rely on it.
type Reason string

// The reasons.
const (
	ACL          Reason = "ACL"
	NoRoute      Reason = "no route"
	TTL          Reason = "TTL"
	Unresolved   Reason = "ARP/ND unresolved"
	PortSecurity Reason = "port security"
	Disabled     Reason = "disabled"     // a port that an administrator has switched off
	UnknownVLAN  Reason = "unknown VLAN" // a tag where no port has it, or where none may be
	MTU          Reason = "MTU"
	Meter        Reason = "meter"
	NoSuchPort   Reason = "no such port"
	NotBound     Reason = "not bound"
	MissingFlow  Reason = "missing flow"
	StaleFlow    Reason = "stale flow"             // of a row that the southbound database no longer has
	Failed       Reason = "translation failed"     // ovs-vswitchd gave up, as for flows in a loop
	InputPort    Reason = "sent to its input port" // where OpenFlow sends only with the action IN_PORT
	Explicit     Reason = "explicit drop"
	Netfilter    Reason = "netfilter" // a rule of iptables or nftables in a network namespace
	NotForDevice Reason = "not for the device"
)

// Step is a flow that a packet matched on its way over one integration bridge.
type Step struct {
	Table int
	Rule  Rule
}

// End is where a packet ended on an integration bridge.
type End struct {
	Steps []Step // in the order in which the packet matched them
	// Miss is set if no flow of the last table matched. MissTable is that table.
	Miss      bool
	MissTable int
	Metadata  uint64 // of the packet when it missed
	OutPort   uint64 // the tunnel key of the packet's output port, 0 if no flow matched it
	Layout    Layout
	// Known is the reason if no flow shows it: MTU for a packet that is too large for a
	// port, Meter for one that a meter dropped.
	Known Reason
}

// Drop is the reason for a drop, and the rule that decided it.
type Drop struct {
	Reason Reason
	Stage  string // the name of the stage where it ended
	Rule   Rule   // Rule.Words is empty if no rule decided
}

// Drop returns the reason why a packet ended. It looks at the stage where the packet ended, and at the
// stages before it where these only carried out what one of them decided: newer releases
// evaluate ACLs in one stage and drop in another.
func (r *Rules) Drop(end End) (Drop, error) {
	if end.Known != "" {
		d := r.last(end)
		d.Reason = end.Known
		return d, nil
	}
	if n := len(end.Steps); !end.Miss && n > 0 && (end.Steps[n-1].Rule.Foreign || end.Steps[n-1].Rule.Stale) {
		d := r.last(end)
		if d.Reason = Explicit; d.Rule.Stale {
			d.Reason = StaleFlow
		}
		return d, nil
	}
	if n := len(end.Steps); !end.Miss && n > 0 && end.Steps[n-1].Rule.Row == "" && end.Layout.delivers(end.Steps[n-1].Table) {
		end.Miss, end.MissTable = true, end.Steps[n-1].Table // the flow by which ovn-controller drops what no other matches
	}
	if end.Miss {
		return r.missed(end)
	}
	d := r.last(end)
	if len(end.Steps) > 0 {
		d.Reason = reason(d.Rule, end.Steps[len(end.Steps)-1], end.Layout)
	}
	if decided, ok := deciding(end.Steps, d.Reason); ok {
		d.Rule = decided
		switch {
		case decided.Stale:
			d.Reason = StaleFlow
		case isDisabled(decided):
			d.Reason = Disabled
		}
	}
	return d, nil
}

func (r *Rules) last(end End) Drop {
	if len(end.Steps) == 0 {
		return Drop{Reason: Explicit}
	}
	last := end.Steps[len(end.Steps)-1].Rule
	return Drop{Stage: last.Stage, Rule: last}
}

// missed returns the reason for a packet that no flow of a table matched.
func (r *Rules) missed(end End) (Drop, error) {
	pipeline, table := end.Layout.logical(end.MissTable)
	if pipeline == "" {
		name := end.Layout.physical(end.MissTable)
		d := Drop{Reason: reasonPhysical(end.MissTable, end.Layout), Stage: name, Rule: Rule{Stage: name, Words: name}}
		switch out, known := r.Port(end.Metadata, end.OutPort); {
		case !end.Layout.delivers(end.MissTable):
			if end.Layout.passes(end.MissTable) {
				d.Reason = MissingFlow
				d.Rule.Words = fmt.Sprintf("the node lacks the flow of the stage %q that all packets match", name)
			}
		case !known:
		case out.Virtual && out.Bound:
			d.Reason = NoSuchPort
			d.Rule.Words = fmt.Sprintf("port %s is virtual: packets reach it with the MAC address of its parent, and none with its own", out)
		case out.Bound, out.Patch:
			d.Reason = MissingFlow
			d.Rule.Words = fmt.Sprintf("the node lacks the flow for port %s of the stage %q", out, name)
		default:
			d.Rule.Words = fmt.Sprintf("port %s is bound to no chassis", out)
		}
		return d, nil
	}
	datapath := r.Datapath(end.Metadata)
	d := Drop{Reason: MissingFlow, Rule: Rule{Pipeline: pipeline, Table: table, Datapath: datapath}}
	stage, err := r.stage(pipeline, table, datapath)
	if err != nil {
		return Drop{}, err
	}
	d.Stage, d.Rule.Stage = stage.name, stage.name
	if !stage.always {
		// Older releases drop what no flow of a stage matches.
		d.Reason = reason(Rule{Row: logicalFlow, Stage: stage.name, Match: "1", Actions: "drop;"}, Step{}, end.Layout)
	}
	return d, nil
}

// reason returns the reason for a drop by the flow of a rule.
func reason(rule Rule, step Step, l Layout) Reason {
	stage, actions := rule.Stage, rule.Actions
	switch rule.Row {
	case logicalFlow:
	case "Multicast_Group": // without members on this chassis
		return Explicit
	default:
		return reasonPhysical(step.Table, l)
	}
	byDefault := rule.Priority == 0 && strings.TrimSpace(rule.Match) == "1"
	switch {
	case isDisabled(rule):
		return Disabled
	case strings.Contains(rule.Match, "vlan.present"):
		return UnknownVLAN
	case IsAbout(stage, "ACL"):
		return ACL
	case isPortSecurity(rule):
		return PortSecurity
	case stage == "lr_in_ip_input" && strings.Contains(rule.Match, "ip.ttl"):
		return TTL
	case IsAbout(stage, "Logical_Router_Static_Route") && (byDefault || rule.Cause.Table == "Logical_Router_Static_Route"): // or a route that discards
		return NoRoute
	case stage == "lr_in_arp_resolve" && byDefault, stage == "lr_in_arp_request" && !byDefault:
		return Unresolved
	case stage == "lr_in_larger_pkts", stage == "lr_in_chk_pkt_len":
		return MTU
	case stage == "lr_in_ip_input" && (strings.Contains(actions, "icmp4_error") && strings.Contains(actions, "frag_mtu")):
		return MTU
	case stage == "lr_in_gw_redirect" && strings.HasPrefix(actions, "drop"): // a floating IP of a virtual port that nothing has claimed
		return NotBound
	case stage == "ls_in_l2_unknown" && strings.Contains(rule.Match, `"none"`): // a MAC address that no port has
		return NoSuchPort
	case stage == "ls_in_l2_lkup" && byDefault:
		return NoSuchPort
	}
	return Explicit
}

var (
	fragMTU = lazyregexp.New(`icmp[46]\.frag_mtu = (\d+)`)
	ofPort  = lazyregexp.New(`(inport|outport) == "([^"]+)"`)
)

// Limit returns the gateway_mtu in bytes for which a logical flow answers a packet with an
// error, and the router port that has it: the one that would send the packet, or else the one
// that received it.
func (r Rule) Limit() (port string, mtu int, ok bool) {
	found := fragMTU.FindStringSubmatch(r.Actions)
	if found == nil {
		return "", 0, false
	}
	for _, m := range ofPort.FindAllStringSubmatch(r.Match, -1) {
		if port == "" || m[1] == "outport" {
			port = m[2]
		}
	}
	mtu, err := strconv.Atoi(found[1])
	return port, mtu, err == nil && port != ""
}

// isDisabled reports whether a logical flow drops all packets from a disabled port, or to it.
// ovn-northd makes no other logical flows of a port in these stages that do.
func isDisabled(rule Rule) bool {
	if rule.Cause.Table != "Logical_Switch_Port" {
		return false
	}
	switch rule.Stage {
	case "ls_in_check_port_sec", "ls_out_check_port_sec":
		return strings.Contains(rule.Actions, "drop;") || strings.Contains(rule.Actions, "reg0[15] = 1")
	case "ls_in_l2_lkup", "ls_out_port_sec_l2":
		return strings.TrimSpace(rule.Actions) == "drop;"
	}
	return false
}

// isPortSecurity reports whether a logical flow drops what port security has marked.
// ls_in_check_port_sec also drops what no port may send, such as VLAN tags.
func isPortSecurity(rule Rule) bool {
	if strings.HasSuffix(rule.Stage, "_apply_port_sec") {
		return true
	}
	// before OVN 22.06: ls_in_port_sec_l2, ls_in_port_sec_ip, ls_out_port_sec_l2 ...
	return strings.Contains(rule.Stage, "_port_sec_") && !strings.Contains(rule.Match, "vlan.present") && !strings.Contains(rule.Match, "eth.src[40]")
}

// reasonPhysical returns the reason for a drop in a table of neither pipeline.
func reasonPhysical(table int, l Layout) Reason {
	switch known, _ := releaseOf(l.Egress); {
	case table == 0:
		return NoSuchPort
	case l.delivers(table):
		return NotBound
	case table == known.process: // larger than the tunnels of the port's chassis take
		return MTU
	}
	return Explicit
}

// deciding returns the rule that decided what the last step carried out; ok is false if
// the last step decided itself.
func deciding(steps []Step, why Reason) (rule Rule, ok bool) {
	if len(steps) < 2 {
		return Rule{}, false
	}
	last := steps[len(steps)-1].Rule
	for _, step := range slices.Backward(steps[:len(steps)-1]) {
		at := step.Rule
		if at.Row == logicalFlow && (at.Datapath != last.Datapath || at.Pipeline != last.Pipeline) {
			break
		}
		switch {
		case why == ACL && last.Cause.Table == "" && at.Cause.Table == "ACL" && sameACLs(at.Stage, last.Stage):
			return at, true
		case why == PortSecurity && at.Row == "Port_Binding":
			at.Words = "port security of " + at.Words
			return at, true
		case why == PortSecurity && last.Cause.Table == "" && strings.HasSuffix(at.Stage, "_check_port_sec") && at.Cause.Table == "Logical_Switch_Port":
			return at, true
		}
	}
	return Rule{}, false
}

// sameACLs reports whether two stages are about the same ACLs: those before the load
// balancers, or those after them.
func sameACLs(a, b string) bool {
	set := func(stage string) string {
		for _, suffix := range []string{"_eval", "_sample", "_action"} {
			stage = strings.TrimSuffix(stage, suffix)
		}
		return stage
	}
	return set(a) == set(b)
}
