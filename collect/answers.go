package collect

import (
	"fmt"
	"strings"

	"ovs-offline/internal/workdir"
)

const (
	flowsOnly = "the bridges and their ports are made from ovs-ofctl show; " +
		"traces through flows can be replayed, but port types, tunnels, bonds, VLAN settings, patch ports and external_ids can't be known"
	rebuilt = "the OVS database is made from what ovsdb-client or ovs-vsctl printed of its tables"
)

// withoutDatabase says what stands in for conf.db.
func (p *Plan) withoutDatabase() string {
	sentence := "no conf.db in the report: "
	if p.Node.Source.Kind != "sos report" {
		sentence = "no conf.db: "
	}
	if p.rebuildable() {
		return sentence + rebuilt
	}
	return sentence + flowsOnly
}

// rebuildable tells whether the tables that make a switch were printed.
func (p *Plan) rebuildable() bool {
	have := map[string]bool{}
	for _, o := range p.Recorded {
		have[string(o.Meaning)] = !o.Truncated
	}
	if have[workdir.RecordedDatabaseDump] {
		return true
	}
	for _, table := range []string{"Open_vSwitch", "Bridge", "Port", "Interface"} {
		if !have[workdir.RecordedList(table)] {
			return false
		}
	}
	return true
}

// nothing says what a node lacks and what it has instead.
func (p *Plan) nothing(half Half) error {
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
	case !half.OVN:
		what, hint = "OVS data", "; was the openvswitch plugin enabled (sos report -e openvswitch)?"
	case !half.OVS:
		what, hint = "OVN database", "; take the report of a controller, with sos report -e ovn_central"
	}
	sentence := "no " + what + " in the report" + hint
	if len(has) > 0 {
		sentence += " It has " + strings.Join(has, ", ") + "."
	}
	if broken := append(p.Node.Lost, p.Broken...); len(broken) > 0 {
		sentence += " " + strings.Join(broken, "; ")
	}
	return fmt.Errorf("%w: %s", ErrNothing, sentence)
}
