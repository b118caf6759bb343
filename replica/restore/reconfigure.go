package restore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/internal/ovsdb"
)

// reconfigured bounds one reconfiguration of ovs-vswitchd, in milliseconds.
const reconfigured = 10000

// reconfigure makes changes and waits until ovs-vswitchd has taken them up: it
// says in cur_cfg that it has done what next_cfg asked (ovs-vswitchd.conf.db(5)).
func (n *Node) reconfigure(ctx context.Context, changes []ovsdb.Change) error {
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

// Settle waits until ovs-vswitchd has made of the database what it can, and
// drops the bridges that it did not make, with a remark: what is no bridge to
// it (a name with a slash, a datapath type it doesn't know) costs itself alone.
func (n *Node) Settle(ctx context.Context) error {
	if err := n.reconfigure(ctx, nil); err != nil {
		return err
	}
	var made []*Bridge
	for _, b := range n.Bridges {
		if n.made(b) {
			made = append(made, b)
			continue
		}
		n.Report.Lost = append(n.Report.Lost, fmt.Sprintf("bridge %q: ovs-vswitchd does not make it; its log says why: %s", b.Name, n.Workdir.Log("ovs-vswitchd")))
	}
	n.Bridges = made
	return nil
}

// made tells whether ovs-vswitchd made a bridge. It makes none with a slash in
// its name, which would be a path: perhaps that of another switch's socket.
func (n *Node) made(b *Bridge) bool {
	if strings.Contains(b.Name, "/") {
		return false
	}
	_, err := os.Stat(filepath.Join(n.runDir(), b.Name+".mgmt"))
	return err == nil
}
