package restore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/packet"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// editSpanningTrees turns the trees off, and requests the port numbers in them.
// restoreSpanningTrees turns them on and restores the states of their ports.
//
// Cause: a tree that starts blocks its ports, and a replica hears no other bridges.
//
// Remedy: the ports that had heard a neighbour receive the BPDUs that it sent,
// while time/warp moves the clock until each port is in its recorded state. Then
// the clock stops. A port that was listening or learning gets its link last, so
// that it stops there. This step comes before flows and learned MACs, because a warp
// would age them and a topology change would flush them. The trees are turned on after
// the ports exist: ovs-vswitchd does not flood to a port that is added to a running
// tree before it has forwarded, and never if the port does not take part in the tree.
//
// Source: rstp/show, stp/show and traces equal the live ones (OVS 3.1).
func editSpanningTrees(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	var changes []ovsdb.Change
	for _, bridge := range sw.Bridges {
		if bridge.tree != "" {
			changes = append(changes, ovsdb.Update("Bridge", bridge.UUID, ovsdb.Columns{"stp_enable": false, "rstp_enable": false}))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	numbers, err := numberTreePorts(ctx, sw, rec, outcome)
	if err != nil {
		return err
	}
	return sw.db.Transact(ctx, append(changes, numbers...)...)
}

// numberTreePorts returns the changes that request each port's number in its
// spanning tree. Otherwise ovs-vswitchd numbers ports in an order that differs
// from start to start, and the numbers decide between equal paths to the root.
// ovs-vsctl list port shows them in status and rstp_status; the requests are
// stp-port-num and rstp-port-num (ovs-vswitchd.conf.db(5)).
func numberTreePorts(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) ([]ovsdb.Change, error) {
	rows, err := sw.db.Select(ctx, "Port", "name", "other_config")
	if err != nil {
		return nil, err
	}
	requests := make([]map[string]string, len(rows)) // the other_config of each row
	for _, id := range []struct {
		column, key, setting string
		base                 int
		mask                 uint64 // the bits below the port's priority
	}{
		{"status", "stp_port_id", "stp-port-num", 10, 0xff},
		{"rstp_status", "rstp_port_id", "rstp-port-num", 16, 0xfff}, // IEEE 802.1D-2004, 9.2.7
	} {
		statuses, err := rec.listed(workdir.RecordedListPort, id.column)
		if err != nil {
			return nil, err
		}
		for i, row := range rows {
			number, err := strconv.ParseUint(listedMap(statuses[row.String("name")])[id.key], id.base, 16)
			if err != nil {
				continue
			}
			outcome.Note(report.Restored, "")
			if requests[i] == nil {
				requests[i] = map[string]string{}
			}
			requests[i][id.setting] = strconv.FormatUint(number&id.mask, 10)
		}
	}
	var changes []ovsdb.Change
	for i, row := range rows {
		if requests[i] != nil {
			maps.Copy(requests[i], row.Map("other_config")) // its own requests stay
			changes = append(changes, ovsdb.Update("Port", row.UUID, ovsdb.Columns{"other_config": requests[i]}))
		}
	}
	return changes, nil
}

// restoreSpanningTrees brings each port of each tree into its state.
func restoreSpanningTrees(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	var trees []*tree
	var changes []ovsdb.Change
	for _, bridge := range sw.Bridges {
		if bridge.tree == "" {
			continue
		}
		tree, err := readTree(rec, bridge, bridge.tree == "rstp_enable")
		if err != nil {
			return err
		}
		trees = append(trees, tree)
		changes = append(changes, ovsdb.Update("Bridge", bridge.UUID, ovsdb.Columns{bridge.tree: true}))
	}
	if len(trees) == 0 {
		return nil
	}
	if err := sw.reconfigure(ctx, changes); err != nil {
		return err
	}
	if err := sw.stopClock(ctx); err != nil {
		outcome.Note(report.Failed, "the clock can't be stopped, so spanning trees will change: %v", err)
		return ctx.Err()
	}
	for _, tree := range trees {
		if len(tree.ports) == 0 {
			outcome.Note(report.Unknown, "%s: the states of its ports in the spanning tree were not collected: all ports forward", tree.bridge.Name)
		}
	}
	if err := converge(ctx, sw, trees, outcome); err != nil {
		return err
	}
	for _, tree := range trees {
		if err := tree.compare(ctx, sw, outcome); err != nil {
			return err
		}
	}
	return sw.forgetPackets(ctx, outcome)
}

// converge moves the clock until the ports are in their states: first the forwarding
// ports, then the ports in a transient state, the most advanced first, together with
// the ports that are blocked because of them.
func converge(ctx context.Context, sw *Switch, trees []*tree, outcome *report.Outcome) error {
	if err := setTreeLinks(ctx, sw, trees, treePort.isTransient, "down", outcome); err != nil {
		return err
	}
	phases := []struct {
		rise    func(treePort) bool
		reached func(treePort) bool
		seconds int // per warp: a BPDU lasts at least six seconds, a forward delay four
	}{
		{nil, func(port treePort) bool { return port.State == "forwarding" }, 4},
		{func(port treePort) bool { return port.State == "learning" }, func(port treePort) bool { return port.State == "forwarding" || port.State == "learning" }, 1},
		{func(port treePort) bool { return port.isTransient() && port.State != "learning" }, anyTreePort, 1},
	}
	for _, phase := range phases {
		if phase.rise != nil {
			if err := setTreeLinks(ctx, sw, trees, phase.rise, "up", outcome); err != nil {
				return err
			}
		}
		if err := warpUntil(ctx, sw, trees, phase.reached, phase.seconds); err != nil {
			return err
		}
	}
	return nil
}

func anyTreePort(treePort) bool { return true }

// setTreeLinks sets the link of the selected ports "up" or "down".
func setTreeLinks(ctx context.Context, sw *Switch, trees []*tree, selected func(treePort) bool, state string, outcome *report.Outcome) error {
	for _, tree := range trees {
		for _, port := range tree.ports {
			if !selected(port) {
				continue
			}
			err := sw.setLink(ctx, port.Name, state)
			if err := noteFailure(ctx, outcome, err, "%s: port %q can't be set %s", tree.bridge.Name, port.Name, state); err != nil {
				return err
			}
		}
	}
	return nil
}

// warpUntil lets neighbours send BPDUs and the clock advance until the selected
// ports are in their states, or two of the longest forward delays (30 s) and
// some time for the protocol have passed.
func warpUntil(ctx context.Context, sw *Switch, trees []*tree, selected func(treePort) bool, seconds int) error {
	const longest = 80 // seconds
	for passed := 0; passed < longest; passed += seconds {
		reached := true
		for _, tree := range trees {
			if err := tree.sendBPDUs(ctx, sw); err != nil {
				return err
			}
		}
		for _, tree := range trees {
			differences, err := tree.differences(ctx, sw, selected)
			if err != nil {
				return err
			}
			reached = reached && len(differences) == 0
		}
		if reached {
			return nil
		}
		if _, err := sw.appctl(ctx, "time/warp", strconv.Itoa(1000*seconds), "1000"); err != nil {
			return err
		}
	}
	return nil
}

// sendBPDUs makes each port that had received BPDUs of a neighbour receive them again.
func (t *tree) sendBPDUs(ctx context.Context, sw *Switch) error {
	bpdu := packet.STP
	if t.rapid {
		bpdu = packet.RSTP
	}
	for _, port := range t.ports {
		if !port.hearsNeighbour() {
			continue
		}
		if err := sw.receive(ctx, port.Name, bpdu(port.neighbour, t.times)); err != nil {
			return fmt.Errorf("%s: a neighbour's packet on %q: %w", t.bridge.Name, port.Name, err)
		}
	}
	return nil
}

// differences asks the replica which of the selected ports are in another state.
func (t *tree) differences(ctx context.Context, sw *Switch, selected func(treePort) bool) ([]string, error) {
	out, err := sw.appctl(ctx, t.protocol()+"/show", t.bridge.Name)
	if err != nil {
		return nil, err
	}
	running := &tree{bridge: t.bridge}
	running.readShow(out)
	wanted := t.ports
	states := map[string]appctl.TreePort{}
	for _, port := range running.ports {
		states[port.Name] = port.TreePort
		if len(t.ports) == 0 && port.Role != "disabled" {
			wanted = append(wanted, treePort{TreePort: appctl.TreePort{Name: port.Name, State: "forwarding"}})
		}
	}
	var list []string
	for _, p := range wanted {
		port := states[p.Name]
		if selected(p) && (port.State != p.State || p.Role != "" && port.Role != p.Role) {
			list = append(list, fmt.Sprintf("port %q was %s %s, in the replica %s %s", p.Name, p.Role, p.State, port.Role, port.State))
		}
	}
	return list, nil
}

// compare reports how the replica's tree differs from the live one.
func (t *tree) compare(ctx context.Context, sw *Switch, outcome *report.Outcome) error {
	var differences []string
	err := retryUntil(ctx, func() (done bool, err error) {
		differences, err = t.differences(ctx, sw, anyTreePort)
		return len(differences) == 0, err
	})
	if err != nil {
		outcome.Note(report.Failed, "%s: its spanning tree can't be read back: %v", t.bridge.Name, err)
		return ctx.Err()
	}
	for _, difference := range differences {
		outcome.Note(report.Failed, "%s: %s", t.bridge.Name, difference)
	}
	if len(t.ports) == 0 {
		return nil
	}
	if len(differences) == 0 {
		outcome.Note(report.Restored, "")
	}
	if outside := t.portsOutside(); len(outside) > 0 {
		outcome.Note(report.Approximated, "%s: NORMAL floods to ports that do not take part in a spanning tree (here %q) only if they existed before it was turned on, "+
			"or before ovs-vswitchd started; that is not recorded, but assumed", t.bridge.Name, outside)
	}
	return nil
}

// portsOutside returns the bridge's ports that do not take part in the tree.
func (t *tree) portsOutside() []string {
	var list []string
	for _, p := range t.bridge.Ports {
		inside := slices.ContainsFunc(t.ports, func(port treePort) bool { return port.Name == p.Name })
		if p.Name != t.bridge.Name && !inside {
			list = append(list, p.Name)
		}
	}
	return list
}
