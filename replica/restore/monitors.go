package restore

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
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
// Source: measured with OVS 3.1. The ifindex of a tunnel is that of a kernel
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
func editMonitors(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	if !s.loopback {
		return removeMonitors(ctx, s, o)
	}
	changes, err := redirectMonitors(ctx, s, o, sFlow, ipfix, netFlow)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(s.Bridges, func(b *Bridge) bool { return b.sFlow != "" }) {
		indexes, err := setInterfaceIndexes(s, rec, o)
		if err != nil {
			return err
		}
		withheld, err := withholdSFlow(ctx, s)
		if err != nil {
			return err
		}
		changes = slices.Concat(changes, indexes, withheld)
	}
	return s.db.Transact(ctx, changes...)
}

// redirectMonitors returns the changes that give the monitors of tables a collector of the
// replica's own.
func redirectMonitors(ctx context.Context, s *Switch, o *report.Outcome, tables ...string) ([]ovsdb.Change, error) {
	var changes []ovsdb.Change
	for _, table := range tables {
		rows, err := s.db.Select(ctx, table, "targets")
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if len(r.Strings("targets")) == 0 {
				continue // off on the live node as well
			}
			if name := namedCollector(r.Strings("targets")); name != "" {
				o.Note(report.Approximated, "%s: its collector %q is a name, which is assumed to have been resolved on the live node", table, name)
			}
			o.Note(report.Restored, "")
			changes = append(changes, ovsdb.Update(table, r.UUID, ovsdb.Columns{"targets": []string{discardAddress}}))
		}
	}
	return changes, nil
}

// withholdSFlow returns the changes that remove the sFlow of bridges, which
// restoreMonitors adds again.
func withholdSFlow(ctx context.Context, s *Switch) ([]ovsdb.Change, error) {
	rows, err := s.db.Select(ctx, "sFlow", "header", "polling", "sampling", "external_ids")
	if err != nil {
		return nil, err
	}
	var changes []ovsdb.Change
	for _, b := range s.Bridges {
		for _, r := range rows {
			if r.UUID != b.sFlow {
				continue
			}
			b.withheldSFlow = ovsdb.Columns{"targets": []string{discardAddress}, "agent": sFlowAgent, "external_ids": r.Map("external_ids")}
			for _, c := range []string{"header", "polling", "sampling"} {
				if value, ok := r.Int(c); ok {
					b.withheldSFlow[c] = value
				}
			}
			changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"sflow": nil}))
		}
	}
	return changes, nil
}

// namedCollector returns the first target if none of the targets has an IP
// address: a name that can't be resolved leaves its monitor off.
func namedCollector(targets []string) string {
	for _, t := range targets {
		host, _, err := net.SplitHostPort(t)
		if err != nil { // the target has no port
			host = strings.Trim(t, "[]")
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
func removeMonitors(ctx context.Context, s *Switch, o *report.Outcome) error {
	var changes []ovsdb.Change
	removed := "is removed, since the daemons are not isolated here"
	if s.isolated {
		removed = "is removed, since a seccomp filter isolates the daemons here, under which they can open no collector"
		var err error
		if changes, err = redirectMonitors(ctx, s, o, netFlow); err != nil {
			return err
		}
	}
	off, err := withoutTargets(ctx, s)
	if err != nil {
		return err
	}
	for _, b := range s.Bridges {
		columns := ovsdb.Columns{}
		for _, m := range []struct {
			column, id, effect string
			keep               bool
		}{
			{"sflow", b.sFlow, "sFlow " + removed + ": its sample() is missing in traces", off[b.sFlow]},
			{"ipfix", b.ipfix, "IPFIX " + removed + ": its sample() is missing in traces", off[b.ipfix]},
			{"netflow", b.netFlow, "NetFlow " + removed + ": megaflows of traces match fewer fields", s.isolated || off[b.netFlow]},
		} {
			if m.id != "" && !m.keep {
				o.Note(report.Approximated, "%s: %s", b.Name, m.effect)
				columns[m.column] = nil
			}
		}
		if len(columns) > 0 {
			changes = append(changes, ovsdb.Update("Bridge", b.UUID, columns))
		}
	}
	sets, err := s.db.Select(ctx, collectorSets, "ipfix")
	if err != nil {
		return err
	}
	for _, r := range sets {
		o.Note(report.Restored, "")
		changes = append(changes, ovsdb.Update(collectorSets, r.UUID, ovsdb.Columns{"ipfix": nil}))
	}
	return s.db.Transact(ctx, changes...)
}

// withoutTargets returns the UUIDs of the monitors that have no collector, and so are off
// on the live node as well.
func withoutTargets(ctx context.Context, s *Switch) (map[string]bool, error) {
	off := map[string]bool{}
	for _, table := range []string{sFlow, ipfix, netFlow} {
		rows, err := s.db.Select(ctx, table, "targets")
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			off[r.UUID] = len(r.Strings("targets")) == 0
		}
	}
	return off, nil
}

// setInterfaceIndexes returns the changes that give the ports of bridges with
// sFlow their ifindex in the live kernel.
func setInterfaceIndexes(s *Switch, rec *Recorded, o *report.Outcome) ([]ovsdb.Change, error) {
	live, err := rec.listed(workdir.RecordedListInterface, "ifindex")
	if err != nil {
		return nil, err
	}
	var changes []ovsdb.Change
	for _, b := range s.Bridges {
		if b.sFlow == "" {
			continue
		}
		if live == nil {
			o.Note(report.Unknown, "%s: no ovs-vsctl list interface was collected: if a packet is sent to one port, sFlow's output= differs from the live one", b.Name)
			continue
		}
		for _, i := range b.Interfaces() {
			index, err := interfaceIndex(live[i.Name])
			switch {
			case err != nil:
				o.Note(report.Unknown, "%s: the ifindex of %q was recorded as %.40q: if a packet is sent only to this port, sFlow's output= differs from the live one", b.Name, i.Name, live[i.Name])
			case index > 0 && i.isDevice():
				i.Options["ifindex"] = strconv.Itoa(index)
				changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"options": i.Options}))
			case index > 0:
				o.Note(report.Approximated, "%s: sFlow's output= for tunnel %q lacks the ifindex: it is %d (one port)", b.Name, i.Name, index)
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
func restoreMonitors(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	if err := addSFlow(ctx, s, o); err != nil {
		return err
	}
	for _, b := range s.Bridges {
		if b.withheldSFlow != nil {
			if err := checkSFlow(ctx, s, rec, b, o); err != nil {
				return err
			}
		}
		if s.loopback && b.ipfix != "" {
			if err := checkIPFIX(ctx, s, b, o); err != nil {
				return err
			}
		}
	}
	return checkCollectorSets(ctx, s, o)
}

func addSFlow(ctx context.Context, s *Switch, o *report.Outcome) error {
	var changes []ovsdb.Change
	for i, b := range s.Bridges {
		if b.withheldSFlow != nil {
			row := fmt.Sprintf("sflow%d", i)
			changes = append(changes, ovsdb.Insert("sFlow", row, b.withheldSFlow),
				ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"sflow": ovsdb.Ref{Name: row}}))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if err := s.reconfigure(ctx, changes); err != nil {
		return err
	}
	return checkInterfaceIndexes(ctx, s, o)
}

// checkSFlow traces a packet: even a dropped packet is sampled.
func checkSFlow(ctx context.Context, s *Switch, rec *Recorded, b *Bridge, o *report.Outcome) error {
	if b.withheldSFlow["sampling"] == 0 {
		return nil // off on the live node as well
	}
	out, err := s.appctl(ctx, "ofproto/trace", b.Name, "in_port=LOCAL")
	switch {
	case err != nil:
		o.Note(report.Failed, "%s: sFlow: %v", b.Name, err)
	case !strings.Contains(out, "sFlow("):
		o.Note(report.Failed, "%s: sFlow is off: its sample() is missing in traces", b.Name)
	default:
		o.Note(report.Restored, "")
		return compareSampled(rec, b, o)
	}
	return ctx.Err()
}

// fromPort matches a datapath flow for packets that a port receives.
var fromPort = regexp.MustCompile(`\brecirc_id\(0\).*\bin_port\(([^)]+)\)`)

// compareSampled reports recorded datapath flows that contradict sFlow: all
// packets that the bridge's ports receive are sampled, except those that
// ovs-vswitchd itself handles.
func compareSampled(rec *Recorded, b *Bridge, o *report.Outcome) error {
	devices := map[string]bool{}
	for _, i := range b.Interfaces() {
		devices[i.Name] = i.isDevice()
	}
	f, ok, err := workdir.OpenCollected(rec.dir.Recorded(workdir.RecordedDatapathFlows))
	if !ok {
		return err
	}
	defer f.Close()
	unsampled := 0
	err = eachLine(f, func(line string) error {
		port := fromPort.FindStringSubmatch(line)
		if port != nil && devices[port[1]] && !strings.Contains(line, "sFlow(") && !strings.Contains(line, "slow_path(") {
			unsampled++
		}
		return nil
	})
	if unsampled > 0 {
		o.Note(report.Approximated, "%s: sFlow is assumed to have worked on the live node, but %d recorded datapath flows from its ports are not sampled", b.Name, unsampled)
	}
	return err
}

// checkIPFIX asks for the exporter's statistics, which only a working exporter has.
func checkIPFIX(ctx context.Context, s *Switch, b *Bridge, o *report.Outcome) error {
	rows, err := s.db.Select(ctx, "IPFIX", "targets")
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.UUID == b.ipfix && len(r.Strings("targets")) == 0 {
			return nil // off on the live node as well
		}
	}
	version, err := s.newest(ctx, b)
	if err != nil {
		return err
	}
	if _, err := s.ofctl(ctx, b, version, "dump-ipfix-bridge"); err != nil {
		o.Note(report.Failed, "%s: IPFIX is off: its sample() is missing in traces: %v", b.Name, err)
		return ctx.Err()
	}
	o.Note(report.Restored, "")
	return nil
}

// checkCollectorSets checks that each set with a collector is one of its bridge's.
func checkCollectorSets(ctx context.Context, s *Switch, o *report.Outcome) error {
	rows, err := s.db.Select(ctx, collectorSets, "id", "bridge", "ipfix")
	if err != nil {
		return err
	}
	for _, r := range rows {
		id, _ := r.Int("id")
		at := slices.IndexFunc(s.Bridges, func(b *Bridge) bool { return b.UUID == first(r.UUIDs("bridge")) })
		if at < 0 || first(r.UUIDs("ipfix")) == "" {
			continue
		}
		b := s.Bridges[at]
		version, err := s.newest(ctx, b)
		if err != nil {
			return err
		}
		out, err := s.ofctl(ctx, b, version, "dump-ipfix-flow")
		if err == nil && slices.Contains(strings.Fields(out), strconv.Itoa(id)+":") {
			o.Note(report.Restored, "")
			continue
		}
		o.Note(report.Failed, "%s: the collectors of sample(collector_set_id=%d) are off", b.Name, id)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// checkInterfaceIndexes compares the ifindexes that ovs-vswitchd uses with those
// that it was given.
func checkInterfaceIndexes(ctx context.Context, s *Switch, o *report.Outcome) error {
	rows, err := s.db.Select(ctx, "Interface", "ifindex")
	if err != nil {
		return err
	}
	have := map[string]int{}
	for _, r := range rows {
		have[r.UUID], _ = r.Int("ifindex")
	}
	for b, i := range s.interfaces() {
		want, err := strconv.Atoi(i.Options["ifindex"])
		if err == nil && b.withheldSFlow != nil && i.isDevice() && have[i.UUID] != want {
			o.Note(report.Failed, "%s: sFlow's output= to port %q is %d, on the live node %d", b.Name, i.Name, have[i.UUID], want)
		}
	}
	return nil
}
