package restore

import (
	"context"
	"strconv"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// editTrees holds back spanning trees until the ports are there: a port that
// meets one that is on already is not flooded to until it has forwarded, and
// never if it has no part in the tree (measured, OVS 3.1), other than in an
// ovs-vswitchd that starts with all its ports.
func editTrees(ctx context.Context, n *Node, o *report.Outcome) error {
	rows, err := n.DB.Select(ctx, "Bridge", "stp_enable", "rstp_enable")
	if err != nil {
		return err
	}
	var changes []ovsdb.Change
	for _, r := range rows {
		for _, b := range n.Bridges {
			if b.UUID != r.UUID {
				continue
			}
			for _, column := range []string{"stp_enable", "rstp_enable"} {
				if r.Bool(column) {
					b.tree = column
					changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{column: false}))
				}
			}
		}
	}
	if err := n.DB.Transact(ctx, changes...); err != nil || len(changes) == 0 {
		return err
	}
	return n.numberTreePorts(ctx, o)
}

// numberTreePorts asks for the numbers that ports had in their spanning tree.
// Without, ovs-vswitchd counts them in the order in which it meets them, which
// differs from start to start; equal ways to the root are told apart by them.
// The numbers are in ovs-vsctl list port (status, rstp_status); settings:
// ovs-vswitchd.conf.db(5), stp-port-num and rstp-port-num.
func (n *Node) numberTreePorts(ctx context.Context, o *report.Outcome) error {
	const (
		ofSTP  = 0xff  // the priority stands above
		ofRSTP = 0xfff // IEEE 802.1D-2004, 9.2.7
	)
	stp, err := n.listed(workdir.RecordedListPort, "status")
	if err != nil {
		return err
	}
	rstp, err := n.listed(workdir.RecordedListPort, "rstp_status")
	if err != nil {
		return err
	}
	rows, err := n.DB.Select(ctx, "Port", "name", "other_config")
	if err != nil {
		return err
	}
	var changes []ovsdb.Change
	for _, r := range rows {
		numbers := map[string]string{}
		if id, err := strconv.ParseUint(pairs(stp[r.String("name")])["stp_port_id"], 10, 16); err == nil {
			numbers["stp-port-num"] = strconv.FormatUint(id&ofSTP, 10)
		}
		if id, err := strconv.ParseUint(pairs(rstp[r.String("name")])["rstp_port_id"], 16, 16); err == nil {
			numbers["rstp-port-num"] = strconv.FormatUint(id&ofRSTP, 10)
		}
		config := r.Map("other_config")
		changed := false
		for key, number := range numbers {
			o.Note(report.Restored, "")
			if config[key] == "" {
				config[key], changed = number, true
			}
		}
		if changed {
			changes = append(changes, ovsdb.Update("Port", r.UUID, ovsdb.Columns{"other_config": config}))
		}
	}
	return n.DB.Transact(ctx, changes...)
}
