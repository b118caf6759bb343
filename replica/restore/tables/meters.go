package tables

import (
	"cmp"
	"context"
	"slices"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// Meters adds meters in the order in which they were made on the live node,
// because their ids in the datapath follow that order.
func (t *Tables) Meters(ctx context.Context, o *report.Outcome) error {
	for _, b := range t.Bridges {
		list, err := t.entries(b, workdir.Meters, openflow.Meters)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		version, err := t.Switch.Version(ctx, b.Name)
		if err != nil {
			return err
		}
		ordered, err := t.byAge(b, list, o)
		if err != nil {
			return err
		}
		if err := t.addEach(ctx, b, version, workdir.Meters, "add-meter", ordered); err != nil {
			return err
		}
		back := readBackVersion(b, t.dumpVersion(b, workdir.Meters), version)
		if err := t.compare(ctx, b, back, NoNames, workdir.Meters, "dump-meters", openflow.Meters, list); err != nil {
			return err
		}
		o.Note(report.Restored, "")
	}
	return nil
}

// byAge returns the meters with the oldest first, or in their given order if their ages
// were not collected.
func (t *Tables) byAge(b Bridge, list []openflow.Entry, o *report.Outcome) ([]openflow.Entry, error) {
	f, ok, err := open(t.Workdir.BridgeRecorded(b.Name, workdir.RecordedMeterStats))
	if err != nil {
		return nil, err
	}
	if !ok {
		if len(list) > 1 {
			o.Note(report.Approximated, "%s: no meter-stats was collected: the order in which meters were made, and so their ids in datapath actions, is not known", b.Name)
		}
		return list, nil
	}
	defer f.Close()
	ages := openflow.MeterAges(f)
	ordered := slices.Clone(list)
	slices.SortStableFunc(ordered, func(x, y openflow.Entry) int {
		return cmp.Compare(ages[y.ID], ages[x.ID])
	})
	return ordered, nil
}
