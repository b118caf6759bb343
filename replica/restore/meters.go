package restore

import (
	"bytes"
	"context"
	"fmt"
	"sort"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// restoreMeters adds meters in the order in which they were made on the live
// node, since their ids in the datapath follow that order.
func restoreMeters(ctx context.Context, n *Node, o *report.Outcome) error {
	for _, b := range n.Bridges {
		list, err := n.entries(b, workdir.Meters, openflow.Meters)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		version, err := n.speaks(ctx, b)
		if err != nil {
			return err
		}
		ordered, err := n.byAge(b, list, o)
		if err != nil {
			return err
		}
		if err := n.addEntries(ctx, b, workdir.Meters, ordered, func(text string) error {
			_, err := n.ofctl(ctx, nil, version, b, "add-meter", text)
			return err
		}); err != nil {
			return err
		}
		have, err := n.dumpEntries(ctx, b, readBackVersion(b, n.dumpVersion(b, workdir.Meters), version), numbered, "dump-meters", openflow.Meters)
		if err != nil {
			return err
		}
		n.compareEntries(b, workdir.Meters, list, have)
		o.Note(report.Restored, "")
	}
	return nil
}

// byAge orders meters oldest first. Without ages the order of the dump is kept.
func (n *Node) byAge(b *Bridge, list []openflow.Entry, o *report.Outcome) ([]openflow.Entry, error) {
	f, ok, err := n.recorded(n.Workdir.BridgeRecorded(b.Name, workdir.RecordedMeterStats))
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
	ordered := append([]openflow.Entry(nil), list...)
	sort.SliceStable(ordered, func(i, j int) bool { return ages[ordered[i].ID] > ages[ordered[j].ID] })
	return ordered, nil
}

func (n *Node) dumpEntries(ctx context.Context, b *Bridge, version, spelling, command string, read reader) ([]openflow.Entry, error) {
	out, err := n.ofctlOptions(ctx, nil, []string{spelling, "-O", version}, b, command)
	if err != nil {
		return nil, err
	}
	list, _ := read(bytes.NewReader(out))
	return list, nil
}

// placeholdMeters adds meters that flows name and no dump tells of: ones that
// never drop.
func (n *Node) placeholdMeters(ctx context.Context, b *Bridge, version string, missing []uint32) error {
	for _, id := range missing {
		text := fmt.Sprintf("meter=%d kbps bands=type=drop rate=4294967295", id)
		_, err := n.ofctl(ctx, nil, version, b, "add-meter", text)
		if err := n.placed(ctx, b, workdir.Meters, text, fmt.Sprintf("meter %d is named, and no dump of it was collected", id), "a placeholder that never drops stands for it", err); err != nil {
			return err
		}
	}
	return nil
}
