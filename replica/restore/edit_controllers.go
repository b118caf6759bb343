package restore

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

// editControllers leaves controllers where nothing can be dialled, since they
// steer hidden flows; where the daemons share the host's network, they go.
// Managers stay in any case: the replica's ovsdb-server dials none.
func editControllers(ctx context.Context, n *Node, o *report.Outcome) error {
	if n.Isolated {
		return n.expectUnreachable(ctx, o)
	}
	var changes []ovsdb.Change
	for i, b := range n.Bridges {
		if !b.HasControl {
			continue
		}
		var instead any
		if b.failsOpen {
			row := fmt.Sprintf("controller%d", i)
			changes = append(changes, n.standIn(row))
			instead = ovsdb.Ref{Name: row}
		}
		o.Note(report.Approximated, "%s: its controllers are taken out, since the daemons are not isolated here", b.Name)
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"controller": instead}))
	}
	if len(changes) == 0 {
		return nil
	}
	managers, err := n.managersInstead(ctx, o)
	if err != nil {
		return err
	}
	return n.DB.Transact(ctx, append(changes, managers...)...)
}

// managersInstead makes managers of the controllers that bridges had in-band:
// both get the same hidden flows, and nobody dials a manager here. Managers are
// those of all bridges, so bridges that had none of these flows disable them.
func (n *Node) managersInstead(ctx context.Context, o *report.Outcome) ([]ovsdb.Change, error) {
	rows, err := n.DB.Select(ctx, "Open_vSwitch", "manager_options")
	if err != nil || len(rows) != 1 {
		return nil, err
	}
	targets, err := n.inBandTargets(ctx)
	if err != nil {
		return nil, err
	}
	var changes []ovsdb.Change
	var refs []ovsdb.Ref
	for _, id := range rows[0].UUIDs("manager_options") {
		refs = append(refs, ovsdb.Ref{UUID: id})
	}
	for i, target := range targets {
		row := fmt.Sprintf("manager%d", i)
		changes = append(changes, ovsdb.Insert("Manager", row, ovsdb.Columns{"target": target}))
		refs = append(refs, ovsdb.Ref{Name: row})
		o.Note(report.Approximated, "manager %s, which nobody dials, stands in for the in-band controller", target)
	}
	if len(targets) == 0 {
		return nil, nil
	}
	changes = append(changes, ovsdb.Update("Open_vSwitch", rows[0].UUID, ovsdb.Columns{"manager_options": refs}))
	for _, b := range n.Bridges {
		inBand, known, err := n.facts(ctx).InBand(ctx, b.Name)
		if err != nil {
			return nil, err
		}
		if inBand || !known && b.HasControl {
			continue
		}
		config := maps.Clone(b.OtherConfig)
		config["disable-in-band"] = "true"
		b.OtherConfig = config
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"other_config": config}))
	}
	return changes, nil
}

// inBandTargets are the controllers that bridges reach in-band, as managers
// would be named that are none yet.
func (n *Node) inBandTargets(ctx context.Context) ([]string, error) {
	const port = "6653" // of OpenFlow; a manager's is another
	controllers, err := n.DB.Select(ctx, "Controller", "target", "connection_mode")
	if err != nil {
		return nil, err
	}
	managers, err := n.DB.Select(ctx, "Manager", "target")
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, m := range managers {
		known[m.String("target")] = true
	}
	var targets []string
	for _, c := range controllers {
		target := c.String("target")
		stream, address, _ := strings.Cut(target, ":")
		if c.String("connection_mode") == "out-of-band" || stream != "tcp" && stream != "ssl" {
			continue
		}
		if !strings.Contains(address, ":") {
			target += ":" + port
		}
		if !known[target] {
			known[target] = true
			targets = append(targets, target)
		}
	}
	return targets, nil
}

// expectUnreachable takes note of what ovs-vswitchd will log of controllers for
// no other reason than that a replica has no network.
func (n *Node) expectUnreachable(ctx context.Context, o *report.Outcome) error {
	rows, err := n.DB.Select(ctx, "Controller", "target")
	if err != nil {
		return err
	}
	for _, r := range rows {
		o.Note(report.Restored, "")
		target := r.String("target")
		stream, _, _ := strings.Cut(target, ":")
		n.expect(fmt.Sprintf("stream_%s: %s: connect: Network is unreachable", stream, target))
		if stream == "ssl" {
			n.expect("stream_ssl: Private key must be configured to use SSL") // editHostSettings took it out
			n.expect("stream_ssl: Certificate must be configured to use SSL")
		}
	}
	return nil
}

// expect takes note of a line that ovs-vswitchd will log because of what a
// replica is, and that says nothing of how faithful it is.
func (n *Node) expect(line string) {
	if n.expected == nil {
		n.expected = map[string]bool{}
	}
	n.expected[line] = true
}

// Expected tells whether a line of ovs-vswitchd's log ("module: message") is
// one that a step has foreseen.
func (n *Node) Expected(line string) bool { return n.expected[line] }
