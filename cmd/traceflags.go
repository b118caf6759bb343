package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/internal/fault"
)

// The ways in which trace is asked.
const (
	askedByNames   = "FROM TO"
	askedByFlow    = "--flow"
	askedByChecks  = "--file"
	askedByPackets = "--pcap"
	askedByLog     = "--log"
)

// asked returns the way in which trace is asked.
func (o *traceOptions) asked() string {
	switch {
	case o.log != "":
		return askedByLog
	case o.pcap != "":
		return askedByPackets
	case o.file != "":
		return askedByChecks
	case o.flow != "":
		return askedByFlow
	}
	return askedByNames
}

// refusal is a flag that means nothing for some ways of asking, and what to write instead.
type refusal struct {
	flag, instead string
	asked         []string
}

func refusals() []refusal {
	return []refusal{
		{"ttl", "write nw_ttl=N into the flow", []string{askedByFlow}},
		{"ttl", "a check has its own: ttl", []string{askedByChecks}},
		{"ttl", "the packets of the file have their own", []string{askedByPackets, askedByLog}},
		{"source-port", "write tp_src=PORT into the flow", []string{askedByFlow}},
		{"source-port", "a check takes none: ask about a flow", []string{askedByChecks}},
		{"source-port", "the packets of the file have their own", []string{askedByPackets, askedByLog}},
		{"size", "a check has its own: size", []string{askedByChecks}},
		{"size", "the packets of the file have their own", []string{askedByPackets}},
		{"size", "a log has no sizes", []string{askedByLog}},
		{"ipv4", "the packet has its family", []string{askedByFlow, askedByPackets, askedByLog}},
		{"ipv4", "a check has its own: family", []string{askedByChecks}},
		{"ipv6", "the packet has its family", []string{askedByFlow, askedByPackets, askedByLog}},
		{"ipv6", "a check has its own: family", []string{askedByChecks}},
		{"network", "the flow has no names", []string{askedByFlow}},
		{"network", "the log has no names", []string{askedByLog}},
		{"network", "a check has its own: network", []string{askedByChecks}},
		{"node", "it names the node that --flow enters; FROM names the node here", []string{askedByNames, askedByPackets, askedByLog}},
		{"node", "a check has its own: node", []string{askedByChecks}},
		{"expect", "a check has its own: expect", []string{askedByChecks}},
		{"expect", "a line has its own: verdict", []string{askedByLog}},
	}
}

// checkFlags refuses flags that would be ignored, checks --expect and --size, and reads -4, -6
// and --ct.
func (o *traceOptions) checkFlags(flags *pflag.FlagSet) error {
	asked := o.asked()
	for _, refused := range refusals() {
		if flags.Changed(refused.flag) && slices.Contains(refused.asked, asked) {
			return fault.Usagef("--%s does not go with %s: %s", refused.flag, asked, refused.instead)
		}
	}
	switch {
	case (o.format == "svg" || o.format == formatHTML) && slices.Contains([]string{askedByChecks, askedByPackets, askedByLog}, asked):
		return fault.Usagef("-o %s draws one answer, and %s asks about several packets: ask about one of them", o.format, asked)
	case len(o.nodes) > 1:
		return fault.Usagef("--flow enters one node: name one with --node")
	case o.expect != "" && o.expect != "reachable" && o.expect != "unreachable":
		return fault.Usagef("--expect takes reachable or unreachable, not %q", o.expect)
	}
	if err := trace.CheckSize(o.question.Size); err != nil {
		return err
	}
	var err error
	if o.question.Family, err = o.family(); err != nil {
		return err
	}
	if asked == askedByLog && !flags.Changed("ct") { // what was logged was before what was recorded
		o.ct = "new"
	}
	return readStates(o.ct, &o.session.Options)
}

// readStates reads --ct.
func readStates(ct string, options *follow.Options) error {
	switch ct {
	case "recorded":
		return nil
	case "new":
		options.New = true
		return nil
	}
	for _, text := range strings.Fields(ct) {
		state, ok := conntrack.ParseFlags(text)
		if !ok {
			return fault.Usagef("--ct takes recorded, new, or a list of states such as \"est,rpl new\", not %q", ct)
		}
		options.States = append(options.States, state)
	}
	return nil
}
