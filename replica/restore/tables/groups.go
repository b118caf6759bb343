package tables

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// TLVMaps maps tunnel options to fields, before any flow refers to the fields.
func (t *Tables) TLVMaps(ctx context.Context, outcome *report.Outcome) error {
	script, err := t.saveScript()
	if err != nil {
		return err
	}
	return t.restore(ctx, tlvTable, outcome, func(table *table, list []openflow.Entry) ([]openflow.Entry, error) {
		if mappings := script.mappings[table.bridge.Name]; len(list) == 0 && len(mappings) > 0 {
			for i, text := range mappings {
				list = append(list, openflow.Entry{Line: i + 1, Text: text})
			}
			table.counts().Collected = len(list)
		}
		return list, nil
	})
}

// Meters adds meters in the order in which they were made on the live node,
// because their ids in the datapath follow that order.
func (t *Tables) Meters(ctx context.Context, outcome *report.Outcome) error {
	return t.restore(ctx, meterTable, outcome, func(table *table, list []openflow.Entry) ([]openflow.Entry, error) {
		if len(list) < 2 {
			return list, nil
		}
		file, ok, err := workdir.OpenCollected(t.Workdir.BridgeRecorded(table.bridge.Name, workdir.RecordedMeterStats))
		if err != nil {
			return nil, err
		}
		if !ok {
			outcome.Note(report.Approximated, "%s: no meter-stats was collected: the order in which meters were made, and so their ids in datapath actions, is not known", table.bridge.Name)
			return list, nil
		}
		defer file.Close()
		ages := openflow.MeterAges(file)
		slices.SortStableFunc(list, func(x, y openflow.Entry) int { return cmp.Compare(ages[y.ID], ages[x.ID]) })
		for i, entry := range list[1:] {
			if ages[entry.ID] == ages[list[i].ID] {
				outcome.Note(report.Approximated, "%s: meters %d and %d have the same age in meter-stats: which one was made first, and so their ids in datapath actions, is not known", table.bridge.Name, list[i].ID, entry.ID)
				break
			}
		}
		return list, nil
	})
}

// Groups adds groups in any order, because a switch takes groups that refer to
// missing ones, and before them placeholders for the entries of any table that
// flows and groups refer to and that were not collected.
func (t *Tables) Groups(ctx context.Context, outcome *report.Outcome) error {
	return t.restore(ctx, groupTable, outcome, func(table *table, list []openflow.Entry) ([]openflow.Entry, error) {
		// In OpenFlow 1.0 ovs-ofctl dumps groups by Nicira's extension, which holds as much as OpenFlow 1.5.
		collected := table.dumpVersion()
		isSelect := func(entry openflow.Entry) bool { return strings.Contains(entry.Text, "type=select") }
		if collected != openflow.OpenFlow10 && collected < openflow.OpenFlow15 && slices.ContainsFunc(list, isSelect) {
			outcome.Note(report.Approximated, "%s: its groups were dumped in %s, which has no selection methods: the bucket that a trace takes may differ", table.bridge.Name, collected)
		}
		return list, table.addMissing(ctx, list, outcome)
	})
}
