package restore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/packet"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
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
func editSpanningTrees(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	var changes []ovsdb.Change
	for _, b := range s.Bridges {
		if b.tree != "" {
			changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"stp_enable": false, "rstp_enable": false}))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	numbers, err := numberTreePorts(ctx, s, rec, o)
	if err != nil {
		return err
	}
	return s.db.Transact(ctx, append(changes, numbers...)...)
}

// numberTreePorts returns the changes that request each port's number in its
// spanning tree. Otherwise ovs-vswitchd numbers ports in an order that differs
// from start to start, and the numbers decide between equal paths to the root.
// ovs-vsctl list port shows them in status and rstp_status; the requests are
// stp-port-num and rstp-port-num (ovs-vswitchd.conf.db(5)).
func numberTreePorts(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) ([]ovsdb.Change, error) {
	rows, err := s.db.Select(ctx, "Port", "name", "other_config")
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
		for i, r := range rows {
			number, err := strconv.ParseUint(listedMap(statuses[r.String("name")])[id.key], id.base, 16)
			if err != nil {
				continue
			}
			o.Note(report.Restored, "")
			if requests[i] == nil {
				requests[i] = map[string]string{}
			}
			requests[i][id.setting] = strconv.FormatUint(number&id.mask, 10)
		}
	}
	var changes []ovsdb.Change
	for i, r := range rows {
		if requests[i] != nil {
			maps.Copy(requests[i], r.Map("other_config")) // its own requests stay
			changes = append(changes, ovsdb.Update("Port", r.UUID, ovsdb.Columns{"other_config": requests[i]}))
		}
	}
	return changes, nil
}

// restoreSpanningTrees brings each port of each tree into its state.
func restoreSpanningTrees(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	var trees []*tree
	var changes []ovsdb.Change
	for _, b := range s.Bridges {
		if b.tree == "" {
			continue
		}
		tree, err := readTree(rec, b, b.tree == "rstp_enable")
		if err != nil {
			return err
		}
		trees = append(trees, tree)
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{b.tree: true}))
	}
	if len(trees) == 0 {
		return nil
	}
	if err := s.reconfigure(ctx, changes); err != nil {
		return err
	}
	if err := s.stopClock(ctx); err != nil {
		o.Note(report.Failed, "the clock can't be stopped, so spanning trees will change: %v", err)
		return ctx.Err()
	}
	for _, tree := range trees {
		if len(tree.ports) == 0 {
			o.Note(report.Unknown, "%s: the states of its ports in the spanning tree were not collected: all ports forward", tree.bridge.Name)
		}
	}
	if err := converge(ctx, s, trees, o); err != nil {
		return err
	}
	for _, tree := range trees {
		if err := tree.compare(ctx, s, o); err != nil {
			return err
		}
	}
	return s.forgetPackets(ctx, o)
}

// converge moves the clock until the ports are in their states: first the forwarding
// ports, then the ports in a transient state, the most advanced first, together with
// the ports that are blocked because of them.
func converge(ctx context.Context, s *Switch, trees []*tree, o *report.Outcome) error {
	if err := setTreeLinks(ctx, s, trees, treePort.isTransient, "down", o); err != nil {
		return err
	}
	phases := []struct {
		rise    func(treePort) bool
		reached func(treePort) bool
		seconds int // per warp: a BPDU lasts at least six seconds, a forward delay four
	}{
		{nil, func(p treePort) bool { return p.State == "forwarding" }, 4},
		{func(p treePort) bool { return p.State == "learning" }, func(p treePort) bool { return p.State == "forwarding" || p.State == "learning" }, 1},
		{func(p treePort) bool { return p.isTransient() && p.State != "learning" }, anyTreePort, 1},
	}
	for _, phase := range phases {
		if phase.rise != nil {
			if err := setTreeLinks(ctx, s, trees, phase.rise, "up", o); err != nil {
				return err
			}
		}
		if err := warpUntil(ctx, s, trees, phase.reached, phase.seconds); err != nil {
			return err
		}
	}
	return nil
}

func anyTreePort(treePort) bool { return true }

// setTreeLinks sets the link of the selected ports "up" or "down".
func setTreeLinks(ctx context.Context, s *Switch, trees []*tree, selected func(treePort) bool, state string, o *report.Outcome) error {
	for _, t := range trees {
		for _, p := range t.ports {
			if !selected(p) {
				continue
			}
			err := s.setLink(ctx, p.Name, state)
			if err := noteFailure(ctx, o, err, "%s: port %q can't be set %s", t.bridge.Name, p.Name, state); err != nil {
				return err
			}
		}
	}
	return nil
}

// warpUntil lets neighbours send BPDUs and the clock advance until the selected
// ports are in their states, or two of the longest forward delays (30 s) and
// some time for the protocol have passed.
func warpUntil(ctx context.Context, s *Switch, trees []*tree, selected func(treePort) bool, seconds int) error {
	const longest = 80 // seconds
	for passed := 0; passed < longest; passed += seconds {
		reached := true
		for _, t := range trees {
			if err := t.sendBPDUs(ctx, s); err != nil {
				return err
			}
		}
		for _, t := range trees {
			differences, err := t.differences(ctx, s, selected)
			if err != nil {
				return err
			}
			reached = reached && len(differences) == 0
		}
		if reached {
			return nil
		}
		if _, err := s.appctl(ctx, "time/warp", strconv.Itoa(1000*seconds), "1000"); err != nil {
			return err
		}
	}
	return nil
}

// sendBPDUs makes each port that had received BPDUs of a neighbour receive them again.
func (t *tree) sendBPDUs(ctx context.Context, s *Switch) error {
	bpdu := packet.STP
	if t.rapid {
		bpdu = packet.RSTP
	}
	for _, p := range t.ports {
		if !p.hearsNeighbour() {
			continue
		}
		if err := s.receive(ctx, p.Name, bpdu(p.neighbour, t.times)); err != nil {
			return fmt.Errorf("%s: a neighbour's packet on %q: %w", t.bridge.Name, p.Name, err)
		}
	}
	return nil
}

// differences asks the replica which of the selected ports are in another state.
func (t *tree) differences(ctx context.Context, s *Switch, selected func(treePort) bool) ([]string, error) {
	out, err := s.appctl(ctx, t.protocol()+"/show", t.bridge.Name)
	if err != nil {
		return nil, err
	}
	running := &tree{bridge: t.bridge}
	running.readShow(out)
	wanted := t.ports
	states := map[string]appctl.TreePort{}
	for _, p := range running.ports {
		states[p.Name] = p.TreePort
		if len(t.ports) == 0 && p.Role != "disabled" {
			wanted = append(wanted, treePort{TreePort: appctl.TreePort{Name: p.Name, State: "forwarding"}})
		}
	}
	var list []string
	for _, p := range wanted {
		h := states[p.Name]
		if selected(p) && (h.State != p.State || p.Role != "" && h.Role != p.Role) {
			list = append(list, fmt.Sprintf("port %q was %s %s, in the replica %s %s", p.Name, p.Role, p.State, h.Role, h.State))
		}
	}
	return list, nil
}

// compare reports how the replica's tree differs from the live one.
func (t *tree) compare(ctx context.Context, s *Switch, o *report.Outcome) error {
	var differences []string
	err := until(ctx, func() (done bool, err error) {
		differences, err = t.differences(ctx, s, anyTreePort)
		return len(differences) == 0, err
	})
	if err != nil {
		o.Note(report.Failed, "%s: its spanning tree can't be read back: %v", t.bridge.Name, err)
		return ctx.Err()
	}
	for _, d := range differences {
		o.Note(report.Failed, "%s: %s", t.bridge.Name, d)
	}
	if len(t.ports) == 0 {
		return nil
	}
	if len(differences) == 0 {
		o.Note(report.Restored, "")
	}
	if outside := t.outside(); len(outside) > 0 {
		o.Note(report.Approximated, "%s: NORMAL floods to ports that do not take part in a spanning tree (here %q) only if they existed before it was turned on, "+
			"or before ovs-vswitchd started; that is not recorded, but assumed", t.bridge.Name, outside)
	}
	return nil
}

// outside returns the bridge's ports that do not take part in the tree.
func (t *tree) outside() []string {
	var list []string
	for _, p := range t.bridge.Ports {
		inside := slices.ContainsFunc(t.ports, func(q treePort) bool { return q.Name == p.Name })
		if p.Name != t.bridge.Name && !inside {
			list = append(list, p.Name)
		}
	}
	return list
}
