package tables

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// addMissing adds placeholders for the meters, groups and TLV mappings that flows
// and groups refer to and that no dump holds. Without them the switch rejects the flows.
func (t *table) addMissing(ctx context.Context, groups []openflow.Entry, outcome *report.Outcome) error {
	refs, err := t.references(ctx)
	if err != nil {
		return err
	}
	for _, entry := range groups {
		refs.Add(entry.Text)
	}
	for _, entry := range groups {
		delete(refs.Groups, entry.ID)
	}
	before := len(t.Report.Placeholders)
	for _, wanted := range []struct {
		kind
		ids map[uint32]bool
	}{{tlvTable, refs.TLVs}, {meterTable, refs.Meters}, {groupTable, refs.Groups}} {
		if err := t.tableOf(wanted.kind).addPlaceholders(ctx, wanted.ids); err != nil {
			return err
		}
	}
	if len(t.Report.Placeholders) > before {
		outcome.Note(report.Approximated, "%s: flows or groups refer to entries that were not collected: placeholders were added", t.bridge.Name)
	}
	return nil
}

// references returns what the bridge's flows refer to. A flow dump that is damaged,
// or of an OpenFlow version that lacks such actions, leaves out some of it; then
// bridge/dump-flows and the dumps of other versions count as well.
func (t *table) references(ctx context.Context) (openflow.References, error) {
	var refs openflow.References
	refs.Add("") // makes its maps
	dumped, err := t.Facts.dumped(ctx, t.bridge.Name)
	if err != nil {
		return refs, err
	}
	add(&refs, dumped.refs)
	if !dumped.damaged && t.tableOf(flowTable).dumpVersion() >= openflow.OpenFlow13 {
		return refs, nil
	}
	held, err := t.Facts.held(ctx, t.bridge.Name)
	if err != nil {
		return refs, err
	}
	add(&refs, held.refs)
	for _, version := range openflow.Versions() {
		other, err := readDumped(ctx, t.Workdir.OtherDump(t.bridge.Name, workdir.Flows, version.String()))
		if err != nil {
			return refs, err
		}
		add(&refs, other.refs)
	}
	return refs, nil
}

func add(refs *openflow.References, more openflow.References) {
	maps.Copy(refs.Meters, more.Meters)
	maps.Copy(refs.Groups, more.Groups)
	maps.Copy(refs.TLVs, more.TLVs)
}

// addPlaceholders adds placeholders for the ids that the replica does not
// have: a new switch has the collected entries that it did not reject. Each takes a
// run of ovs-ofctl, and flows can refer to four thousand million entries, so their
// number is bounded.
func (t *table) addPlaceholders(ctx context.Context, ids map[uint32]bool) error {
	for _, loaded := range t.loaded {
		if loaded.path() != t.path() {
			continue
		}
		for _, entry := range loaded.collected {
			if !loaded.counts().IsRejected(entry.Line) {
				delete(ids, entry.ID)
			}
		}
	}
	missing := slices.Sorted(maps.Keys(ids))
	const maxPlaceholders = 500
	if len(missing) > maxPlaceholders {
		t.remark("%s: flows refer to %d entries that were not collected: only the first %d get a placeholder", t.dump, len(missing), maxPlaceholders)
		missing = missing[:maxPlaceholders]
	}
	for _, id := range missing {
		placeholder, err := t.placeholder(ctx, id)
		if err != nil {
			return err
		}
		err = t.sendAs(ctx, []entry{{text: placeholder.text, version: t.version}}, NoNames)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			t.remark("%s; no placeholder can be added: %s", placeholder.why, Reason(err))
		default:
			t.Report.Placeholder(report.Item{Bridge: t.bridge.Name, Dump: t.dump, Text: placeholder.text, Reason: placeholder.why + ": " + placeholder.how})
		}
	}
	return nil
}

// placeholder is an entry that no dump holds, why it is needed, and how it is made.
type placeholder struct{ text, why, how string }

// ovnMapping maps the Geneve option in which OVN carries its ports
// (ovn-architecture(7), "Tunnel Encapsulations"), the only one that
// ovn-controller maps.
const ovnMapping = "{class=0x102,type=0x80,len=4}->tun_metadata0"

// placeholder returns the placeholder with an id. Fields without a collected
// mapping are mapped to options of the experimental class (RFC 8926 section 7.1),
// which no peer sends.
func (t *table) placeholder(ctx context.Context, id uint32) (placeholder, error) {
	switch t.dump {
	case workdir.Meters:
		return placeholder{fmt.Sprintf("meter=%d kbps bands=type=drop rate=4294967295", id),
			fmt.Sprintf("flows refer to meter %d, and it was not collected", id), "added as a meter that never drops"}, nil
	case workdir.Groups:
		return placeholder{fmt.Sprintf("group_id=%d,type=all", id),
			fmt.Sprintf("flows or groups refer to group %d, and it was not collected", id), "added without buckets"}, nil
	}
	placeholder := placeholder{fmt.Sprintf("{class=0xffff,type=%#x,len=4}->tun_metadata%d", id&0x7f, id),
		fmt.Sprintf("flows refer to tun_metadata%d, and its mapping was not collected", id), "mapped to an option of 4 bytes that no peer sends"}
	if id != 0 {
		return placeholder, nil
	}
	isOVN, err := t.Switch.IsOVN(ctx, t.bridge.Name)
	if isOVN {
		placeholder.text, placeholder.how = ovnMapping, "mapped to OVN's own option"
	}
	return placeholder, err
}
