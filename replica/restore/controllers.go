package restore

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

// editControllers keeps controllers where the daemons have no network, since
// they cause hidden flows. If the daemons share the host's network it removes
// them. Managers stay in any case: the replica's ovsdb-server connects to none.
func editControllers(ctx context.Context, n *Node, o *report.Outcome) error {
	if n.Isolated {
		return expectUnreachable(ctx, &n.Switch, o)
	}
	var changes []ovsdb.Change
	for i, b := range n.Bridges {
		if len(b.controllers) == 0 {
			continue
		}
		var controller any
		if b.failedOpen { // fail-open needs a controller that can't be reached: no process creates that socket
			row := fmt.Sprintf("controller%d", i)
			changes = append(changes, ovsdb.Insert("Controller", row, ovsdb.Columns{"target": "unix:" + n.Switch.dir + "/no-controller", "connection_mode": "out-of-band"}))
			controller = ovsdb.Ref{Name: row}
		}
		o.Note(report.Approximated, "%s: its controllers are removed, since the daemons are not isolated here", b.Name)
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"controller": controller}))
	}
	if len(changes) == 0 {
		return nil
	}
	managers, err := managersForControllers(ctx, n, o)
	if err != nil {
		return err
	}
	return n.DB.Transact(ctx, append(changes, managers...)...)
}

// managersForControllers returns the changes that add a Manager row for each
// controller that bridges reach in-band: ovs-vswitchd makes the same hidden flows for
// both. It makes the flows for managers on all bridges, so bridges that had no such
// flows get disable-in-band.
func managersForControllers(ctx context.Context, n *Node, o *report.Outcome) ([]ovsdb.Change, error) {
	rows, err := n.DB.Select(ctx, "Open_vSwitch", "manager_options")
	if err != nil || len(rows) != 1 {
		return nil, err
	}
	targets, err := inBandTargets(ctx, n.DB)
	if len(targets) == 0 || err != nil {
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
		o.Note(report.Approximated, "manager %s, to which the replica never connects, replaces the in-band controller", target)
	}
	changes = append(changes, ovsdb.Update("Open_vSwitch", rows[0].UUID, ovsdb.Columns{"manager_options": refs}))
	for _, b := range n.Bridges {
		had, known, err := n.Facts.InBand(ctx, b.Name)
		if err != nil {
			return nil, err
		}
		if had || !known && len(b.controllers) > 0 {
			continue
		}
		config := maps.Clone(b.OtherConfig)
		config["disable-in-band"] = "true"
		b.OtherConfig = config
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"other_config": config}))
	}
	return changes, nil
}

// inBandTargets returns the targets of the controllers that bridges reach
// in-band, each with its port, without targets that are also a manager's.
func inBandTargets(ctx context.Context, db *ovsdb.Client) ([]string, error) {
	const openFlowPort = "6653" // the default of a controller; that of a manager is another
	controllers, err := db.Select(ctx, "Controller", "target", "connection_mode")
	if err != nil {
		return nil, err
	}
	managers, err := db.Select(ctx, "Manager", "target")
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
			target += ":" + openFlowPort
		}
		if !known[target] {
			known[target] = true
			targets = append(targets, target)
		}
	}
	return targets, nil
}

// expectUnreachable records the lines about controllers that ovs-vswitchd will log only
// because a replica has no network.
func expectUnreachable(ctx context.Context, s *Switch, o *report.Outcome) error {
	rows, err := s.db.Select(ctx, "Controller", "target")
	if err != nil {
		return err
	}
	for _, r := range rows {
		o.Note(report.Restored, "")
		target := r.String("target")
		stream, _, _ := strings.Cut(target, ":")
		s.expect(fmt.Sprintf("stream_%s: %s: connect: Network is unreachable", stream, target))
		if stream == "ssl" { // editHostSettings removes the keys
			s.expect("stream_ssl: Private key must be configured to use SSL")
			s.expect("stream_ssl: Certificate must be configured to use SSL")
		}
	}
	return nil
}
