package restore

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
)

// editControllers keeps controllers where the daemons have no network, since
// they cause hidden flows. If the daemons share the host's network it removes
// them. Managers stay in any case: the replica's ovsdb-server connects to none.
func editControllers(ctx context.Context, replica *Replica, outcome *report.Outcome) error {
	if replica.Isolated {
		return expectUnreachable(ctx, &replica.Switch, outcome)
	}
	var changes []ovsdb.Change
	for i, bridge := range replica.Bridges {
		if len(bridge.controllers) == 0 {
			continue
		}
		var controller any
		if bridge.failedOpen { // fail-open needs a controller that can't be reached: no process creates that socket
			row := fmt.Sprintf("controller%d", i)
			changes = append(changes, ovsdb.Insert("Controller", row, ovsdb.Columns{"target": "unix:" + replica.Switch.dir + "/no-controller", "connection_mode": "out-of-band"}))
			controller = ovsdb.Ref{Name: row}
		}
		outcome.Note(report.Approximated, "%s: its controllers are removed, since the daemons are not isolated here", bridge.Name)
		changes = append(changes, ovsdb.Update("Bridge", bridge.UUID, ovsdb.Columns{"controller": controller}))
	}
	if len(changes) == 0 {
		return nil
	}
	managers, err := managersForControllers(ctx, replica, outcome)
	if err != nil {
		return err
	}
	return replica.DB.Transact(ctx, append(changes, managers...)...)
}

// managersForControllers returns the changes that add a Manager row for each
// controller that bridges reach in-band: ovs-vswitchd makes the same hidden flows for
// both. It makes the flows for managers on all bridges, so bridges that had no such
// flows get disable-in-band.
func managersForControllers(ctx context.Context, replica *Replica, outcome *report.Outcome) ([]ovsdb.Change, error) {
	rows, err := replica.DB.Select(ctx, "Open_vSwitch", "manager_options")
	if err != nil || len(rows) != 1 {
		return nil, err
	}
	targets, err := inBandTargets(ctx, replica.DB)
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
		outcome.Note(report.Approximated, "manager %s, to which the replica never connects, replaces the in-band controller", target)
	}
	changes = append(changes, ovsdb.Update("Open_vSwitch", rows[0].UUID, ovsdb.Columns{"manager_options": refs}))
	for _, bridge := range replica.Bridges {
		had, known, err := replica.Facts.InBand(ctx, bridge.Name)
		if err != nil {
			return nil, err
		}
		if had || !known && len(bridge.controllers) > 0 {
			continue
		}
		config := maps.Clone(bridge.OtherConfig)
		config["disable-in-band"] = "true"
		bridge.OtherConfig = config
		changes = append(changes, ovsdb.Update("Bridge", bridge.UUID, ovsdb.Columns{"other_config": config}))
	}
	return changes, nil
}

// inBandTargets returns the targets of the controllers that bridges reach
// in-band, each with its port, without targets that are also a manager's.
func inBandTargets(ctx context.Context, db *ovsdb.Client) ([]string, error) {
	const openFlowPort = "6653" // the default of a controller; a manager has another
	controllers, err := db.Select(ctx, "Controller", "target", "connection_mode")
	if err != nil {
		return nil, err
	}
	managers, err := db.Select(ctx, "Manager", "target")
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, row := range managers {
		known[row.String("target")] = true
	}
	var targets []string
	for _, row := range controllers {
		target := row.String("target")
		stream, address, _ := strings.Cut(target, ":")
		if row.String("connection_mode") == "out-of-band" || stream != "tcp" && stream != "ssl" {
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
func expectUnreachable(ctx context.Context, sw *Switch, outcome *report.Outcome) error {
	rows, err := sw.db.Select(ctx, "Controller", "target")
	if err != nil {
		return err
	}
	for _, row := range rows {
		outcome.Note(report.Restored, "")
		target := row.String("target")
		stream, _, _ := strings.Cut(target, ":")
		sw.expect(fmt.Sprintf("stream_%s: %s: connect: Network is unreachable", stream, target))
		if stream == "ssl" { // editHostSettings removes the keys
			sw.expect("stream_ssl: Private key must be configured to use SSL")
			sw.expect("stream_ssl: Certificate must be configured to use SSL")
		}
	}
	return nil
}
