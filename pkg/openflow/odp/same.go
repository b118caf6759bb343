package odp

import (
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

var (
	recirculation = lazyregexp.New(`\b(recirc\(|recirc_id=)(0x[0-9a-fA-F]+|[0-9]+)`)
	upcallPID     = lazyregexp.New(`\bpid=[0-9]+`)
	meterNumber   = lazyregexp.New(`\bmeter\([0-9]+\)`)
	ctTimeout     = lazyregexp.New(`,timeout=[^,()]*`)
	dropsBoth     = lazyregexp.New(`\bcheck_pkt_len\(size=[0-9]+,gt\(drop\),le\(drop\)\)`)
	sendsNot      = lazyregexp.New(`\bdont_send=[01]\b`) // 1 in traces, which have no side effects
	slowPath      = lazyregexp.New(`\bslow_path\(([a-z_,]*)\)`)
)

// Recirculations returns the ids of the recirculations in datapath actions, in their
// order.
func Recirculations(actions string) (ids []uint32) {
	for _, match := range recirculation.FindAllStringSubmatch(actions, -1) {
		if id, err := strconv.ParseUint(match[2], 0, 32); err == nil {
			ids = append(ids, uint32(id))
		}
	}
	return ids
}

// PairedRecirculations returns the ids of the recirculations in datapath actions in an order
// that is the same for two runs of one switch. A flow is needed where the actions flood.
func PairedRecirculations(actions string, flood bool, flow string) (ids []uint32) {
	if !flood {
		return Recirculations(actions)
	}
	outputs := floodOutputs(actions, flow)
	slices.SortStableFunc(outputs, func(a, b string) int { return strings.Compare(Normal(a, false, ""), Normal(b, false, "")) })
	for _, output := range outputs {
		ids = append(ids, Recirculations(output)...)
	}
	return ids
}

// Normal returns datapath actions in a form that is the same for two runs of one switch:
// it numbers recirculations in their order, or gives them one number where the actions flood;
// replaces a check of the size by a drop if both of its lists drop; removes the pids of upcalls,
// the numbers of meters and the timeout policies; and sorts outputs. A flow, as ofproto/trace
// prints it after "Flow: ", is needed where the actions flood: "" elsewhere.
func Normal(actions string, flood bool, flow string) string {
	n := 0
	text := recirculation.ReplaceAllStringFunc(actions, func(found string) string {
		if !flood { // a flood has them in any order
			n++
		}
		return recirculation.FindStringSubmatch(found)[1] + "R" + strconv.Itoa(n)
	})
	text = upcallPID.ReplaceAllString(text, "pid=N")
	text = sendsNot.ReplaceAllString(text, "dont_send=N")
	text = meterNumber.ReplaceAllString(text, "meter(N)")
	text = ctTimeout.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "dec_ttl()", "dec_ttl")
	text = dropsBoth.ReplaceAllString(text, "drop")
	if text = SortOutputs(text); flood {
		return FloodOutputs(text, flow)
	}
	return text
}

// SlowPath returns the reasons for which datapath actions send the packet to
// ovs-vswitchd, nil if they do not.
func SlowPath(actions string) []string {
	match := slowPath.FindStringSubmatch(actions)
	if match == nil {
		return nil
	}
	return strings.Split(match[1], ",")
}

// SlowPathReason returns the reason, in the notation of datapath actions, that
// ofproto/trace explains (lib/odp-util.h, SLOW_PATH_REASONS); "" for another text.
func SlowPathReason(explained string) string {
	for reason, begins := range map[string]string{"cfm": "Consists of CFM", "bfd": "Consists of BFD", "lacp": "Consists of LACP", "stp": "Consists of STP",
		"lldp": "Consists of LLDP", "action": "Uses action(s) not supported", "match": "Datapath can't match", "controller": `Sends "packet-in"`} {
		if strings.HasPrefix(explained, begins) {
			return reason
		}
	}
	return ""
}
