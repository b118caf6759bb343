package tables

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// addPlaceholders makes the meters, groups and TLV mappings that flows and groups
// refer to and that no dump holds. Without them the switch rejects the flows.
func (t *Tables) addPlaceholders(ctx context.Context, b Bridge, version openflow.Version, groups []openflow.Entry, o *report.Outcome) error {
	refs, err := t.references(ctx, b)
	if err != nil {
		return err
	}
	for _, g := range groups {
		refs.Add(g.Text)
	}
	for _, g := range groups {
		delete(refs.Groups, g.ID)
	}
	before := len(t.Report.Placeholders)
	if err := t.addTLVPlaceholders(ctx, b, version, t.missing(b, workdir.TLV, refs.TLVs)); err != nil {
		return err
	}
	for _, id := range t.atMost(b, "meters", t.missing(b, workdir.Meters, refs.Meters)) {
		text := fmt.Sprintf("meter=%d kbps bands=type=drop rate=4294967295", id)
		why := fmt.Sprintf("flows refer to meter %d, which was not collected", id)
		if err := t.addPlaceholder(ctx, b, version, workdir.Meters, "add-meter", text, why, "added as a meter that never drops"); err != nil {
			return err
		}
	}
	for _, id := range t.atMost(b, "groups", slices.Sorted(maps.Keys(refs.Groups))) {
		text := fmt.Sprintf("group_id=%d,type=all", id)
		why := fmt.Sprintf("flows or groups refer to group %d, which was not collected", id)
		if err := t.addPlaceholder(ctx, b, version, workdir.Groups, "add-group", text, why, "added without buckets"); err != nil {
			return err
		}
	}
	if len(t.Report.Placeholders) > before {
		o.Note(report.Approximated, "%s: flows or groups refer to entries that were not collected: placeholders were added", b.Name)
	}
	return nil
}

// references returns what a bridge's flows refer to. A flow dump that is damaged,
// or of an OpenFlow version that lacks such actions, leaves out some of it; then
// bridge/dump-flows and the dumps of other versions count as well.
func (t *Tables) references(ctx context.Context, b Bridge) (openflow.References, error) {
	var refs openflow.References
	refs.Add("") // makes its maps
	dumped, err := t.Facts.dumped(ctx, b.Name)
	if err != nil {
		return refs, err
	}
	add(&refs, dumped.refs)
	if !dumped.damaged && t.dumpVersion(b, workdir.Flows) >= openflow.OpenFlow13 {
		return refs, nil
	}
	held, err := t.Facts.held(ctx, b.Name)
	if err != nil {
		return refs, err
	}
	add(&refs, held.refs)
	for _, v := range openflow.Versions() {
		other, err := readDumped(ctx, t.Workdir.OtherDump(b.Name, workdir.Flows, v.String()))
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

// missing returns the ids that a table of the replica does not have, sorted. It
// does not ask the switch: a new switch has what was read back after loading.
func (t *Tables) missing(b Bridge, dump workdir.Dump, ids map[uint32]bool) []uint32 {
	for _, e := range t.readBack[table{b.Name, dump}] {
		delete(ids, e.ID)
	}
	return slices.Sorted(maps.Keys(ids))
}

// atMost bounds the number of placeholders: each takes a run of ovs-ofctl, and
// flows can refer to four thousand million entries.
func (t *Tables) atMost(b Bridge, what string, missing []uint32) []uint32 {
	const maxPlaceholders = 500
	if len(missing) <= maxPlaceholders {
		return missing
	}
	t.remark(b, "flows refer to %d %s that were not collected: only the first %d get a placeholder", len(missing), what, maxPlaceholders)
	return missing[:maxPlaceholders]
}

// addPlaceholder adds a placeholder and reports why it was needed and how it was
// made, or that it could not be made.
func (t *Tables) addPlaceholder(ctx context.Context, b Bridge, version openflow.Version, dump workdir.Dump, command, text, why, how string) error {
	if err := t.ofctl(ctx, version, b, command, text); err != nil {
		t.remark(b, "%s; no placeholder can be added: %s", why, Reason(err))
		return ctx.Err()
	}
	t.Report.Placeholder(report.Item{Bridge: b.Name, Dump: dump, Text: text, Reason: why + ": " + how})
	return nil
}
