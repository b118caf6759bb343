package restore

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

const (
	// nowhere is the discard port of the replica's own loopback. A collector
	// that has no route switches its monitor off, and takes sample() out of traces.
	nowhere = "127.0.0.1:9"
	// sFlowAgent is the address that sFlow datagrams would name. No trace shows
	// it, but without one sFlow is off, and the live one's device has none here.
	sFlowAgent = "127.0.0.1"
)

// editMonitors points sFlow, IPFIX and NetFlow at nothing: what they do to
// traces stays, what they send goes nowhere. Where the daemons share the host's
// network, they are taken out.
func editMonitors(ctx context.Context, n *Node, o *report.Outcome) error {
	if !n.Isolated {
		return n.removeMonitors(ctx, o)
	}
	var changes []ovsdb.Change
	for _, table := range []string{"sFlow", "IPFIX", "NetFlow"} {
		rows, err := n.DB.Select(ctx, table, "targets")
		if err != nil {
			return err
		}
		for _, r := range rows {
			if len(r.Strings("targets")) == 0 {
				continue // off on the live node as well
			}
			columns := ovsdb.Columns{"targets": []string{nowhere}}
			if name := namedCollector(r.Strings("targets")); name != "" {
				o.Note(report.Approximated, "%s: its collector %q is a name: it is taken to have been known on the live node", table, name)
			}
			o.Note(report.Restored, "")
			changes = append(changes, ovsdb.Update(table, r.UUID, columns))
		}
	}
	numbers, err := n.editInterfaceIndexes(ctx, o)
	if err != nil {
		return err
	}
	kept, err := n.keepSFlowBack(ctx)
	if err != nil {
		return err
	}
	return n.DB.Transact(ctx, slices.Concat(changes, numbers, kept)...)
}

// keepSFlowBack takes sFlow out until datapath ports have their live numbers:
// it knows ports by the number that they had when it was set up.
func (n *Node) keepSFlowBack(ctx context.Context) ([]ovsdb.Change, error) {
	list, err := n.monitors(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := n.DB.Select(ctx, "sFlow", "header", "polling", "sampling", "external_ids")
	if err != nil {
		return nil, err
	}
	byID := map[string]ovsdb.Columns{}
	for _, r := range rows {
		columns := ovsdb.Columns{"targets": []string{nowhere}, "agent": sFlowAgent, "external_ids": r.Map("external_ids")}
		for _, c := range []string{"header", "polling", "sampling"} {
			if value, ok := r.Int(c); ok {
				columns[c] = value
			}
		}
		byID[r.UUID] = columns
	}
	n.sFlow = map[string]ovsdb.Columns{}
	var changes []ovsdb.Change
	for _, m := range list {
		if m.sFlow != "" {
			n.sFlow[m.bridge.Name] = byID[m.sFlow]
			changes = append(changes, ovsdb.Update("Bridge", m.bridge.UUID, ovsdb.Columns{"sflow": nil}))
		}
	}
	return changes, nil
}

// namedCollector returns a collector's name if none of the targets is an
// address: one that could not be resolved leaves its monitor off.
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

// monitored is a bridge with its monitors; those that it has not are "".
type monitored struct {
	bridge                *Bridge
	sFlow, ipfix, netFlow string
}

// monitors lists the bridges that have any.
func (n *Node) monitors(ctx context.Context) ([]monitored, error) {
	rows, err := n.DB.Select(ctx, "Bridge", "sflow", "ipfix", "netflow")
	if err != nil {
		return nil, err
	}
	byID := map[string]ovsdb.Row{}
	for _, r := range rows {
		byID[r.UUID] = r
	}
	var list []monitored
	for _, b := range n.Bridges {
		r := byID[b.UUID]
		m := monitored{bridge: b, sFlow: single(r.UUIDs("sflow")), ipfix: single(r.UUIDs("ipfix")), netFlow: single(r.UUIDs("netflow"))}
		if m.sFlow+m.ipfix+m.netFlow != "" {
			list = append(list, m)
		}
	}
	return list, nil
}

// single returns the one element of a list that has none or one.
func single(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// removeMonitors takes all collectors out. A sample() action of a flow needs
// its Flow_Sample_Collector_Set, not a collector: those stay, without one.
func (n *Node) removeMonitors(ctx context.Context, o *report.Outcome) error {
	list, err := n.monitors(ctx)
	if err != nil {
		return err
	}
	var changes []ovsdb.Change
	for _, m := range list {
		columns := ovsdb.Columns{}
		for _, c := range []struct{ column, id, what string }{
			{"sflow", m.sFlow, "sFlow is taken out, since the daemons are not isolated here: its sample() is missing in traces"},
			{"ipfix", m.ipfix, "IPFIX is taken out, since the daemons are not isolated here: its sample() is missing in traces"},
			{"netflow", m.netFlow, "NetFlow is taken out, since the daemons are not isolated here: no trace shows it"}} {
			if c.id != "" {
				o.Note(report.Approximated, "%s: %s", m.bridge.Name, c.what)
				columns[c.column] = nil
			}
		}
		changes = append(changes, ovsdb.Update("Bridge", m.bridge.UUID, columns))
	}
	sets, err := n.DB.Select(ctx, collectorSets, "ipfix")
	if err != nil {
		return err
	}
	for _, r := range sets {
		o.Note(report.Restored, "")
		changes = append(changes, ovsdb.Update(collectorSets, r.UUID, ovsdb.Columns{"ipfix": nil}))
	}
	return n.DB.Transact(ctx, changes...)
}

// collectorSets is the table of IPFIX exporters that flows name.
const collectorSets = "Flow_Sample_Collector_Set"

// editInterfaceIndexes gives the ports of bridges with sFlow their numbers in
// the live kernel: its sample() says the one to which a packet goes out.
func (n *Node) editInterfaceIndexes(ctx context.Context, o *report.Outcome) ([]ovsdb.Change, error) {
	list, err := n.monitors(ctx)
	if err != nil {
		return nil, err
	}
	live, err := n.listed(workdir.RecordedListInterface, "ifindex")
	if err != nil {
		return nil, err
	}
	rows, err := n.DB.Select(ctx, "Interface", "options") // as the steps before this one left them
	if err != nil {
		return nil, err
	}
	options := map[string]map[string]string{}
	for _, r := range rows {
		options[r.UUID] = r.Map("options")
	}
	var changes []ovsdb.Change
	for _, m := range list {
		if m.sFlow == "" {
			continue
		}
		if live == nil {
			o.Note(report.Unknown, "%s: no ovs-vsctl list interface was collected: where a packet goes out by one port, sFlow's output= is not the live one", m.bridge.Name)
			continue
		}
		for _, i := range m.bridge.Interfaces() {
			index, err := interfaceIndex(live[i.Name])
			switch {
			case err != nil:
				o.Note(report.Unknown, "%s: the ifindex of %q was recorded as %.40q: where a packet goes out by it alone, sFlow's output= is not the live one", m.bridge.Name, i.Name, live[i.Name])
			case index > 0 && isDevice(i):
				with := maps.Clone(options[i.UUID])
				with["ifindex"] = strconv.Itoa(index)
				changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"options": with}))
			case index > 0:
				o.Note(report.Approximated, "%s: sFlow's output= towards tunnel %q says one port without its index, %d", m.bridge.Name, i.Name, index)
			}
		}
	}
	return changes, nil
}

// isDevice tells the interfaces that are dummies in a replica.
func isDevice(i *Interface) bool { return i.Type != "patch" && !isTunnel(i.Type) }

// interfaceIndex reads the live kernel's number of an interface, as it was
// listed: 0 where there is none.
func interfaceIndex(listed string) (int, error) {
	if listed == "" || listed == "[]" {
		return 0, nil // not listed, or it had failed
	}
	index, err := strconv.ParseInt(listed, 10, 32)
	return int(index), err
}
