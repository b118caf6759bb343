package collect

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/recording"
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

// rebuildable tells whether what was printed of the tables makes a switch.
func (p *Plan) rebuildable() bool {
	dump, lists := "", map[string]string{}
	for _, o := range p.Recorded {
		if string(o.Meaning) == workdir.RecordedDatabaseDump {
			dump = o.File
		}
		for _, table := range workdir.ListedTables() {
			if string(o.Meaning) == workdir.RecordedList(table) {
				lists[table] = o.File
			}
		}
	}
	_, ok, err := file.Printed(dump, lists)
	return ok && err == nil
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

// answers says what a replica will be able to answer, and what not, and why.
func (p *Plan) answers() (can, cannot []string, err error) {
	switch {
	case p.Database(workdir.OVS) != nil:
		can = append(can, "ovs-vsctl: the OVS database as it was recorded")
	case p.rebuildable():
		can = append(can, "ovs-vsctl: "+rebuilt)
	case p.HasOVS():
		cannot = append(cannot, p.withoutDatabase())
	}
	for _, b := range p.Bridges {
		c, n, err := p.bridgeAnswers(b)
		if err != nil {
			return nil, nil, err
		}
		can, cannot = append(can, c...), append(cannot, n...)
	}
	if p.HasOVS() {
		cannot = append(cannot, p.missingState()...)
	} else {
		cannot = append(cannot, "ofproto/trace, ovs-ofctl: nothing of Open vSwitch was collected")
	}
	if p.Database(workdir.NB) != nil {
		can = append(can, "ovn-nbctl")
	} else {
		cannot = append(cannot, "ovn-nbctl: no OVN NB database")
	}
	if p.Database(workdir.SB) != nil {
		can = append(can, "ovn-sbctl, ovn-trace, ovn-detrace")
	} else {
		cannot = append(cannot, "ovn-sbctl, ovn-trace, ovn-detrace: no OVN SB database")
	}
	return can, cannot, nil
}

// bridgeAnswers says it of one bridge: what its flows name has to be there.
func (p *Plan) bridgeAnswers(b Bridge) (can, cannot []string, err error) {
	flows := b.used(workdir.Flows)
	if flows == nil {
		return nil, []string{fmt.Sprintf("ofproto/trace %s: no flows of it (a fake bridge has none)", b.Name)}, nil
	}
	can = append(can, fmt.Sprintf("ofproto/trace %s: %d flows of %s", b.Name, flows.Entries, flows.OpenFlow))
	for _, r := range flows.remarks(workdir.Flows) {
		cannot = append(cannot, fmt.Sprintf("%s: %s", b.Name, r))
	}
	refs, err := b.references()
	if err != nil {
		return nil, nil, err
	}
	for _, c := range []struct {
		dump  workdir.Dump
		named map[uint32]bool
		what  string
	}{
		{workdir.Meters, refs.Meters, "%s: its flows name %d meters and no dump-meters is there: placeholders that never drop will stand for them"},
		{workdir.Groups, refs.Groups, "%s: its flows name %d groups and no dump-groups is there: placeholders without buckets will stand for them"},
		{workdir.TLV, refs.TLVs, "%s: its flows name %d tun_metadata fields and no dump-tlv-map is there: placeholders will stand for them"},
	} {
		if b.used(c.dump) == nil && len(c.named) > 0 && (c.dump != workdir.TLV || len(p.Node.Outputs(recording.SaveScript, "")) == 0) {
			cannot = append(cannot, fmt.Sprintf(c.what, b.Name, len(c.named)))
		}
	}
	if groups := b.used(workdir.Groups); groups != nil && groups.Entries > 0 && groups.OpenFlow != "OpenFlow10" && groups.OpenFlow < "OpenFlow15" {
		cannot = append(cannot, fmt.Sprintf("%s: its groups are of %s, which doesn't tell selection methods: the bucket that a trace takes may differ", b.Name, groups.OpenFlow))
	}
	return can, cannot, nil
}

// missingState names the recorded state whose lack a trace can show.
func (p *Plan) missingState() []string {
	have := map[string]bool{}
	for _, o := range p.Recorded {
		have[string(o.Meaning)] = true
	}
	var cannot []string
	for _, c := range []struct{ name, why string }{
		{workdir.RecordedFDB, "no fdb/show: NORMAL floods where the live switch had learned a MAC"},
		{workdir.RecordedFeatures, "no dpif/show-dp-features: those of a kernel datapath are taken"},
		{workdir.RecordedShow, "no ovs-ofctl show: ports are taken as up, datapath ids and MACs as made anew"},
		{workdir.RecordedBFD, "no bfd/show: tunnels are taken as forwarding unless list interface tells"},
	} {
		if !have[c.name] {
			cannot = append(cannot, c.why)
		}
	}
	slices.Sort(cannot)
	return cannot
}
