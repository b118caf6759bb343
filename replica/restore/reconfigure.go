package restore

import (
	"context"
	"fmt"

	"ovs-offline/internal/ovsdb"
)

// reconfigured bounds one reconfiguration of ovs-vswitchd, in milliseconds.
const reconfigured = 10000

// reconfigure makes changes and waits until ovs-vswitchd has taken them up: it
// says in cur_cfg that it has done what next_cfg asked (ovs-vswitchd.conf.db(5)).
func (n *Node) reconfigure(ctx context.Context, changes []ovsdb.Change) error {
	if len(changes) == 0 {
		return nil
	}
	rows, err := n.DB.Select(ctx, "Open_vSwitch", "next_cfg")
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return fmt.Errorf("the database has %d rows of Open_vSwitch", len(rows))
	}
	next, _ := rows[0].Int("next_cfg")
	changes = append(changes, ovsdb.Update("Open_vSwitch", rows[0].UUID, ovsdb.Columns{"next_cfg": next + 1}))
	if err := n.DB.Transact(ctx, changes...); err != nil {
		return err
	}
	if err := n.DB.Transact(ctx, ovsdb.Await("Open_vSwitch", rows[0].UUID, "cur_cfg", next+1, reconfigured)); err != nil {
		return fmt.Errorf("waiting for ovs-vswitchd to take up a change: %w", err)
	}
	return nil
}
