package restore

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// Monitors
//
// Cause: sFlow and IPFIX add a sample() to the actions of every packet of their bridge,
// and sample() of a flow needs its Flow_Sample_Collector_Set. ovs-vswitchd adds no
// sample() if no collector has a route, or if sFlow has no agent address.
//
// Remedy: the rows stay, with a port of the replica's own loopback as collector. Ports
// get the live kernel's ifindex (options:ifindex of a dummy), and sFlow is set up after
// datapath ports have their live numbers: for its output= see docs/fidelity.md. NetFlow
// adds fields to the match of megaflows, also if it has no collector. Without a loopback of
// the replica's own, the others are removed; if the daemons share the host's network, so is
// NetFlow.
//
// Source: measured with OVS 3.1. The ifindex of a tunnel belongs to a kernel
// device, which a replica does not have; patch ports have none.

const (
	// discardAddress is a collector on the replica's own loopback (RFC 863).
	discardAddress = "127.0.0.1:9"
	// sFlowAgent is the address in sFlow datagrams. No trace shows it, but without
	// one sFlow is off, and the live one's device does not exist here.
	sFlowAgent = "127.0.0.1"
	// collectorSets is the table of the IPFIX exporters that flows refer to.
	collectorSets = "Flow_Sample_Collector_Set"
)

// The tables of monitors.
const (
	sFlow   = "sFlow"
	ipfix   = "IPFIX"
	netFlow = "NetFlow"
)

// editMonitors redirects all monitors, and withholds sFlow.
func editMonitors(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	if !sw.loopback {
		return removeMonitors(ctx, sw, outcome)
	}
	changes, err := redirectMonitors(ctx, sw, outcome, sFlow, ipfix, netFlow)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(sw.Bridges, func(bridge *Bridge) bool { return bridge.sFlow != "" }) {
		indexes, err := setInterfaceIndexes(sw, rec, outcome)
		if err != nil {
			return err
		}
		withheld, err := withholdSFlow(ctx, sw)
		if err != nil {
			return err
		}
		changes = slices.Concat(changes, indexes, withheld)
	}
	return sw.db.Transact(ctx, changes...)
}

// redirectMonitors returns the changes that give the monitors of tables a collector of the
// replica's own.
func redirectMonitors(ctx context.Context, sw *Switch, outcome *report.Outcome, tables ...string) ([]ovsdb.Change, error) {
	var changes []ovsdb.Change
	for _, table := range tables {
		rows, err := sw.db.Select(ctx, table, "targets")
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if len(row.Strings("targets")) == 0 {
				continue // off on the live node as well
			}
			if name := namedCollector(row.Strings("targets")); name != "" {
				outcome.Note(report.Approximated, "%s: its collector %q is a name, which is assumed to have been resolved on the live node", table, name)
			}
			outcome.Note(report.Restored, "")
			changes = append(changes, ovsdb.Update(table, row.UUID, ovsdb.Columns{"targets": []string{discardAddress}}))
		}
	}
	return changes, nil
}

// withholdSFlow returns the changes that remove the sFlow of bridges, which
// restoreMonitors adds again.
func withholdSFlow(ctx context.Context, sw *Switch) ([]ovsdb.Change, error) {
	rows, err := sw.db.Select(ctx, "sFlow", "header", "polling", "sampling", "external_ids")
	if err != nil {
		return nil, err
	}
	var changes []ovsdb.Change
	for _, bridge := range sw.Bridges {
		for _, row := range rows {
			if row.UUID != bridge.sFlow {
				continue
			}
			bridge.withheldSFlow = ovsdb.Columns{"targets": []string{discardAddress}, "agent": sFlowAgent, "external_ids": row.Map("external_ids")}
			for _, column := range []string{"header", "polling", "sampling"} {
				if value, ok := row.Int(column); ok {
					bridge.withheldSFlow[column] = value
				}
			}
			changes = append(changes, ovsdb.Update("Bridge", bridge.UUID, ovsdb.Columns{"sflow": nil}))
		}
	}
	return changes, nil
}

// namedCollector returns the first target if none of the targets has an IP
// address: a name that can't be resolved leaves its monitor off.
func namedCollector(targets []string) string {
	for _, target := range targets {
		host, _, err := net.SplitHostPort(target)
		if err != nil { // the target has no port
			host = strings.Trim(target, "[]")
		}
		if _, err := netip.ParseAddr(host); err == nil {
			return ""
		}
	}
	return targets[0]
}

// removeMonitors removes the monitors that daemons without a loopback interface of their
// own can't have. NetFlow does without a collector, and stays where no collector can be
// reached. A sample() of a flow needs its Flow_Sample_Collector_Set, but no collector.
func removeMonitors(ctx context.Context, sw *Switch, outcome *report.Outcome) error {
	var changes []ovsdb.Change
	removed := "is removed, since the daemons are not isolated here"
	if sw.isolated {
		removed = "is removed, since a seccomp filter isolates the daemons here, under which they can open no collector"
		var err error
		if changes, err = redirectMonitors(ctx, sw, outcome, netFlow); err != nil {
			return err
		}
	}
	off, err := withoutTargets(ctx, sw)
	if err != nil {
		return err
	}
	for _, bridge := range sw.Bridges {
		columns := ovsdb.Columns{}
		for _, monitor := range []struct {
			column, id, effect string
			keep               bool
		}{
			{"sflow", bridge.sFlow, "sFlow " + removed + ": its sample() is missing in traces", off[bridge.sFlow]},
			{"ipfix", bridge.ipfix, "IPFIX " + removed + ": its sample() is missing in traces", off[bridge.ipfix]},
			{"netflow", bridge.netFlow, "NetFlow " + removed + ": megaflows of traces match fewer fields", sw.isolated || off[bridge.netFlow]},
		} {
			if monitor.id != "" && !monitor.keep {
				outcome.Note(report.Approximated, "%s: %s", bridge.Name, monitor.effect)
				columns[monitor.column] = nil
			}
		}
		if len(columns) > 0 {
			changes = append(changes, ovsdb.Update("Bridge", bridge.UUID, columns))
		}
	}
	sets, err := sw.db.Select(ctx, collectorSets, "ipfix")
	if err != nil {
		return err
	}
	for _, row := range sets {
		outcome.Note(report.Restored, "")
		changes = append(changes, ovsdb.Update(collectorSets, row.UUID, ovsdb.Columns{"ipfix": nil}))
	}
	return sw.db.Transact(ctx, changes...)
}

// withoutTargets returns the UUIDs of the monitors that have no collector, and so are off
// on the live node as well.
func withoutTargets(ctx context.Context, sw *Switch) (map[string]bool, error) {
	off := map[string]bool{}
	for _, table := range []string{sFlow, ipfix, netFlow} {
		rows, err := sw.db.Select(ctx, table, "targets")
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			off[row.UUID] = len(row.Strings("targets")) == 0
		}
	}
	return off, nil
}

// setInterfaceIndexes returns the changes that give the ports of bridges with
// sFlow their ifindex in the live kernel.
func setInterfaceIndexes(sw *Switch, rec *Recorded, outcome *report.Outcome) ([]ovsdb.Change, error) {
	live, err := rec.listed(workdir.RecordedListInterface, "ifindex")
	if err != nil {
		return nil, err
	}
	var changes []ovsdb.Change
	for _, bridge := range sw.Bridges {
		if bridge.sFlow == "" {
			continue
		}
		if live == nil {
			outcome.Note(report.Unknown, "%s: no ovs-vsctl list interface was collected: if a packet is sent to one port, sFlow's output= differs from the live one", bridge.Name)
			continue
		}
		for _, iface := range bridge.Interfaces() {
			index, err := interfaceIndex(live[iface.Name])
			switch {
			case err != nil:
				outcome.Note(report.Unknown, "%s: the ifindex of %q was recorded as %.40q: if a packet is sent only to this port, sFlow's output= differs from the live one", bridge.Name, iface.Name, live[iface.Name])
			case index > 0 && iface.isDevice():
				iface.Options["ifindex"] = strconv.Itoa(index)
				changes = append(changes, ovsdb.Update("Interface", iface.UUID, ovsdb.Columns{"options": iface.Options}))
			case index > 0:
				outcome.Note(report.Approximated, "%s: sFlow's output= for tunnel %q lacks the ifindex: it is %d (one port)", bridge.Name, iface.Name, index)
			}
		}
	}
	return changes, nil
}

// interfaceIndex reads an ifindex of ovs-vsctl list; 0 means none.
func interfaceIndex(listed string) (int, error) {
	if listed == "" || listed == "[]" { // not listed, or the interface had failed
		return 0, nil
	}
	index, err := strconv.ParseInt(listed, 10, 32)
	return int(index), err
}

// restoreMonitors adds sFlow, and checks that each monitor of the replica works.
func restoreMonitors(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	if err := addSFlow(ctx, sw, outcome); err != nil {
		return err
	}
	for _, bridge := range sw.Bridges {
		if bridge.withheldSFlow != nil {
			if err := checkSFlow(ctx, sw, rec, bridge, outcome); err != nil {
				return err
			}
		}
		if sw.loopback && bridge.ipfix != "" {
			if err := checkIPFIX(ctx, sw, bridge, outcome); err != nil {
				return err
			}
		}
	}
	return checkCollectorSets(ctx, sw, outcome)
}

func addSFlow(ctx context.Context, sw *Switch, outcome *report.Outcome) error {
	var changes []ovsdb.Change
	for i, bridge := range sw.Bridges {
		if bridge.withheldSFlow != nil {
			row := fmt.Sprintf("sflow%d", i)
			changes = append(changes, ovsdb.Insert("sFlow", row, bridge.withheldSFlow),
				ovsdb.Update("Bridge", bridge.UUID, ovsdb.Columns{"sflow": ovsdb.Ref{Name: row}}))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if err := sw.reconfigure(ctx, changes); err != nil {
		return err
	}
	return checkInterfaceIndexes(ctx, sw, outcome)
}

// checkSFlow traces a packet: even a dropped packet is sampled.
func checkSFlow(ctx context.Context, sw *Switch, rec *Recorded, bridge *Bridge, outcome *report.Outcome) error {
	if bridge.withheldSFlow["sampling"] == 0 {
		return nil // off on the live node as well
	}
	out, err := sw.appctl(ctx, "ofproto/trace", bridge.Name, "in_port=LOCAL")
	switch {
	case err != nil:
		outcome.Note(report.Failed, "%s: sFlow: %v", bridge.Name, err)
	case !strings.Contains(out, "sFlow("):
		outcome.Note(report.Failed, "%s: sFlow is off: its sample() is missing in traces", bridge.Name)
	default:
		outcome.Note(report.Restored, "")
		return compareSampled(rec, bridge, outcome)
	}
	return ctx.Err()
}

// fromPort matches a datapath flow for packets that a port receives.
var fromPort = lazyregexp.New(`\brecirc_id\(0\).*\bin_port\(([^)]+)\)`)

// compareSampled reports recorded datapath flows that contradict sFlow: all
// packets that the bridge's ports receive are sampled, except those that
// ovs-vswitchd itself handles.
func compareSampled(rec *Recorded, bridge *Bridge, outcome *report.Outcome) error {
	devices := map[string]bool{}
	for _, iface := range bridge.Interfaces() {
		devices[iface.Name] = iface.isDevice()
	}
	file, ok, err := workdir.OpenCollected(rec.dir.Recorded(workdir.RecordedDatapathFlows))
	if !ok {
		return err
	}
	defer file.Close()
	unsampled := 0
	err = eachLine(file, func(line string) error {
		port := fromPort.FindStringSubmatch(line)
		if port != nil && devices[port[1]] && !strings.Contains(line, "sFlow(") && !strings.Contains(line, "slow_path(") {
			unsampled++
		}
		return nil
	})
	if unsampled > 0 {
		outcome.Note(report.Approximated, "%s: sFlow is assumed to have worked on the live node, but %d recorded datapath flows from its ports are not sampled", bridge.Name, unsampled)
	}
	return err
}

// checkIPFIX asks for the exporter's statistics, which only a working exporter has.
func checkIPFIX(ctx context.Context, sw *Switch, bridge *Bridge, outcome *report.Outcome) error {
	rows, err := sw.db.Select(ctx, "IPFIX", "targets")
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.UUID == bridge.ipfix && len(row.Strings("targets")) == 0 {
			return nil // off on the live node as well
		}
	}
	version, err := sw.newest(ctx, bridge)
	if err != nil {
		return err
	}
	if _, err := sw.ofctl(ctx, bridge, version, "dump-ipfix-bridge"); err != nil {
		outcome.Note(report.Failed, "%s: IPFIX is off: its sample() is missing in traces: %v", bridge.Name, err)
		return ctx.Err()
	}
	outcome.Note(report.Restored, "")
	return nil
}

// checkCollectorSets checks that each set with a collector is one of its bridge's.
func checkCollectorSets(ctx context.Context, sw *Switch, outcome *report.Outcome) error {
	rows, err := sw.db.Select(ctx, collectorSets, "id", "bridge", "ipfix")
	if err != nil {
		return err
	}
	for _, row := range rows {
		id, _ := row.Int("id")
		at := slices.IndexFunc(sw.Bridges, func(bridge *Bridge) bool { return bridge.UUID == firstOf(row.UUIDs("bridge")) })
		if at < 0 || firstOf(row.UUIDs("ipfix")) == "" {
			continue
		}
		bridge := sw.Bridges[at]
		version, err := sw.newest(ctx, bridge)
		if err != nil {
			return err
		}
		out, err := sw.ofctl(ctx, bridge, version, "dump-ipfix-flow")
		if err == nil && slices.Contains(strings.Fields(out), strconv.Itoa(id)+":") {
			outcome.Note(report.Restored, "")
			continue
		}
		outcome.Note(report.Failed, "%s: the collectors of sample(collector_set_id=%d) are off", bridge.Name, id)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// checkInterfaceIndexes compares the ifindexes that ovs-vswitchd uses with those
// that it was given.
func checkInterfaceIndexes(ctx context.Context, sw *Switch, outcome *report.Outcome) error {
	rows, err := sw.db.Select(ctx, "Interface", "ifindex")
	if err != nil {
		return err
	}
	have := map[string]int{}
	for _, row := range rows {
		have[row.UUID], _ = row.Int("ifindex")
	}
	for bridge, iface := range sw.interfaces() {
		want, err := strconv.Atoi(iface.Options["ifindex"])
		if err == nil && bridge.withheldSFlow != nil && iface.isDevice() && have[iface.UUID] != want {
			outcome.Note(report.Failed, "%s: sFlow's output= to port %q is %d, on the live node %d", bridge.Name, iface.Name, have[iface.UUID], want)
		}
	}
	return nil
}
