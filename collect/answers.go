package collect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

const (
	flowsOnly = "the bridges and their ports are made from ovs-ofctl show; " +
		"traces through flows can be replayed, but port types, tunnels, bonds, VLAN settings, patch ports and external_ids are not known"
	rebuilt  = "the OVS database is made from what ovsdb-client or ovs-vsctl printed of its tables"
	outlined = "bridges, ports, bonds, types, options and tags are made from ovs-vsctl show; " +
		"VLAN and bond modes, other_config and external_ids are not known"
)

// withoutDatabase returns a sentence about what replaces a missing conf.db.
func (p *Plan) withoutDatabase() string {
	sentence := "no conf.db: "
	if p.Source.Kind == "sos report" {
		sentence = "no conf.db in the report: "
	}
	return sentence + cmp.Or(p.substitute, flowsOnly)
}

// missingError returns the error for a node that has none of the selected data. The error
// names the data that the node has instead.
func (p *Plan) missingError(selected Select) error {
	var has []string
	for _, kind := range workdir.Kinds() {
		if p.Database(kind) != nil {
			has = append(has, "an "+kind.Title()+" database")
		}
	}
	if len(p.Bridges) > 0 {
		has = append(has, fmt.Sprintf("%d bridges", len(p.Bridges)))
	}
	what, hint := "OVS or OVN data", ""
	switch {
	case !selected.OVN:
		what, hint = "OVS data", "; was the openvswitch plugin enabled (sos report -e openvswitch)?"
	case !selected.OVS:
		what, hint = "OVN database", "; take the report of a controller, with sos report -e ovn_central"
	}
	source := p.Source.Kind
	if source == "sos report" {
		source = "report"
	}
	sentence := "no " + what + " in the " + source + hint
	if len(has) > 0 {
		sentence += " It has " + strings.Join(has, ", ") + "."
	}
	if broken := slices.Concat(p.Lost, p.Broken); len(broken) > 0 {
		sentence += " " + strings.Join(broken, "; ")
	}
	return fmt.Errorf("%w: %s", ErrNothing, sentence)
}

// answers returns what a replica can answer, and what it cannot and why.
func (p *Plan) answers() (can, cannot []string) {
	switch {
	case p.Database(workdir.OVS) != nil:
		can = append(can, "ovs-vsctl: the OVS database as it was recorded")
	case p.substitute != "" && (len(p.Bridges) > 0 || !p.hasOVN()):
		can = append(can, "ovs-vsctl: "+p.substitute)
	case p.HasOVS():
		cannot = append(cannot, p.withoutDatabase())
	}
	for _, bridge := range p.Bridges {
		complete, missing := p.bridgeAnswers(bridge)
		can, cannot = append(can, complete...), append(cannot, missing...)
	}
	switch {
	case p.HasOVS():
		cannot = append(cannot, p.missingState()...)
	case p.substitute != "" && !p.hasOVN():
		cannot = append(cannot, "ofproto/trace, ovs-ofctl: no flows were collected: add the output of ovs-ofctl dump-flows BRIDGE")
	case p.substitute == "" && len(p.Recorded) > 0 && !p.hasOVN():
		cannot = append(cannot, "anything: neither a database nor flows nor ovs-vsctl show were collected, and no replica starts without them: only commands that read the recorded outputs work")
	default:
		cannot = append(cannot, "ofproto/trace, ovs-ofctl: nothing of Open vSwitch was collected"+p.synthesis())
	}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		tools := map[workdir.Kind]string{workdir.NB: "ovn-nbctl", workdir.SB: "ovn-sbctl, ovn-trace, ovn-detrace"}[kind]
		switch db := p.Database(kind); {
		case db == nil:
			cannot = append(cannot, tools+": no "+kind.Title()+" database")
		case db.Printed != "":
			can = append(can, tools+": start makes the "+kind.Title()+" database from its printed tables")
		default:
			can = append(can, tools)
		}
	}
	return can, cannot
}

// hasOVN reports whether the node has an OVN database.
func (p *Plan) hasOVN() bool { return p.Database(workdir.NB) != nil || p.Database(workdir.SB) != nil }

// synthesis describes how start replaces missing data of Open vSwitch, for the end of a
// sentence.
func (p *Plan) synthesis() string {
	if p.Database(workdir.NB) == nil || p.Database(workdir.SB) == nil {
		return ""
	}
	return "; start synthesises the switches of the chassis from the OVN databases, with OVN of their release"
}

// bridgeAnswers returns the answers for one bridge. Everything that the bridge's flows
// refer to has to exist in the replica.
func (p *Plan) bridgeAnswers(bridge Bridge) (can, cannot []string) {
	flows := bridge.usedDump(workdir.Flows)
	if flows == nil {
		return nil, []string{fmt.Sprintf("ofproto/trace %s: no flows were recorded (a fake bridge has none)", bridge.Name)}
	}
	can = append(can, fmt.Sprintf("ofproto/trace %s: %d flows of %s", bridge.Name, flows.Entries, flows.OpenFlow))
	for _, remark := range flows.remarks(workdir.Flows) {
		cannot = append(cannot, fmt.Sprintf("%s: %s", bridge.Name, remark))
	}
	references := bridge.references()
	things := map[workdir.Dump]string{workdir.Meters: "meters", workdir.Groups: "groups", workdir.TLV: "tun_metadata fields"}
	for _, dump := range []workdir.Dump{workdir.Meters, workdir.Groups, workdir.TLV} {
		inScript := dump == workdir.TLV && len(p.Outputs(recording.SaveScript, "")) > 0
		if bridge.usedDump(dump) == nil && references[dump] > 0 && !inScript {
			command := commandOf(dump)
			cannot = append(cannot, fmt.Sprintf("%s: its flows refer to %d %s and there is no %s: %s", bridge.Name, references[dump], things[dump], command.Name, command.Missing))
		}
	}
	if groups := bridge.usedDump(workdir.Groups); groups != nil && groups.Entries > 0 && groups.OpenFlow > openflow.OpenFlow10 && groups.OpenFlow < openflow.OpenFlow15 {
		cannot = append(cannot, fmt.Sprintf("%s: its groups are of %s, which has no selection methods: a trace may take another bucket", bridge.Name, groups.OpenFlow))
	}
	return can, cannot
}

func commandOf(dump workdir.Dump) recording.Command {
	commands := recording.Dumps()
	return commands[slices.IndexFunc(commands, func(command recording.Command) bool { return command.Dump == dump })]
}

// missingState returns what a replica lacks because its state was not recorded.
func (p *Plan) missingState() []string {
	have := map[recording.Name]bool{}
	for _, output := range p.Recorded {
		have[output.Command] = true
	}
	var cannot []string
	for _, command := range recording.Recorded() {
		if command.Missing != "" && !have[command.Name] {
			cannot = append(cannot, command.Missing)
		}
	}
	slices.Sort(cannot)
	return cannot
}
