package restore

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// monitors restores the samples of sFlow, IPFIX and NetFlow.
//
// Cause: sFlow and IPFIX add a sample() to the actions of every packet of their
// bridge, and sample() of a flow needs its Flow_Sample_Collector_Set.
// ovs-vswitchd adds none where no collector has a route, or sFlow has no address
// of its own.
//
// Remedy: the rows stay, with a port of the replica's own loopback as collector.
// sFlow's output= is 0x40000100 for a packet that is dropped, the ifindex of the
// port for one that is sent to one port that has one, and otherwise 0x80000000
// plus the number of ports: so ports get the live kernel's ifindex
// (options:ifindex of a dummy), and sFlow is set up after datapath ports have
// their live numbers, since it knows ports by the numbers at that time. NetFlow
// is in no trace. Where the daemons share the host's network, all monitors are
// removed.
//
// Source: measured with OVS 3.1. The ifindex of a tunnel is that of a kernel
// device, which a replica does not have; patch ports have none.
type monitors struct {
	sFlow map[*Bridge]ovsdb.Columns // the sFlow rows to add, by bridge
}

const (
	// discardAddress is a collector on the replica's own loopback (RFC 863).
	discardAddress = "127.0.0.1:9"
	// sFlowAgent is the address in sFlow datagrams. No trace shows it, but without
	// one sFlow is off, and the live one's device does not exist here.
	sFlowAgent = "127.0.0.1"
	// collectorSets is the table of the IPFIX exporters that flows refer to.
	collectorSets = "Flow_Sample_Collector_Set"
)

// monitoredBridge is a bridge with the UUIDs of its monitors, "" for none.
type monitoredBridge struct {
	*Bridge
	sFlow, ipfix, netFlow string
}

// monitoredBridges returns the bridges that have any monitor.
func monitoredBridges(ctx context.Context, s *Switch) ([]monitoredBridge, error) {
	rows, err := s.db.Select(ctx, "Bridge", "sflow", "ipfix", "netflow")
	if err != nil {
		return nil, err
	}
	var list []monitoredBridge
	for _, b := range s.Bridges {
		for _, r := range rows {
			m := monitoredBridge{b, first(r.UUIDs("sflow")), first(r.UUIDs("ipfix")), first(r.UUIDs("netflow"))}
			if r.UUID == b.UUID && m.sFlow+m.ipfix+m.netFlow != "" {
				list = append(list, m)
			}
		}
	}
	return list, nil
}

func (m *monitors) edit(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	bridges, err := monitoredBridges(ctx, s)
	if err != nil {
		return err
	}
	if !s.isolated {
		return removeMonitors(ctx, s, bridges, o)
	}
	var changes []ovsdb.Change
	for _, table := range []string{"sFlow", "IPFIX", "NetFlow"} {
		rows, err := s.db.Select(ctx, table, "targets")
		if err != nil {
			return err
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
	bridges = slices.DeleteFunc(bridges, func(b monitoredBridge) bool { return b.sFlow == "" })
	if len(bridges) > 0 {
		indexes, err := setInterfaceIndexes(ctx, s, rec, bridges, o)
		if err != nil {
			return err
		}
		withheld, err := m.withholdSFlow(ctx, s, bridges)
		if err != nil {
			return err
		}
		changes = slices.Concat(changes, indexes, withheld)
	}
	return s.db.Transact(ctx, changes...)
}

// withholdSFlow returns the changes that remove the sFlow of bridges, which
// restore adds again.
func (m *monitors) withholdSFlow(ctx context.Context, s *Switch, bridges []monitoredBridge) ([]ovsdb.Change, error) {
	rows, err := s.db.Select(ctx, "sFlow", "header", "polling", "sampling", "external_ids")
	if err != nil {
		return nil, err
	}
	m.sFlow = map[*Bridge]ovsdb.Columns{}
	var changes []ovsdb.Change
	for _, b := range bridges {
		for _, r := range rows {
			if r.UUID != b.sFlow {
				continue
			}
			columns := ovsdb.Columns{"targets": []string{discardAddress}, "agent": sFlowAgent, "external_ids": r.Map("external_ids")}
			for _, c := range []string{"header", "polling", "sampling"} {
				if value, ok := r.Int(c); ok {
					columns[c] = value
				}
			}
			m.sFlow[b.Bridge] = columns
			changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"sflow": nil}))
		}
	}
	return changes, nil
}

// namedCollector returns the first target if none of the targets has an IP
// address: a name that can't be resolved leaves its monitor off.
func namedCollector(targets []string) string {
	for _, t := range targets {
		host := strings.TrimPrefix(t, "[")
		if end := strings.LastIndexAny(host, "]"); end >= 0 {
			host = host[:end]
		} else if strings.Count(host, ":") == 1 {
			host, _, _ = strings.Cut(host, ":")
		}
		if _, err := netip.ParseAddr(host); err == nil {
			return ""
		}
	}
	return targets[0]
}

// removeMonitors removes all collectors. A sample() of a flow needs its
// Flow_Sample_Collector_Set, but no collector.
func removeMonitors(ctx context.Context, s *Switch, bridges []monitoredBridge, o *report.Outcome) error {
	const removed = "is removed, since the daemons are not isolated here"
	var changes []ovsdb.Change
	for _, b := range bridges {
		columns := ovsdb.Columns{}
		for _, m := range []struct{ column, id, effect string }{
			{"sflow", b.sFlow, "sFlow " + removed + ": its sample() is missing in traces"},
			{"ipfix", b.ipfix, "IPFIX " + removed + ": its sample() is missing in traces"},
			{"netflow", b.netFlow, "NetFlow " + removed + ": traces do not show it"},
		} {
			if m.id != "" {
				o.Note(report.Approximated, "%s: %s", b.Name, m.effect)
				columns[m.column] = nil
			}
		}
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, columns))
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

// setInterfaceIndexes returns the changes that give the ports of bridges with
// sFlow their ifindex in the live kernel.
func setInterfaceIndexes(ctx context.Context, s *Switch, rec *Recorded, bridges []monitoredBridge, o *report.Outcome) ([]ovsdb.Change, error) {
	live, err := rec.listed(workdir.RecordedListInterface, "ifindex")
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Select(ctx, "Interface", "options") // as the edits before this one left them
	if err != nil {
		return nil, err
	}
	options := map[string]map[string]string{}
	for _, r := range rows {
		options[r.UUID] = r.Map("options")
	}
	var changes []ovsdb.Change
	for _, b := range bridges {
		if live == nil {
			o.Note(report.Unknown, "%s: no ovs-vsctl list interface was collected: where a packet is sent to one port, sFlow's output= is not the live one", b.Name)
			continue
		}
		for _, i := range b.Interfaces() {
			index, err := interfaceIndex(live[i.Name])
			switch {
			case err != nil:
				o.Note(report.Unknown, "%s: the ifindex of %q was recorded as %.40q: where a packet is sent to this port only, sFlow's output= is not the live one", b.Name, i.Name, live[i.Name])
			case index > 0 && i.isDevice():
				with := maps.Clone(options[i.UUID])
				with["ifindex"] = strconv.Itoa(index)
				changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"options": with}))
			case index > 0:
				o.Note(report.Approximated, "%s: sFlow's output= to tunnel %q is one port without its ifindex, %d", b.Name, i.Name, index)
			}
		}
	}
	return changes, nil
}

// interfaceIndex reads an ifindex of ovs-vsctl list; 0 is none.
func interfaceIndex(listed string) (int, error) {
	if listed == "" || listed == "[]" { // not listed, or the interface had failed
		return 0, nil
	}
	index, err := strconv.ParseInt(listed, 10, 32)
	return int(index), err
}

// restore adds sFlow, and checks that each monitor of the replica works.
func (m *monitors) restore(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	if err := m.addSFlow(ctx, s); err != nil {
		return err
	}
	bridges, err := monitoredBridges(ctx, s)
	if err != nil {
		return err
	}
	for _, b := range bridges {
		if b.sFlow != "" {
			if err := checkSFlow(ctx, s, rec, b, o); err != nil {
				return err
			}
		}
		if b.ipfix != "" {
			if err := checkIPFIX(ctx, s, b, o); err != nil {
				return err
			}
		}
	}
	if err := checkInterfaceIndexes(ctx, s, rec, bridges, o); err != nil {
		return err
	}
	return checkCollectorSets(ctx, s, o)
}

func (m *monitors) addSFlow(ctx context.Context, s *Switch) error {
	var changes []ovsdb.Change
	for i, b := range s.Bridges {
		if columns := m.sFlow[b]; columns != nil {
			row := fmt.Sprintf("sflow%d", i)
			changes = append(changes, ovsdb.Insert("sFlow", row, columns),
				ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"sflow": ovsdb.Ref{Name: row}}))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return s.reconfigure(ctx, changes)
}

// checkSFlow traces a packet: even one that is dropped is sampled.
func checkSFlow(ctx context.Context, s *Switch, rec *Recorded, b monitoredBridge, o *report.Outcome) error {
	rows, err := s.db.Select(ctx, "sFlow", "sampling")
	if err != nil {
		return err
	}
	for _, r := range rows {
		if rate, ok := r.Int("sampling"); r.UUID == b.sFlow && ok && rate == 0 {
			return nil // off on the live node as well
		}
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
func compareSampled(rec *Recorded, b monitoredBridge, o *report.Outcome) error {
	devices := map[string]bool{}
	for _, i := range b.Interfaces() {
		devices[i.Name] = i.isDevice()
	}
	f, ok, err := rec.open(rec.dir.Recorded(workdir.RecordedDatapathFlows))
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

// checkIPFIX asks for the exporter's statistics, which only a working one has.
func checkIPFIX(ctx context.Context, s *Switch, b monitoredBridge, o *report.Outcome) error {
	rows, err := s.db.Select(ctx, "IPFIX", "targets")
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.UUID == b.ipfix && len(r.Strings("targets")) == 0 {
			return nil // off on the live node as well
		}
	}
	version, err := s.newest(ctx, b.Bridge)
	if err != nil {
		return err
	}
	if _, err := s.ofctl(ctx, b.Bridge, version, "dump-ipfix-bridge"); err != nil {
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

// checkInterfaceIndexes compares the ifindexes that ovs-vswitchd uses with the
// live ones.
func checkInterfaceIndexes(ctx context.Context, s *Switch, rec *Recorded, bridges []monitoredBridge, o *report.Outcome) error {
	if !slices.ContainsFunc(bridges, func(b monitoredBridge) bool { return b.sFlow != "" }) {
		return nil
	}
	live, err := rec.listed(workdir.RecordedListInterface, "ifindex")
	if live == nil || err != nil {
		return err
	}
	rows, err := s.db.Select(ctx, "Interface", "name", "ifindex")
	if err != nil {
		return err
	}
	have := map[string]int{}
	for _, r := range rows {
		have[r.String("name")], _ = r.Int("ifindex")
	}
	for _, b := range bridges {
		if b.sFlow == "" {
			continue
		}
		for _, i := range b.Interfaces() {
			want, _ := interfaceIndex(live[i.Name]) // the edit reported what can't be read
			if want > 0 && i.isDevice() && have[i.Name] != want {
				o.Note(report.Failed, "%s: sFlow's output= to port %q is %d, on the live node %d", b.Name, i.Name, have[i.Name], want)
			}
		}
	}
	return nil
}
