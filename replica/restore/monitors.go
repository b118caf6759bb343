package restore

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
	"ovs-offline/replica/restore/tables"
)

// Monitors
//
// Cause: sFlow and IPFIX put a sample() into the actions of every packet of
// their bridge, and sample() of a flow needs its Flow_Sample_Collector_Set.
// ovs-vswitchd leaves all of it out where no collector has a route or sFlow has
// no address to call itself by.
//
// Remedy: the rows stay, their collectors become a port of the replica's own
// loopback (edit_monitors.go). sFlow's output= is 0x40000100 for a packet that
// goes nowhere, the ifindex for one that leaves by one port of the bridge that
// has one, and else 0x80000000 and the number of ports: so the ports get the
// live kernel's ifindex (options:ifindex of a dummy), and sFlow is set up once
// datapath ports have their live numbers. NetFlow is in no trace.
//
// Source: measured, OVS 3.1. The ifindex of a tunnel is that of a device of
// the kernel, which a replica has not; nor has a patch port one.

// restoreMonitors sets sFlow up, and asks the replica whether its monitors are at work.
func restoreMonitors(ctx context.Context, n *Node, o *report.Outcome) error {
	if err := n.giveSFlowBack(ctx); err != nil {
		return err
	}
	list, err := n.monitors(ctx)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.sFlow != "" {
			if err := n.checkSFlow(ctx, m, o); err != nil {
				return err
			}
		}
		if m.ipfix != "" {
			if err := n.checkIPFIX(ctx, m, o); err != nil {
				return err
			}
		}
	}
	if err := n.checkInterfaceIndexes(ctx, list, o); err != nil {
		return err
	}
	return n.checkCollectorSets(ctx, o)
}

// giveSFlowBack sets up the sFlow of bridges that was kept back.
func (n *Node) giveSFlowBack(ctx context.Context) error {
	var changes []ovsdb.Change
	for i, b := range n.Bridges {
		if columns := n.sFlow[b.Name]; columns != nil {
			row := fmt.Sprintf("sflow%d", i)
			changes = append(changes, ovsdb.Insert("sFlow", row, columns),
				ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"sflow": ovsdb.Ref{Name: row}}))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return n.reconfigure(ctx, changes)
}

// checkSFlow traces a packet: even one that goes nowhere is sampled.
func (n *Node) checkSFlow(ctx context.Context, m monitored, o *report.Outcome) error {
	rows, err := n.DB.Select(ctx, "sFlow", "sampling")
	if err != nil {
		return err
	}
	for _, r := range rows {
		if rate, ok := r.Int("sampling"); r.UUID == m.sFlow && ok && rate == 0 {
			return nil // off on the live node as well
		}
	}
	out, err := n.appctl(ctx, "ofproto/trace", m.bridge.Name, "in_port=LOCAL")
	switch {
	case err != nil:
		o.Note(report.Failed, "%s: sFlow: %v", m.bridge.Name, err)
	case !strings.Contains(string(out), "sFlow("):
		o.Note(report.Failed, "%s: sFlow is off: its sample() is missing in traces", m.bridge.Name)
	default:
		o.Note(report.Restored, "")
		return n.weighSFlow(m, o)
	}
	return ctx.Err()
}

// enters matches a datapath flow of packets that come in by a port.
var enters = regexp.MustCompile(`\brecirc_id\(0\).*\bin_port\(([^)]+)\)`)

// weighSFlow says where the live datapath speaks against sFlow's having worked:
// all that comes in by the bridge's ports is sampled, but for what goes to
// ovs-vswitchd itself.
func (n *Node) weighSFlow(m monitored, o *report.Outcome) error {
	devices := map[string]bool{}
	for _, i := range m.bridge.Interfaces() {
		devices[i.Name] = isDevice(i)
	}
	plain := 0
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedDatapathFlows), func(line string) error {
		port := enters.FindStringSubmatch(line)
		if port != nil && devices[port[1]] && !strings.Contains(line, "sFlow(") && !strings.Contains(line, "slow_path(") {
			plain++
		}
		return nil
	})
	if plain > 0 {
		o.Note(report.Approximated, "%s: sFlow is taken to have worked on the live node, though %d recorded datapath flows from its ports are not sampled", m.bridge.Name, plain)
	}
	return err
}

// checkIPFIX asks for the exporter's statistics: where it is off, there are none.
func (n *Node) checkIPFIX(ctx context.Context, m monitored, o *report.Outcome) error {
	rows, err := n.DB.Select(ctx, "IPFIX", "targets")
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.UUID == m.ipfix && len(r.Strings("targets")) == 0 {
			return nil // off on the live node as well
		}
	}
	version, err := n.speaks(ctx, m.bridge)
	if err != nil {
		return err
	}
	if _, err := n.ofctl(ctx, nil, version, m.bridge, "dump-ipfix-bridge"); err != nil {
		o.Note(report.Failed, "%s: IPFIX is off: its sample() is missing in traces: %s", m.bridge.Name, tables.Reason(err))
		return ctx.Err()
	}
	o.Note(report.Restored, "")
	return nil
}

// checkCollectorSets looks for each set that has collectors among those of its bridge.
func (n *Node) checkCollectorSets(ctx context.Context, o *report.Outcome) error {
	rows, err := n.DB.Select(ctx, collectorSets, "id", "bridge", "ipfix")
	if err != nil {
		return err
	}
	for _, r := range rows {
		id, _ := r.Int("id")
		at := slices.IndexFunc(n.Bridges, func(b *Bridge) bool { return b.UUID == single(r.UUIDs("bridge")) })
		if at < 0 || single(r.UUIDs("ipfix")) == "" {
			continue
		}
		b := n.Bridges[at]
		version, err := n.speaks(ctx, b)
		if err != nil {
			return err
		}
		out, err := n.ofctl(ctx, nil, version, b, "dump-ipfix-flow")
		if err != nil || !slices.Contains(strings.Fields(string(out)), strconv.Itoa(id)+":") {
			o.Note(report.Failed, "%s: the collectors of sample(collector_set_id=%d) are off", b.Name, id)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		o.Note(report.Restored, "")
	}
	return nil
}

// checkInterfaceIndexes compares the numbers that ovs-vswitchd has with those it was given.
func (n *Node) checkInterfaceIndexes(ctx context.Context, list []monitored, o *report.Outcome) error {
	live, err := n.listed(workdir.RecordedListInterface, "ifindex")
	if live == nil || err != nil {
		return err
	}
	rows, err := n.DB.Select(ctx, "Interface", "name", "ifindex")
	if err != nil {
		return err
	}
	have := map[string]int{}
	for _, r := range rows {
		have[r.String("name")], _ = r.Int("ifindex")
	}
	for _, m := range list {
		if m.sFlow == "" {
			continue
		}
		for _, i := range m.bridge.Interfaces() {
			want, _ := interfaceIndex(live[i.Name]) // what can't be read was noted
			if want > 0 && isDevice(i) && have[i.Name] != want {
				o.Note(report.Failed, "%s: sFlow's output= of port %q would be %d, and was %d", m.bridge.Name, i.Name, have[i.Name], want)
			}
		}
	}
	return nil
}
